"""Each aggregate of a query as an expression over the released rows' shares.

COUNT sums the chances that a row qualifies, SUM the expected amounts, AVG divides the two. MIN and MAX are
the ends of what is possible.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.intervals import IntervalPart
from duckdb_anon.rewrite.logic import Term, amount, event, normal, presence, product, split
from duckdb_anon.rewrite.parse import plain, to_sql
from duckdb_anon.rewrite.parts import parsed

_KNOWN = (exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max)


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query.

    Attributes:
        kind: 'count', 'sum', 'avg', 'min' or 'max'.
        value: its argument; None for COUNT.
        condition: what a row must satisfy: FILTER, and that the argument is not NULL.
    """

    kind: str
    value: exp.Expr | None
    condition: exp.Expr


def read_aggregate(node: exp.Expr) -> Aggregate:
    """Read an aggregate with its FILTER, if it has one.

    Raises:
        RewriteError: for an aggregate that cannot be estimated.
    """
    inner = node.this if isinstance(node, exp.Filter) else node
    where = node.expression.this if isinstance(node, exp.Filter) else exp.true()
    text = plain(inner)
    if not isinstance(inner, _KNOWN):
        raise RewriteError(
            f"{text} cannot be estimated from the release; estimated are count, count_if, sum, avg, min and max"
        )
    argument = inner.this
    if isinstance(argument, exp.Distinct) or inner.args.get("expressions"):
        raise RewriteError(
            f"{text} cannot be estimated from the release: it depends on which rows hold which value; ask for "
            "count, sum, avg, min or max without DISTINCT"
        )
    if isinstance(inner, exp.CountIf):
        # DuckDB's count_if is a sum of ones and zeros, NULL when there is nothing to add
        return Aggregate("sum", _indicator(argument), where.copy())
    kind = type(inner).__name__.lower()
    if kind == "count":
        if isinstance(argument, exp.Star) or argument is None or isinstance(argument, exp.Literal):
            return Aggregate(kind, None, where.copy())
        return Aggregate(kind, None, exp.and_(where.copy(), _not_null(argument)))
    return Aggregate(kind, argument.copy(), where.copy())


def estimate(aggregate: Aggregate, where: exp.Expr | None, early: Early) -> exp.Expr:
    """The estimate, as an expression over the final query's rows.

    Args:
        aggregate: what to estimate.
        where: conditions of the query that are still to be satisfied, None if there are none.
        early: provides shares.
    """
    condition = both(where, aggregate.condition)
    unit_of = early.units.of
    if aggregate.kind == "count":
        return parsed(f"coalesce(sum({_sum(early, event(condition, unit_of))}), 0)")
    value = aggregate.value
    assert value is not None  # noqa: S101 -- only COUNT has none
    if aggregate.kind in ("min", "max"):
        return _extreme(aggregate, where, early)
    qualifies = event(condition, unit_of)
    there = product(qualifies, presence(value, unit_of))
    amounts = product(qualifies, amount(value, unit_of))
    mass = _sum(early, there)
    total = f"sum({_sum(early, amounts)}) filter (where {mass} <> 0)"
    return parsed(total if aggregate.kind == "sum" else f"{total} / sum({mass})")


def mass(where: exp.Expr, early: Early) -> str:
    """How many original rows a row of the final query is expected to stand for."""
    return _sum(early, event(where, early.units.of))


def possible(condition: exp.Expr, early: Early) -> str:
    """Whether a row may qualify; never false for one that does."""
    return _flag("possible", normal(condition, early.units.of), early)


def certain(condition: exp.Expr, early: Early) -> str:
    """Whether a row qualifies whatever its true values are; never true for one that may not."""
    return _flag("certain", normal(condition, early.units.of), early)


def _flag(wanted: str, condition: exp.Expr, early: Early) -> str:
    condition = condition.unnest()
    if isinstance(condition, exp.Boolean):
        return "true" if condition.this else "false"
    unit = early.units.of(condition)
    if unit is not None:
        return to_sql(early.flag(wanted, condition, unit), pretty=False)
    word = " and " if isinstance(condition, exp.And) else " or "
    sides = [_flag(wanted, side, early) for side in (condition.this, condition.expression)]
    return f"({word.join(sides)})"


def _extreme(aggregate: Aggregate, where: exp.Expr | None, early: Early) -> exp.Expr:
    value = aggregate.value
    assert value is not None  # noqa: S101 -- MIN and MAX have an argument
    if not early.model.complete or any(p.signed or p.counted for p in early.model.parts):
        raise RewriteError(
            f"{aggregate.kind}({plain(value)}) cannot be bounded from the release "
            f"{early.model.release.name}, which is sampled, noisy or randomized; ask for count, sum or avg"
        )
    condition = both(both(where, aggregate.condition), _not_null(value))
    may = possible(condition, early)
    end = end_of(early, value, where, aggregate, aggregate.kind == "min")
    if any(isinstance(part, IntervalPart) and part.name == early.units.of(value) for part in early.model.parts):
        # cells that could be anything say nothing while others have ends
        may = f"({may}) and isfinite({end})"
    return parsed(f"{aggregate.kind}({end}) filter (where {may})")


def end_of(early: Early, value: exp.Expr, where: exp.Expr | None, aggregate: Aggregate, least: bool) -> str:
    """Least or most the value can be in a row, given what the conditions say of the same part."""
    unit = early.units.of(value)
    assert unit is not None  # noqa: S101 -- mixed arguments are late
    return to_sql(early.extreme(least, value, unit, given(early, unit, where, aggregate)), pretty=False)


def given(early: Early, unit: str, where: exp.Expr | None, aggregate: Aggregate) -> exp.Expr | None:
    """What the conditions say of one part."""
    same = [c for c in split(both(where, aggregate.condition)) if early.units.of(c) == unit]
    same = [c for c in same if not isinstance(c, exp.Boolean)]
    return exp.and_(*[c.copy() for c in same]) if same else None


def _sum(early: Early, terms: list[Term]) -> str:
    pieces = [(term.sign, to_sql(early.term(term), pretty=False)) for term in terms]
    text = " ".join(f"{'+' if sign > 0 else '-'} {piece}" for sign, piece in pieces)
    return text.removeprefix("+ ") or "0"


def _indicator(condition: exp.Expr) -> exp.Expr:
    ones = exp.If(this=condition.copy(), true=exp.Literal.number(1))
    zeros = exp.If(this=exp.not_(condition.copy()), true=exp.Literal.number(0))
    return exp.Case(ifs=[ones, zeros])


def both(where: exp.Expr | None, condition: exp.Expr) -> exp.Expr:
    """Join the query's conditions and an aggregate's own."""
    if where is None:
        return condition.copy()
    if isinstance(condition, exp.Boolean) and condition.this:
        return where.copy()
    return exp.and_(where.copy(), condition.copy())


def _not_null(value: exp.Expr) -> exp.Expr:
    return exp.not_(exp.Is(this=exp.paren(value.copy()), expression=exp.null()))
