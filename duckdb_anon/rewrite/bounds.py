"""Hard bounds of aggregates, and 95% intervals of aggregates over a sample.

Where every original row is one released row, hard bounds follow: a row that qualifies whatever its true values
are counts in full, one that might counts where it moves the bound. Of rows that were left out, none or all count.

Where each row was released with probability p, the two sums are estimated instead (Horvitz and Thompson 1952):
a sum of amounts x over all rows by the sum of x / p over the released ones, its variance by the sum of
(1 - p) * x^2 / p^2. The truth lies between the two sums, so the lower one less 1.96 standard errors and the higher
one plus 1.96 enclose it with 95% at least. An AVG has an interval where no generalized cell has a say in it: the
ratio of two estimated sums (delta method).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.aggregates import Aggregate, both, certain, end_of, given, possible
from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.logic import LATE, present
from duckdb_anon.rewrite.parts import Part
from duckdb_anon.rewrite.uncertainty import REACH

Texts = tuple[str, str]


@dataclass(frozen=True)
class _Rows:
    """What each row of the final query tells of one aggregate.

    Attributes:
        may, must: whether it may and must qualify.
        least, most: ends of the value; over a release row where `spread`, else over the final query's row.
        spread: whether a row of the final query stands for several released rows.
    """

    may: str
    must: str
    least: str
    most: str
    spread: bool


def bounds(aggregate: Aggregate, where: exp.Expr | None, early: Early, number: int) -> Texts | None:
    """Hard lower and upper bounds of an aggregate, None where there are none.

    Args:
        aggregate: the aggregate.
        where: conditions of the query that are still to be satisfied, None if there are none.
        early: provides what is possible and certain.
        number: number of the grouping set.
    """
    missing = early.model.missing if aggregate.kind == "count" else ""
    if not early.model.bounded or not (early.model.complete or missing):
        return None
    rows = _read(aggregate, where, early, number)
    if rows is None:
        return None
    if missing:
        low, high = _sums(aggregate, rows, early, lambda amount: amount)
        return low, f"{high} + {missing}"
    if aggregate.kind in ("avg", "min", "max"):
        return _extremes(aggregate.kind, rows, early)
    return _sums(aggregate, rows, early, lambda amount: amount)


def sample_interval(aggregate: Aggregate, where: exp.Expr | None, early: Early, number: int) -> Texts | None:
    """Ends of a 95% interval of COUNT, SUM or AVG over all rows of which a sample was released; None elsewhere."""
    if not early.model.bounded or not early.model.rate or aggregate.kind not in ("count", "sum", "avg"):
        return None
    rows = _read(aggregate, where, early, number)
    if rows is None:
        return None
    rate = early.model.rate if rows.spread else early.column("key", early.model.rate)
    if aggregate.kind == "avg":
        return _ratio(rows, rate)
    totals = _sums(aggregate, rows, early, lambda x: f"({x}) / {rate}")
    squares = _sums(aggregate, rows, early, lambda x: f"(1 - {rate}) * (({x}) / {rate}) ** 2")
    low, high = (f"{REACH} * sqrt({square})" for square in squares)
    low = f"{totals[0]} - {low}"
    return (f"greatest({low}, 0)" if aggregate.kind == "count" else low), f"{totals[1]} + {high}"


def _ratio(rows: _Rows, rate: str) -> Texts | None:
    if rows.spread or rows.may != rows.must or rows.least != rows.most:
        return None
    value, there = f"({rows.least})::double", f"filter (where {rows.may})"
    mean = f"(sum({value} / {rate}) {there} / sum(1 / {rate}) {there})"
    scale = f"(1 - {rate}) / {rate} ** 2"
    squares = [f"sum({scale} * {value} ** {power}) {there}" for power in (2, 1, 0)]
    variance = f"({squares[0]} - 2 * {mean} * {squares[1]} + {mean} ** 2 * {squares[2]})"
    reach = f"{REACH} * sqrt(greatest({variance}, 0)) / (sum(1 / {rate}) {there})"
    return f"{mean} - {reach}", f"{mean} + {reach}"


def _read(aggregate: Aggregate, where: exp.Expr | None, early: Early, number: int) -> _Rows | None:
    condition = both(where, aggregate.condition)
    value = aggregate.value
    if value is not None:
        if early.units.of(value) is None:
            return None
        condition = both(condition, present(value, early.units.of))
    if any(part.signed or part.counted for part in _touched(early, condition, value)):
        return None
    if early.spread and early.membership is None:
        return None
    may, must = possible(condition, early), certain(condition, early)
    if not early.spread:
        ends = ("1", "1") if value is None else tuple(end_of(early, value, where, aggregate, e) for e in (True, False))
        return _Rows(may, must, ends[0], ends[1], False)
    may, must = f"_first{number} and {may}", f"_first{number} and _whole{number} and {must}"
    if value is None:
        return _Rows(may, must, "1", "1", True)
    unit = early.units.of(value)
    if unit is None or unit == LATE:
        return None
    condition_on_it = given(early, unit, where, aggregate)
    least, most = (early.end(end, value, unit, condition_on_it) for end in (True, False))
    return _Rows(may, must, least, most, True)


def _touched(early: Early, condition: exp.Expr, value: exp.Expr | None) -> list[Part]:
    """Parts that have a say in an aggregate."""
    columns = early.units.late | early.units.columns(condition)
    columns |= early.units.columns(value) if value is not None else set()
    return [part for part in early.model.parts if part.counted or columns & set(part.columns)]


def _sums(aggregate: Aggregate, rows: _Rows, early: Early, of: Callable[[str], str]) -> Texts:
    """Least and most of a COUNT or SUM of `of` what each row adds."""

    def added(amount: str) -> str:
        whole = amount if amount == "1" else f"coalesce({amount}, 0)"
        return early.column("sum", of(whole)) if rows.spread else of(amount)

    if aggregate.value is None:
        low, high = (
            f"coalesce(sum(case when {test} then {added('1')} else 0 end), 0)" for test in (rows.must, rows.may)
        )
        return low, high
    low, high = (
        f"sum(case when {rows.must} then {added(end)} when {rows.may} then {added(f'{pick}({end}, 0)')} end)"
        for end, pick in ((rows.least, "least"), (rows.most, "greatest"))
    )
    return low, high


def _extremes(kind: str, rows: _Rows, early: Early) -> Texts:
    """Bounds of AVG, MIN and MAX from the least and most of each row that may or must qualify."""
    least, most = rows.least, rows.most
    if rows.spread:
        # over the released rows of one cell, AVG and MIN want the least of the lower ends, MAX the most
        picks = ("max" if kind == "max" else "min", "min" if kind == "min" else "max")
        least, most = (early.column(pick, end) for pick, end in zip(picks, (least, most), strict=True))
    lows = {"avg": ("min", rows.may), "min": ("min", rows.may), "max": ("max", rows.must)}
    highs = {"avg": ("max", rows.may), "min": ("min", rows.must), "max": ("max", rows.may)}
    low, high = (
        f"{pick}(case when {test} then {end} end)" for end, (pick, test) in ((least, lows[kind]), (most, highs[kind]))
    )
    return low, high
