"""Each aggregate of a query as an expression over the released rows' shares.

COUNT sums the chances that a row qualifies, SUM the expected amounts, AVG divides the two. MIN and MAX are
the ends of what is possible, where `likely_extremes` has no better for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.release_formats.duckdb_types import is_moment, is_timestamp
from duckdb_anon.rewrite.estimate.expectation import (
    BY_VALUE,
    EXACT,
    Term,
    amount,
    event,
    normal,
    presence,
    product,
    split,
)
from duckdb_anon.rewrite.estimate.step_names import label_of
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import are_lists
from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.template import added, copied, every, own, some, tree, truth
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.known_expressions import counted_if, linear
from duckdb_anon.rewrite.shapes.moment_units import finite
from duckdb_anon.rewrite.shapes.parts import filtered

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
    inner, among = without_filter(node)
    where = truth(True) if among is None else among
    if not isinstance(inner, _KNOWN):
        raise RewriteError(
            f"{plain(inner)} cannot be estimated from the release; estimated are count, count(DISTINCT), count_if, "
            "sum, avg, min, max, median, quantiles, mode, stddev, variance, covar, corr and regr functions"
        )
    argument = inner.this
    if isinstance(argument, exp.Distinct) or inner.args.get("expressions") or inner.args.get("count"):
        raise RewriteError(
            f"{plain(inner)} cannot be estimated from the release: it depends on which rows hold which value; ask for "
            "count(DISTINCT) of one column, or for count, sum, avg, min or max of one value without DISTINCT"
        )
    if isinstance(inner, exp.CountIf):
        # DuckDB's count_if is a sum of ones and zeros, NULL when there is nothing to add
        return Aggregate("sum", _indicator(argument), copied(where))
    kind = type(inner).__name__.lower()
    if kind == "count":
        if isinstance(argument, exp.Star) or argument is None or isinstance(argument, exp.Literal):
            return Aggregate(kind, None, copied(where))
        return Aggregate(kind, None, every([where, _not_null(argument)]))
    return Aggregate(kind, copied(argument), copied(where))


def estimate(aggregate: Aggregate, where: exp.Expr | None, steps: Steps, in_groups: bool = False) -> exp.Expr:
    """The estimate, as an expression over the final query's rows.

    Args:
        aggregate: what to estimate.
        where: conditions of the query that are still to be satisfied, None if there are none.
        steps: provides shares.
        in_groups: whether every answer has a row of the release, so that a sum of shares is never NULL.
    """
    condition = both(where, aggregate.condition)
    home_of = steps.homes.of
    if aggregate.kind == "count":
        rows = _sum(steps, event(condition, home_of))
        return tree("sum({rows})" if in_groups and _only_shares(steps) else "coalesce(sum({rows}), 0)", rows=rows)
    value = aggregate.value
    assert value is not None  # noqa: S101 -- only COUNT has none
    _require_numbers(aggregate, value, steps)
    if aggregate.kind in ("min", "max"):
        return _extreme(aggregate, where, steps)
    qualifies = event(condition, home_of)
    counted = counted_if(value) if home_of(value) not in (EXACT, BY_VALUE) else None
    if counted is None:
        there = product(qualifies, presence(value, home_of))
        amounts = product(qualifies, amount(value, home_of))
    else:
        where_counted = product(qualifies, event(counted.condition, home_of))
        there = where_counted if counted.null_elsewhere else product(qualifies, presence(value, home_of))
        amounts = product(where_counted, amount(counted.number, home_of))
    total = tree("sum({x})", x=_sum(steps, amounts, nulls=len(amounts) == 1))
    if aggregate.kind == "sum" and _told_by_null(there, value, steps):
        return total
    if aggregate.kind == "sum" and _null_as_value(amounts, there, value, steps):
        return filtered(total, tree("{chance} <> 0", chance=_chance(Term(1, amounts[0].conditions), steps)))
    mass = _sum(steps, there)
    if not _told_by_null(there, value, steps):
        total = filtered(total, not_zero(mass, steps))
    return total if aggregate.kind == "sum" else tree("{total} / sum({mass})", total=total, mass=mass)


def valued_rows(aggregate: Aggregate, where: exp.Expr | None, steps: Steps) -> exp.Expr:
    """How many original rows have a value to aggregate.

    Args:
        aggregate: what is estimated.
        where: conditions of the query that are still to be satisfied, None if there are none.
        steps: provides shares.
    """
    assert aggregate.value is not None  # noqa: S101 -- only COUNT has none
    home_of = steps.homes.of
    there = product(event(both(where, aggregate.condition), home_of), presence(aggregate.value, home_of))
    return tree("coalesce(sum({rows}), 0)", rows=_sum(steps, there))


def _told_by_null(there: list[Term], value: exp.Expr, steps: Steps) -> bool:
    """Whether a row's amount is NULL just where it stands for no original row that has a value."""
    if not _only_shares(steps):
        return False
    has_value = Term(1, {EXACT: tree("{value} is not null", value=value)})
    return [one.key for one in there] in ([Term().key], [has_value.key])


