"""DiffGen: generalization by private specializations, with noisy counts. Differentially private.

For every combination of generalized values and every class, empty ones too, a box and a noisy count are released.
Guarantee: pure epsilon-differential privacy for tables that differ by one row more or less; an individual with several
rows is protected row by row. It assumes that taxonomies, bounds and classes do not come from the data: with
`domain := 'declared'` numeric predictors need `bounds` and other columns a hierarchy; with 'observed' they are read
from the table and count as public knowledge. What the mechanisms spend is composed and checked before the release
(`diffgen_plan` shows how). Counts are whole and may be negative: noise is OpenDP's discrete Laplace, choices its noisy
max (extra `dp`). `seed` imitates them for tests and protects nothing.

Source: Mohammed, Chen, Fung and Yu (2011), KDD. Departure: split points are ends of 1,024 equal parts of a domain
(moved halfway between two whole numbers), not values that occur, which would not be private.
Cost: O(d n) a round, and a draw for each released cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, prod
from typing import Any

import numpy as np

from duckdb_anon.kernels.differential_privacy.diffgen_search import Budget, Predictor, Search
from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms, check_written
from duckdb_anon.methods.generalized_layout import cell_layout
from duckdb_anon.model.coded_table import FARTHEST, Attribute, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, ColumnInfo, ColumnPlan, Method, Parameter, Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_formats import COUNT
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Node, Real, Source, Struct, ValueSet, Whole

MAX_CELLS = Parameter(
    "max_cells", "maximum number of cells and list entries that are written", "integer", 1_000_000, low=1
)
SPENDING = (
    Parameter("epsilon", "privacy budget, for tables that differ by one record", "number", REQUIRED, above=0),
    Parameter("specializations", "number of specializations, h", "integer", 10, low=0, high=1000),
)

BOUNDS = Parameter("bounds", "numeric column to [low, high], {'age': [0, 120]}", "mapping")
_WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT")
"""Whole numbers that a BIGINT may not hold; the ends of their boxes are of DOUBLE."""
_FARTHEST_WHOLE = 2.0**52
"""Beyond it a number halfway between two whole ones is none of float64."""


def predictor_of(attribute: Attribute, bounds: tuple[float, float] | None) -> Predictor:
    """Prepare one quasi-identifier."""
    if attribute.hierarchy is not None:
        leaves = attribute.place_of_code[attribute.codes].astype(np.float64)
        return Predictor(leaves, 0, attribute.hierarchy.leaves, attribute.hierarchy)
    if attribute.kind == "nominal":
        return Predictor(attribute.codes.astype(np.float64), 0, attribute.domain)
    if attribute.special_from < attribute.domain:
        raise RequirementError(
            f"diffgen: '{attribute.name}' has rows that are NULL or not finite; fill them, leave them out, or say "
            f"categorical := [{literal(attribute.name)}]"
        )
    low, high = bounds or (float(attribute.positions[0]), float(attribute.positions[-1]))
    integral = _is_integral(attribute)
    if integral:
        low, high = ceil(low), floor(high)
        if low > high:
            raise ParameterError(f"diffgen: there is no whole number within the bounds of '{attribute.name}'")
    values = np.clip(attribute.positions, low, high)[attribute.codes]
    # a whole number is the middle of a cell of length 1
    room = 0.5 if integral else 0.0
    return Predictor(values, low - room, high + room, numeric=True, integral=integral)


def _is_integral(attribute: Attribute) -> bool:
    scale = attribute.scale
    return scale is not None and (scale.line == "integer" or (scale.line == "decimal" and not scale.digits))


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Specialize, count, add noise."""
    bounds = {fold(name): (float(low), float(high)) for name, (low, high) in (params["bounds"] or {}).items()}
    for attribute in table.qi:
        _check_reach(attribute, bounds.get(fold(attribute.name)))
    predictors = [predictor_of(a, bounds.get(fold(a.name))) for a in table.qi]
    sensitive = table.sensitive[0]
    classes = sensitive.hierarchy.leaves if sensitive.hierarchy is not None else sensitive.domain
    class_of_row = sensitive.place_of_code[sensitive.codes]
    budget = Budget(params["epsilon"], sum(p.numeric for p in predictors), params["specializations"])
    mechanisms = Mechanisms("diffgen", rng if params.get("seed") is not None else None)
    ledger = Ledger(params["epsilon"])
    Search(predictors, class_of_row.astype(np.int64), classes, budget, params["utility"], mechanisms, ledger).run()
    shape = (*(len(p.cut) for p in predictors), classes)
    _check_size(predictors, shape, params)
    cell = np.ravel_multi_index((*(p.node_of_record for p in predictors), class_of_row), shape)
    counts, loss = mechanisms.counts(np.bincount(cell, minlength=prod(shape)), budget.counts)
    ledger.spend([loss])
    ledger.check("diffgen")
    places = np.unravel_index(np.arange(prod(shape)), shape)
    cells: dict[str, Cells] = {
        a.name: _boxes(a, p, index) for a, p, index in zip(table.qi, predictors, places, strict=False)
    }
    cells[sensitive.name] = _class_cells(sensitive, places[-1])
    return cells | {COUNT.key: Whole(counts), ROWS: Source(np.full(prod(shape), -1, dtype=np.int64))}


