"""Random calls: methods with what they promise, then measures and queries on what they released."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fuzz.tables import VALUES, Column, Table, names, quoted, text

ARITHMETIC = (
    "tinyint", "smallint", "integer", "bigint", "utinyint", "uinteger", "decimal(4,1)", "decimal(18,3)", "double", "float",
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A call of a function: SQL after FROM (or SELECT, for a scalar), and the parameters it was given."""

    function: str
    sql: str
    params: Mapping[str, Any]


def roles(table: Table, function: str, rng: random.Random, keep: bool = True) -> str:
    """Role arguments, for a table whose comments say none; by chance also for one whose comments do."""
    if table.labelled and rng.random() < 0.8:
        return ""
    told = f", qi := {names(table.of('quasi'))}"
    if table.of("sensitive"):
        told += f", sensitive := {names(table.of('sensitive'))}"
    if table.of("insensitive") and keep:
        told += f", keep := {names(table.of('insensitive'))}"
    if table.of("person"):
        told += f", person := {text(table.of('person')[0].name)}"
    trees = [column for column in table.columns if column.tree]
    if trees:
        pairs = ", ".join(f"{text(c.name)}: {text(quoted(c.tree))}" for c in trees)
        told += f", hierarchies := map {{{pairs}}}"
    return told


def guarantee(
    rng: random.Random, diversities: tuple[str, ...] = ("frequency", "distinct", "entropy")
) -> dict[str, Any]:
    """Random k, l, t, at least one of them."""
    params: dict[str, Any] = {}
    if rng.random() < 0.7:
        params["k"] = rng.choice((1, 2, 2, 3, 5))
    if rng.random() < 0.5 or not params:
        params |= {"l": rng.choice((1, 1.5, 2, 2, 3)), "diversity": rng.choice(diversities)}
    if rng.random() < 0.15:
        params |= {"t": rng.choice((0.1, 0.3, 0.6)), "distance": "equal"}
    return params


def _parameters(method: str, rng: random.Random) -> dict[str, Any]:
    k, level = rng.choice((1, 2, 2, 3, 5)), rng.choice((1, 2, 2, 3))
    if method == "muco":
        given: dict[str, Any] = {"delta": rng.choice((1.0, 0.5, 0.34, 0.2))}
        if rng.random() < 0.4:
            given["tables"] = "linear"
        return given | ({"l": level} if rng.random() < 0.5 else {})
    if method == "mondrian":
        return guarantee(rng) | rng.choice(
            ({}, {"mode": "relaxed"}, {"cut": "median"}, {"cut": "median", "width": "spread"})
        )
    if method == "incognito":
        return guarantee(rng) | rng.choice(({}, {"max_suppression": 0.2}, {"branching": 2}))
    if method == "anatomy":
        return {"l": level} | rng.choice(({}, {"groups": "sse"}))
    if method == "slicing":
        return {"l": level} | rng.choice(({}, {"sensitive_column": "alone"}))
    if method == "merging":
        return {"l": level, "k": k} | rng.choice(({}, {"fake": 3}, {"unseen_pairs": True, "min_expected": 0.5}))
    if method in ("one_to_m_generalize", "rmr"):
        second = {"l": rng.choice((1, 1, 2))} if method == "one_to_m_generalize" else {"m": rng.choice((1, 2))}
        return {"k": k} | second
    return {
        "composition": {"k": k, "rho": rng.choice((0.5, 1.0))},
        "probabilistic": {"k": k, "d": rng.choice((1, 2))},
        "hybrid": {"k": k, "q": rng.choice((0.0, 0.8, 1.0))},
        "microaggregate": {"k": k} | rng.choice(({}, {"groups": "mdav"})),
        "rank_swap": {"p": rng.choice((1, 10, 100))},
        "rr_distort": rng.choice(({"p": 0.9}, {"p": 1}, {"l": 2}, {"l": 1.5, "domain": "observed"})),
        "diffgen": {"epsilon": rng.choice((0.1, 5.0)), "domain": "observed", "specializations": rng.choice((0, 2, 10))},
        "laplace_on_groups": {"k": k, "epsilon": rng.choice((0.1, 5.0))},
    }[method]


METHODS = (
    "muco", "mondrian", "incognito", "anatomy", "slicing", "merging", "composition", "probabilistic", "hybrid",
    "microaggregate", "rank_swap", "rr_distort", "diffgen", "laplace_on_groups",
)  # fmt: skip
OF_PERSONS = ("one_to_m_generalize", "rmr")
COUNTS = ("diffgen", "laplace_on_groups")


def written(params: Mapping[str, Any]) -> str:
    """Named arguments."""
    shown = {name: text(v) if isinstance(v, str) else str(v).lower() for name, v in params.items()}
    return ", ".join(f"{name} := {value}" for name, value in shown.items())


def method_call(table: Table, rng: random.Random) -> Call:
    """A method on a table."""
    method = rng.choice(OF_PERSONS if table.of("person") and rng.random() < 0.8 else METHODS)
    params = _parameters(method, rng)
    told = roles(table, method, rng, keep=method not in COUNTS)
    if method in COUNTS and ", keep" not in told and table.labelled and table.of("insensitive"):
        told += ", keep := []"
    linked = "" if method in COUNTS else ", row_id := true"
    seed = f", seed := {rng.randrange(1000)}" if rng.random() < 0.5 else ""
    return Call(method, f"{method}({table.argument}, {written(params)}{told}{linked}{seed})", params)