def _null_as_value(amounts: list[Term], there: list[Term], value: exp.Expr, steps: Steps) -> bool:
    """Whether a row's amount is NULL where its value is, so that a sum need not look at the value once more.

    Not where rows are added up before: one of them may have a value and no chance, another a chance and no value.
    """
    if steps.spread or len(amounts) != 1 or set(amounts[0].values) != {EXACT} or not amounts[0].conditions:
        return False
    chance = Term(1, amounts[0].conditions)
    valued = chance.times(Term(1, {EXACT: tree("{value} is not null", value=value)}))
    alone = not {EXACT, BY_VALUE} & set(chance.conditions)
    return alone and [one.key for one in there] == [valued.key]


def _chance(term: Term, steps: Steps) -> exp.Expr:
    """A column that is not 0 where a row's chance is not; rows that are added up need not be counted for it."""
    made_of = steps.product(term)
    assert made_of is not None  # noqa: S101 -- no values are spelled out
    return steps.column("chance" if steps.added_up else "sum", made_of, label_of(term, steps.spread))


def _require_numbers(aggregate: Aggregate, value: exp.Expr, steps: Steps) -> None:
    """Raise for what boxes of moments cannot tell: means of them, and anything of times of day."""
    for part in steps.model.parts:
        kind = part.kind.upper() if isinstance(part, IntervalPart) and part.name == steps.homes.of(value) else ""
        if (
            kind
            and aggregate.kind in ("min", "max")
            and isinstance(value.unnest(), (exp.Predicate, exp.Connector, exp.Not))
        ):
            raise RewriteError(
                f"{aggregate.kind}({plain(value)}) cannot be estimated from the release; ask for count(*) FILTER "
                "(WHERE ...) of the condition and compare it with 0 or count(*)"
            )
        ordered = aggregate.kind in ("min", "max") and (kind == "DATE" or is_timestamp(kind))
        if is_moment(kind) and not ordered and any(all_of(value.unnest(), exp.Column)) and linear(value) is not None:
            raise RewriteError(
                f"{aggregate.kind}({plain(value)}) of intervals of {kind} cannot be estimated from the release; ask "
                "for counts, or for min, max or median of dates"
            )


def mass(where: exp.Expr, steps: Steps) -> exp.Expr:
    """How many original rows a row of the final query is expected to stand for."""
    return _sum(steps, event(where, steps.homes.of))


def _only_shares(steps: Steps) -> bool:
    """Whether what rows stand for is made of shares alone, which are never NULL."""
    model = steps.model
    whole = model.weight is None and not any(part.signed or part.counted for part in model.parts)
    return whole and are_lists(steps.joined)