def _check_reach(attribute: Attribute, bounds: tuple[float, float] | None) -> None:
    """Raise for numbers so large that their differences are none; the bounds, where given, and nothing of the rows."""
    farthest = max(map(abs, bounds)) if bounds else 0.0
    if bounds is None and attribute.kind == "ordered" and attribute.scale is not None:
        farthest = float(np.abs(attribute.positions[: attribute.special_from]).max(initial=0.0))
    limit = _FARTHEST_WHOLE if _is_integral(attribute) else FARTHEST
    if farthest >= limit:
        raise ColumnError(
            f"diffgen: column '{attribute.name}' reaches beyond {limit:g}, where neighbouring numbers are equal; give "
            f"bounds := {{{literal(attribute.name)}: [low, high]}} nearer to 0, or name it in categorical := [...]"
        )


def _check_size(predictors: list[Predictor], shape: tuple[int, ...], params: Params) -> None:
    """Raise where more would be written than `max_cells`: cells, and the entries of lists of values in them."""
    cells = prod(shape)
    flat = [p for p in predictors if not p.numeric and p.tree is None]
    entries = sum(cells // len(p.cut) * int(p.high - p.low) for p in flat)
    less = " or give hierarchies, whose nodes are single labels," if flat else ""
    remedy = f"lower specializations := {params['specializations']}{less}"
    check_written("diffgen", cells, entries, params["max_cells"], remedy)


def _boxes(attribute: Attribute, predictor: Predictor, index: IntArray) -> Cells:
    """The cut's node of each released cell."""
    if predictor.numeric:
        low, high = (np.array([getattr(node, end) for node in predictor.cut]) for end in ("low", "high"))
        if predictor.integral:
            first, last = np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64)
            return Struct({"lower": Whole(first[index]), "upper": Whole(last[index])})
        return Struct({"lower": Real(low[index]), "upper": Real(high[index])})
    if predictor.tree is not None:
        return Node(predictor.tree.labels, np.array([n.label for n in predictor.cut], dtype=np.int32), index)
    sizes = [int(node.high - node.low) for node in predictor.cut]
    members = [np.arange(int(node.low), int(node.high)) for node in predictor.cut]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ValueSet(attribute.name, offsets, np.concatenate(members).astype(np.int32), index)