def query(table: Table, rng: random.Random) -> str:
    """A query over the original."""
    asked = table.of("quasi") + table.of("sensitive")
    counted = [c for c in asked if c.type in ARITHMETIC and not c.tree]
    shown = ["count(*) as n"]
    if counted and rng.random() < 0.5:
        shown.append(f"{rng.choice(('sum', 'avg', 'min', 'max'))}({quoted(rng.choice(counted).name)}) as v")
    where = " where " + _condition(asked, rng) if rng.random() < 0.8 else ""
    if rng.random() < 0.4:
        key = quoted(rng.choice(asked).name)
        return f"select {key} as g, {', '.join(shown)} from {quoted(table.name)}{where} group by {key}"
    return f"select {', '.join(shown)} from {quoted(table.name)}{where}"


def _condition(columns: list[Column], rng: random.Random, depth: int = 0) -> str:
    if depth < 2 and rng.random() < 0.3:
        word = rng.choice(("and", "or"))
        return f"({_condition(columns, rng, depth + 1)} {word} {_condition(columns, rng, depth + 1)})"
    column = rng.choice(columns)
    name, value = quoted(column.name), lambda: f"cast({rng.choice(VALUES[column.type])} as {column.type})"
    return rng.choice(
        (
            f"{name} = {value()}", f"{name} <> {value()}", f"{name} < {value()}", f"{name} >= {value()}",
            f"{name} between {value()} and {value()}", f"{name} in ({value()}, {value()})", f"{name} is null",
            f"not ({name} > {value()})",
        )
    )  # fmt: skip


def measure_call(table: Table, release: Call, rng: random.Random) -> Call:
    """A measure of a release, or of the original, or a query."""
    original, rel = table.argument, "'rel'"
    qi, secret = table.of("quasi"), table.of("sensitive")
    one = rng.choice(table.of("quasi") + secret)
    both = (secret or qi)[0]
    asked = text(query(table, rng))
    pairs = {
        "information_loss": "", "distortion_ratio": "", "disclosure": "", "slicing_diversity": "", "sa_ncp": "",
        "fragment_risk": ", m := 1", "linkage_risk": f", targets := 20, p_match := {rng.choice((0.5, 1.0))}",
        "attribute_risk": ", targets := 20", "singling_out": ", attacks := 20",
        "inference": ", attacks := 20", "linkability": f", columns_a := [{text(qi[0].name)}], attacks := 20",
        "membership_risk": f", holdout := {original}, targets := 20",
        "distribution_distance": f", columns := [{text(one.name)}]",
        "workload_error": f", {rng.choice((3, 10))}, dims := {min(2, len(qi))}, selectivity := 0.5",
        "cube_error": f", dims := [{text(one.name)}]",
        "classification_accuracy": f", {text(both.name)}, folds := 2",
        "relative_error": "", "estimate": "", "rewrite_query": "", "compare": ", n := 3, dims := 1, targets := 20",
    }  # fmt: skip
    single = {
        "k_anonymity": "", "l_diversity": "", "t_closeness": "", "reidentification_risk": "", "class_statistics": "",
        "equivalence_classes": "", "kl_diversity": "", "km_anonymity": ", m := 1", "correlation": "", "describe_release": "",
        "anatomy_qit": "", "anatomy_st": "", "rr_reconstruct": f", [{text(one.name)}]",
    }  # fmt: skip
    originals = {
        "k_anonymity": "", "l_diversity": "", "t_closeness": "", "class_statistics": "", "workload": ", 5, dims := 1",
        "muco_tables": ", 0.5", "muco_groups": ", 0.5", "delta_probability": ", 0.5", "rr_parameters": ", 2", "rr_risk": ", p := 0.8",
        "diffgen_plan": ", 1.0", "correlation": "",
    }  # fmt: skip
    kind = rng.choices((pairs, single, originals), (0.6, 0.3, 0.1))[0]
    function = rng.choices(
        list(kind), [4 if f in ("relative_error", "estimate") else 0.3 if f == "compare" else 1 for f in kind]
    )[0]
    told = roles(table, function, rng)
    if function in ("compare", "describe_release", "anatomy_qit", "anatomy_st", "rr_reconstruct"):
        told = ""
    elif kind is single and not told:
        told = roles(Table(table.name, table.columns, table.rows, False), function, rng)
    elif kind is originals and function == "correlation":
        pass
    first = {"relative_error": f"{asked}, {original}, {rel}", "rewrite_query": f"{asked}, {original}, {rel}",
             "estimate": f"{asked}, {rel}, original := {original}", "compare": f"{original}, ['rel']"}.get(function)  # fmt: skip
    tables = first or {id(pairs): f"{original}, {rel}", id(single): rel, id(originals): original}[id(kind)]
    seed = ", seed := 1" if function in ("workload", "workload_error", "compare") and rng.random() < 0.5 else ""
    about = {"of": "original" if kind is originals else "release", "asked": asked}
    return Call(function, f"{function}({tables}{kind[function]}{told}{seed})", about)