def not_zero(rows: exp.Expr, steps: Steps) -> exp.Expr:
    """Whether a row of the final query stands for any original row; how many values share it does not matter.

    Args:
        rows: how many it is expected to stand for.
        steps: steps of the rewritten query.
    """
    if isinstance(rows, exp.Mul) and rows.expression == own("weight") and are_lists(steps.joined):
        rows = rows.this
    return tree("{rows} <> 0", rows=rows)


def possible(condition: exp.Expr, steps: Steps) -> exp.Expr:
    """Whether a row may qualify; never false for one that does."""
    return _flag("possible", normal(condition, steps.homes.of), steps)


def certain(condition: exp.Expr, steps: Steps) -> exp.Expr:
    """Whether a row qualifies whatever its true values are; never true for one that may not."""
    return _flag("certain", normal(condition, steps.homes.of), steps)


def _flag(wanted: str, condition: exp.Expr, steps: Steps) -> exp.Expr:
    condition = condition.unnest()
    if isinstance(condition, exp.Boolean):
        return condition
    home = steps.homes.of(condition)
    if home is not None:
        return steps.flag(wanted, condition, home)
    sides = [_flag(wanted, side, steps) for side in (condition.this, condition.expression)]
    return every(sides) if isinstance(condition, exp.And) else some(sides)


def _extreme(aggregate: Aggregate, where: exp.Expr | None, steps: Steps) -> exp.Expr:
    value = aggregate.value
    assert value is not None  # noqa: S101 -- MIN and MAX have an argument
    if not steps.model.complete or any(p.signed or p.counted for p in steps.model.parts):
        raise RewriteError(
            f"{aggregate.kind}({plain(value)}) cannot be bounded from the release "
            f"{steps.model.release.name}, which is sampled, noisy or randomized; ask for count, sum or avg"
        )
    condition = both(both(where, aggregate.condition), _not_null(value))
    may = possible(condition, steps)
    end = end_of(steps, value, where, aggregate, aggregate.kind == "min")
    for part in steps.model.parts:
        if isinstance(part, IntervalPart) and part.name == steps.homes.of(value) and linear(value) is not None:
            # cells that could be anything say nothing while others have ends
            may = every([may, tree(finite(part.kind), x=end)])
    return filtered(tree(f"{aggregate.kind}({{end}})", end=end), may)


def end_of(steps: Steps, value: exp.Expr, where: exp.Expr | None, aggregate: Aggregate, least: bool) -> exp.Expr:
    """Least or most the value can be in a row, given what the conditions say of the same part.

    Args:
        steps: steps of the rewritten query.
        value: what is aggregated.
        where: condition on the rows.
        aggregate: the aggregate.
        least: whether the least is asked for.
    """
    home = steps.homes.of(value)
    assert home is not None  # noqa: S101 -- mixed arguments are by_value
    return steps.extreme(least, value, home, given(steps, home, where, aggregate))


def given(steps: Steps, home: str, where: exp.Expr | None, aggregate: Aggregate) -> exp.Expr | None:
    """What the conditions say of one part.

    Args:
        steps: steps of the rewritten query.
        home: the part.
        where: condition on the rows.
        aggregate: the aggregate.
    """
    same = [c for c in split(both(where, aggregate.condition)) if steps.homes.of(c) == home]
    same = [c for c in same if not isinstance(c, exp.Boolean)]
    return every(same) if same else None


def _sum(steps: Steps, terms: list[Term], nulls: bool = False) -> exp.Expr:
    return added([(term.sign, steps.term(term, nulls)) for term in terms])


def _indicator(condition: exp.Expr) -> exp.Expr:
    return tree("case when {condition} then 1 when not {condition} then 0 end", condition=condition)


def both(where: exp.Expr | None, condition: exp.Expr) -> exp.Expr:
    """Join the query's conditions and an aggregate's own."""
    return copied(condition) if where is None else every([where, condition])


def _not_null(value: exp.Expr) -> exp.Expr:
    return tree("{value} is not null", value=value)
