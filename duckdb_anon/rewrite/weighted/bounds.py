"""Hard bounds from what every released row may and must be; 95% intervals where the method publishes its randomness.

Each released row, with the values its cells may stand for, gives four numbers of an aggregate in a group: whether it
may and whether it must belong there, and the least and the most its value can be. COUNT lies between the rows that must
and those that may; SUM and AVG follow from the ends of the values (confidence 1).

Randomized columns: a total is a sum over independent rows of weights W with E[W] = f, the row's true contribution. Its
variance is the sum of E[W^2] - f^2, which the sum of W^2 - V estimates without bias, V being the weight of f^2 (Guo,
Ying and Wu 2011, equation 2). Means: delta method (confidence 0.95).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.query.template import tree
from duckdb_anon.rewrite.query.walking import all_of

REACH = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


@dataclass(frozen=True)
class Measure:
    """One aggregate of the final SELECT.

    Attributes:
        place: number of its output column.
        kind: 'count', 'sum' or 'avg'.
        value: what is summed, None for rows.
        condition: what a row must satisfy, NULL values left out.
    """

    place: int
    kind: str
    value: exp.Expr | None
    condition: exp.Expr | None


def read_measure(place: int, node: exp.Expr) -> Measure | None:
    """An output column that is one COUNT, SUM or AVG; None for any other."""
    where = None
    if isinstance(node, exp.Filter):
        node, where = node.this, node.expression.this
    argument = node.this
    if isinstance(argument, exp.Distinct):
        return None
    if isinstance(node, exp.CountIf):
        return Measure(place, "count", None, _both(where, argument))
    if isinstance(node, exp.Count):
        plain = argument is None or isinstance(argument, (exp.Star, exp.Literal))
        return Measure(place, "count", None, where if plain else _both(where, _present(argument)))
    if isinstance(node, (exp.Sum, exp.Avg)):
        return Measure(place, type(node).__name__.lower(), argument, _both(where, _present(argument)))
    return None


def hard_bounds(
    measures: Sequence[Measure], keys: Sequence[exp.Expr], possible: str, ends: dict[str, tuple[str, str]], rest: str
) -> str:
    """SELECT of the keys `k0`, `k1`, ... and `low_i`, `high_i` of each measure.

    Args:
        measures: the aggregates.
        keys: expressions of GROUP BY.
        possible: FROM clause of the possible values of each row: `_id`, `_records`, `_hits`, `_total`.
        ends: columns whose values are known by their ends: SQL of the column to SQL of its lower and upper end.
        rest: WHERE clause, or ''.
    """
    shown = [f"{key.sql('duckdb')} as k{i}" for i, key in enumerate(keys)]
    per_cell = ["_id", "any_value(_records) as n", "any_value(_total) as total", *shown]
    for i, one in enumerate(measures):
        where = f" filter (where {one.condition.sql('duckdb')})" if one.condition is not None else ""
        per_cell.append(f"coalesce(sum(_hits){where}, 0) as hits_{i}")
        if one.value is not None:
            corners = _corners(one.value, ends)
            per_cell.append(f"min(least({', '.join(corners)})){where} as least_{i}")
            per_cell.append(f"max(greatest({', '.join(corners)})){where} as most_{i}")
    grouped = ", ".join(["_id", *(f"k{i}" for i, _ in enumerate(keys))])
    cells = f"select {', '.join(per_cell)} from {possible}{rest} group by {grouped}"
    found = [f"k{i}" for i, _ in enumerate(keys)]
    for i, one in enumerate(measures):
        found += _ends(i, one)
    last = f" group by {', '.join(f'k{i}' for i, _ in enumerate(keys))}" if keys else ""
    return f"select {', '.join(found)} from ({cells}) as c{last}"


def _ends(i: int, one: Measure) -> list[str]:
    may, must = f"hits_{i} > 0", f"hits_{i} = total"
    if one.kind == "count":
        return [
            f"coalesce(sum(n) filter (where {must}), 0) as low_{i}",
            f"coalesce(sum(n) filter (where {may}), 0) as high_{i}",
        ]
    finite = (
        f"coalesce(bool_and(isfinite(least_{i}::double) and isfinite(most_{i}::double)) filter (where {may}), true)"
    )
    found = []
    for name, end, toward_none in (("low", f"least_{i}", "least"), ("high", f"most_{i}", "greatest")):
        total = f"sum(case when {must} then n * {end} when {may} then n * {toward_none}({end}, 0) end)"
        bound = total if one.kind == "sum" else _mean(i, name, end, total, may, must)
        found.append(f"case when {finite} then {bound} end as {name}_{i}")
    return found


def _mean(i: int, name: str, end: str, total: str, may: str, must: str) -> str:
    """The least (or greatest) mean of any rows that hold all that must qualify.

    With S and n the sum and number of the must rows, m the least value of the c others that may qualify: a mean of k of
    them is at least (S + k m) / (n + k), which is monotone in k, so it is least at k = 0 or at k = c.
    """
    pick, furthest = ("least", "min") if name == "low" else ("greatest", "max")
    others = f"{may} and not {must}"
    surely, doubtful = (f"coalesce(sum(n) filter (where {one}), 0)" for one in (must, others))
    summed = f"sum(n * {end}) filter (where {must})"
    far = f"{furthest}({end}) filter (where {others})"
    return (
        f"{pick}({summed} / nullif({surely}, 0), (coalesce({summed}, 0) + {doubtful} * coalesce({far}, 0)) "
        f"/ nullif({surely} + {doubtful}, 0))"
    )


def _corners(value: exp.Expr, ends: dict[str, tuple[str, str]]) -> list[str]:
    """SQL of a value that is linear in each column, at every combination of their ends."""
    columns = sorted({one.sql("duckdb") for one in all_of(value, exp.Column)} & ends.keys())
    corners = []
    for chosen in itertools.product((0, 1), repeat=len(columns)):
        made = value.copy()
        if isinstance(made, exp.Column) and columns:
            corners.append(ends[columns[0]][chosen[0]])
            continue
        for node in list(all_of(made, exp.Column)):
            name = node.sql("duckdb")
            if name in columns:
                node.replace(exp.Var(this=ends[name][chosen[columns.index(name)]]))
        corners.append(made.sql("duckdb"))
    return corners


def intervals(measures: Sequence[Measure], keys: Sequence[exp.Expr], relation: str, rest: str) -> str:
    """SELECT of the keys and `low_i`, `high_i`: 95% intervals of totals over inverted channels.

    Args:
        measures: the aggregates.
        keys: expressions of GROUP BY.
        relation: FROM clause of the weighted relation, with `_id`, `_records`, `_share`.
        rest: WHERE clause, or ''.
    """
    per_cell = ["_id", "any_value(_records) as n", *(f"{key.sql('duckdb')} as k{i}" for i, key in enumerate(keys))]
    for i, one in enumerate(measures):
        where = f" filter (where {one.condition.sql('duckdb')})" if one.condition is not None else ""
        value = "1" if one.value is None else f"({one.value.sql('duckdb')})::double"
        per_cell += [
            f"coalesce(sum(_share * {value}){where}, 0) as w_{i}",
            f"coalesce(sum(_share * {value} * {value}){where}, 0) as v_{i}",
            f"coalesce(sum(_share){where}, 0) as c_{i}",
        ]
        if one.kind == "avg":
            per_cell.append(f"coalesce(sum(_share * {value}){where}, 0) as x_{i}")
    grouped = ", ".join(["_id", *(f"k{i}" for i, _ in enumerate(keys))])
    cells = f"select {', '.join(per_cell)} from {relation}{rest} group by {grouped}"
    found = [f"k{i}" for i, _ in enumerate(keys)]
    for i, one in enumerate(measures):
        middle, variance = f"sum(n * w_{i})", f"sum(n * (w_{i} * w_{i} - v_{i}))"
        if one.kind == "avg":
            count = f"sum(n * c_{i})"
            mean = f"({middle} / {count})"
            both = f"sum(n * (w_{i} * c_{i} - x_{i}))"
            counted = f"sum(n * (c_{i} * c_{i} - c_{i}))"
            variance = f"({variance} - 2 * {mean} * {both} + {mean} * {mean} * {counted}) / ({count} * {count})"
            middle = mean
        reach = f"{REACH} * sqrt(greatest({variance}, 0))"
        found += [f"{middle} - {reach} as low_{i}", f"{middle} + {reach} as high_{i}"]
    last = f" group by {', '.join(f'k{i}' for i, _ in enumerate(keys))}" if keys else ""
    return f"select {', '.join(found)} from ({cells}) as c{last}"


def _present(value: exp.Expr) -> exp.Expr:
    return tree("{x} is not null", x=value)


def _both(one: exp.Expr | None, other: exp.Expr) -> exp.Expr:
    return other.copy() if one is None else tree("{a} and {b}", a=one, b=other)