def _class_cells(sensitive: Attribute, index: IntArray) -> Cells:
    if sensitive.hierarchy is None:
        return Coded(sensitive.name, index.astype(np.int32))
    return Node(sensitive.hierarchy.labels, sensitive.hierarchy.node_of_leaf, index)


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Boxes (BIGINT for most whole numbers, else DOUBLE), the sensitive column, `noisy_count`; checks its domains."""
    roles.one_sensitive("diffgen")
    check_bounds("diffgen", roles.qi, params["bounds"])
    dates = [info.name for info in roles.qi if info.kind == "ordered" and is_moment(info.type)]
    if dates:
        raise ColumnError(f"diffgen: {listed(dates)} are dates or times; turn them into numbers, such as a year")
    if params["domain"] == "declared":
        _check_declared(roles, params)
    numeric = {
        info.name: ColumnPlan(info.name, Struct, fields=(ColumnPlan("lower", kind), ColumnPlan("upper", kind)))
        for info in roles.qi
        if info.kind == "ordered"
        for kind in (Whole if is_integer(info.type) and info.type not in _WIDE else Real,)
    }
    in_tree = {i.name: ColumnPlan(i.name, Node) for i in roles.sensitive if i.kind == "hierarchy"}
    planned = cell_layout("diffgen", roles)
    return tuple({**numeric, **in_tree}.get(plan.name, plan) for plan in planned)


def check_bounds(function: str, infos: Sequence[ColumnInfo], bounds: Mapping[str, Any] | None) -> None:
    """Bounds name ordered columns of number types and are two numbers, low below high."""
    numeric = {fold(info.name): info for info in infos if info.kind == "ordered" and not is_moment(info.type)}
    for name, ends in (bounds or {}).items():
        if fold(name) not in numeric:
            raise ColumnError(
                f"{function}: bounds := names '{name}', which is no numeric column it releases"
                f"{nearest(name, (i.name for i in numeric.values()))}"
            )
        if not isinstance(ends, (list, tuple)) or len(ends) != 2 or not float(ends[0]) < float(ends[1]):
            raise ParameterError(f"{function}: bounds of '{name}' must be [low, high] with low below high")


def _check_declared(roles: Roles, params: Params) -> None:
    bounded = {fold(name) for name in params["bounds"] or {}}
    open_ = [i.name for i in roles.qi if i.kind == "ordered" and fold(i.name) not in bounded]
    flat = [i.name for i in roles.qi if i.kind == "nominal"]
    flat += [i.name for i in roles.sensitive if i.kind != "hierarchy"]
    if open_ or flat:
        raise ParameterError(
            "diffgen: the domains must not come from the data: "
            + (f"give bounds := {{'{open_[0]}': [low, high]}} for {listed(open_)}; " if open_ else "")
            + (f"give hierarchies := {{'{flat[0]}': 'its_table'}} for {listed(flat)}; " if flat else "")
            + "or say domain := 'observed' if the values that occur are public knowledge"
        )


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Keep bounds as plain numbers."""
    if params["bounds"]:
        bounds = params["bounds"].items()
        params["bounds"] = {name: list(ends) if isinstance(ends, (list, tuple)) else ends for name, ends in bounds}
    return params


METHOD = Method(
    name="diffgen",
    summary="epsilon-differentially private generalization with noisy counts",
    paper="Mohammed, Chen, Fung & Yu (2011), KDD, section 4",
    example="CREATE TABLE noisy AS FROM diffgen('people', 1.0, domain := 'observed')",
    smallest="epsilon := 5.0, domain := 'observed'",
    trials=(
        "epsilon := 0.1, domain := 'observed', specializations := 0",
        "epsilon := 5.0, domain := 'observed', specializations := 2",
    ),
    formats=("boxes", "counts"),
    differentially_private=True,
    instead=("mondrian", "one_to_m_generalize"),
    parameters=(
        *SPENDING,
        Parameter("utility", "score of a specialization", "text", "max", ("max", "infogain")),
        BOUNDS,
        Parameter(
            "domain",
            "'declared': bounds and hierarchies are given; 'observed': what occurs is public knowledge",
            "text",
            "declared",
            ("declared", "observed"),
        ),
        MAX_CELLS,
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
    refine=refine,
)
