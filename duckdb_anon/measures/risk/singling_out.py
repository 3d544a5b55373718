"""singling_out: whether a release tells predicates that hold for exactly one person.

Predicates that hold for exactly one released row succeed when they hold for exactly one original row. 'univariate':
a value that occurs once, or what lies at or beyond the smallest or largest value of an ordered column. 'multivariate':
the values of a random released row in `n` random columns, equality for nominal ones, >= above the median and <= below
it for ordered ones. Baseline: the same with values at random. Control: predicates held against `holdout`.
Source: Giomi et al. (2023), section 4.1; WP29, Opinion 05/2014. Range [0, 1].
Cost: attempts (at most 20 an attack) times rows times n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.risk.wp29 import (
    BOXES,
    HOLDOUT,
    Criterion,
    Numbers,
    answer,
    columns_of,
    numbers,
    of_rows,
    rates,
)  # fmt: skip
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import ReadTable

Term = tuple[int, str, float]
MODES = ("univariate", "multivariate")
TRIES = 20
ADVICE = " (published as it is; sensitive_edges := 10 in the method's call gives each of its values 10 carriers)"


def singling_out(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a mode."""
    read = dict(zip(params["read"], tables, strict=True))
    if params["columns"] == []:
        raise ParameterError("singling_out: columns := [] names none; leave it out, or name those to look at")
    names, left_out = columns_of("singling_out", params, params["columns"], "columns"), ""
    if params["columns"] is None:
        names, left_out = of_rows(names, read["release"])
    release, boxes = numbers("singling_out", read, "release", names)
    original, _ = numbers("singling_out", read, "original", names)
    absent = numbers("singling_out", read, "holdout", names)[0] if "holdout" in read else None
    edges = read["release"].numbers.get(read["release"].contents.edges)
    coarser = [] if edges is None else [f"sensitive values have {edges[0]:g} carriers or more"]
    rows = []
    for mode in MODES if params["mode"] == "both" else (params["mode"],):
        make = univariate if mode == "univariate" else multivariate
        predicates = make(release, params["n"], params["attacks"], rng)
        guesses = [_random(release, 1 if mode == "univariate" else params["n"], rng) for _ in predicates]
        attack, baseline = (np.array([singled(original, p) for p in which]) for which in (predicates, guesses))
        control = None if absent is None else np.array([singled(absent, p) for p in predicates])
        if not len(predicates):
            attack = baseline = np.zeros(1)
            control = None if absent is None else np.zeros(1)
        notes = [mode, *([BOXES] if boxes else []), *[left_out] * (left_out != ""), *coarser]
        if mode == "univariate" and len(predicates):
            columns = np.bincount([p[0][0] for p, hit in zip(predicates, attack, strict=True) if hit], minlength=1)
            if columns.any():
                most = names[int(columns.argmax())]
                published = most in {info.name for info in params["roles"].sensitive}
                notes.append(f"most through column {most}{ADVICE if published else ''}")
        row = rates("singling_out", attack, baseline, control, "; ".join(notes))
        rows.append({**row, "attacks": len(predicates)})
    return answer(rows)


def univariate(release: Numbers, n: int, attacks: int, rng: np.random.Generator) -> list[list[Term]]:
    """Predicates on one column that hold for exactly one released row.

    `n`: persons of the original.
    `attacks`: how many predicates.
    """
    found: list[list[Term]] = []
    for a in range(len(release.names)):
        values, counts = np.unique(release.values[a], return_counts=True)
        found += [[(a, "=", float(v))] for v in values[counts == 1]]
        if not release.nominal[a]:
            found += [[(a, "<=", float(values[0]))]] if counts[0] == 1 else []
            found += [[(a, ">=", float(values[-1]))]] if counts[-1] == 1 else []
    return [found[i] for i in rng.permutation(len(found))[:attacks]]


def multivariate(release: Numbers, n: int, attacks: int, rng: np.random.Generator) -> list[list[Term]]:
    """Predicates on n columns of a random row that hold for exactly one released row.

    `n`: persons of the original.
    `attacks`: how many predicates.
    """
    median = np.median(release.values, axis=1)
    n = min(n, len(release.names))
    found: dict[tuple[Term, ...], None] = {}
    for attempt in range(TRIES * attacks):
        if len(found) == attacks:
            break
        if attempt % 100 == 0:
            tick()
        row = int(rng.integers(release.rows))
        terms = []
        for a in np.sort(rng.choice(len(release.names), n, replace=False)).tolist():
            value = float(release.values[a, row])
            terms.append((a, "=" if release.nominal[a] else ">=" if value > median[a] else "<=", value))
        if singled(release, terms):
            found[tuple(terms)] = None
    return [list(terms) for terms in found]


def _random(release: Numbers, n: int, rng: np.random.Generator) -> list[Term]:
    """A predicate with values of random rows, drawn apart for each column, and random comparisons."""
    terms = []
    for a in rng.choice(len(release.names), min(n, len(release.names)), replace=False).tolist():
        value = float(release.values[a, rng.integers(release.rows)])
        terms.append((a, "=" if release.nominal[a] else str(rng.choice([">=", "<="])), value))
    return terms


def singled(table: Numbers, terms: Sequence[Term]) -> float:
    """1 if the terms hold together for exactly one row, else 0."""
    rows: Any = slice(None)
    for a, sign, value in terms:
        column = table.values[a][rows]
        hold = column == value if sign == "=" else column >= value if sign == ">=" else column <= value
        rows = np.flatnonzero(hold) if isinstance(rows, slice) else rows[hold]
        if not len(rows):
            return 0.0
    return float(len(rows) == 1)


MEASURE = Criterion(
    name="singling_out",
    summary="singling out (WP29): conditions on the release that hold for exactly one individual",
    example="FROM singling_out('people', 'release', attacks := 100)",
    instead=("linkage_risk", "attribute_risk"),
    parameters=(
        Parameter("mode", "'univariate', 'multivariate' or 'both'", "text", "both", (*MODES, "both")),
        Parameter("n", "number of columns in a multivariate predicate", "integer", 4, low=1),
        Parameter("columns", "columns of predicates (default: quasi-identifiers and sensitive)", "names"),
        Parameter("attacks", "number of predicates", "integer", 500, low=1, high=20_000),
        HOLDOUT,
    ),
    compute=singling_out,
)
