"""95% intervals of estimates from randomized releases.

A total is a sum over released rows of a weight W with E[W] = f, the row's true contribution, and the rows were
randomized independently. So its variance, the original table held fixed, is the sum of E[W^2] - f^2, which the
sum of W^2 - V estimates without bias, V being the weight of f^2 (Guo, Ying and Wu 2011, equation 2, without
its second source of error, the sampling of records). A mean is the ratio of two totals (delta method). Where
the query groups by randomized columns, W carries a factor per group, whose square goes through the squared
inverted channel. Grouping sets and expressions over randomized columns add up groups whose errors depend on
one another: they get no interval.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.errors import RewriteError
from duckdb_anon.rewrite.aggregates import Aggregate, estimate
from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.logic import Term, amount, event, present
from duckdb_anon.rewrite.parse import to_sql
from duckdb_anon.rewrite.parts import parsed
from duckdb_anon.rewrite.randomized import RandomizedPart

REACH = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def is_randomized(early: Early) -> bool:
    """Whether randomization is all that stands between the release and the original."""
    parts = early.model.parts
    return bool(parts) and not early.model.weight and all(isinstance(part, RandomizedPart) for part in parts)


def interval(
    aggregate: Aggregate, where: exp.Expr | None, early: Early, select: exp.Select
) -> tuple[exp.Expr, exp.Expr] | None:
    """Ends of the 95% interval of an aggregate, as expressions over the final query's rows.

    Args:
        aggregate: COUNT, SUM or AVG.
        where: conditions of the query still to be satisfied, None if there are none.
        early: provides weights.
        select: the query, for what it groups by.

    Returns:
        Low and high, or None where the errors of a group's rows depend on one another.
    """
    if aggregate.kind not in ("count", "sum", "avg") or not _groups_are_cells(select, early):
        return None
    try:
        variance = _variance(aggregate, where, early)
        middle = to_sql(estimate(aggregate, where, early), pretty=False)
    except RewriteError:
        return None  # the squared amount takes more products than a query may have
    if variance is None:
        return None
    reach = f"{REACH} * sqrt(greatest({variance}, 0))"
    return parsed(f"{middle} - {reach}"), parsed(f"{middle} + {reach}")


def _groups_are_cells(select: exp.Select, early: Early) -> bool:
    """Whether every group holds one value of each randomized column the final query sees."""
    late = {column for part in early.inverted for column in part.columns}
    if not late:
        return True
    group = select.args.get("group")
    if group is None or any(group.args.get(kind) for kind in ("cube", "rollup", "grouping_sets")):
        return False
    keys = [key.unnest() for key in group.expressions]
    return late <= {key.name.lower() for key in keys if isinstance(key, exp.Column)}


def _variance(aggregate: Aggregate, where: exp.Expr | None, early: Early) -> str | None:
    unit_of = early.units.of
    condition = aggregate.condition if where is None else exp.and_(where.copy(), aggregate.condition.copy())
    if aggregate.value is None:
        return _spread(early, event(condition, unit_of), None, event(condition, unit_of))
    value = aggregate.value
    squared = exp.Mul(this=exp.paren(value.copy()), expression=exp.paren(value.copy()))
    there = event(exp.and_(condition.copy(), present(value, unit_of)), unit_of)
    first = [a.times(b) for a in event(condition, unit_of) for b in amount(value, unit_of)]
    second = [a.times(b) for a in event(condition, unit_of) for b in amount(squared, unit_of)]
    of_total = _spread(early, first, None, second)
    if aggregate.kind == "sum" or of_total is None:
        return of_total
    between, of_count = _spread(early, first, there, first), _spread(early, there, None, there)
    total, count = _weight(early, first), _weight(early, there)
    if between is None or of_count is None or total is None or count is None:
        return None
    total, count = (f"sum({early.column('sum', text)})" for text in (total, count))
    ratio = f"({total} / {count})"
    return f"(({of_total}) - 2 * {ratio} * ({between}) + {ratio} ** 2 * ({of_count})) / {count} ** 2"


def _spread(early: Early, one: list[Term], other: list[Term] | None, known: list[Term]) -> str | None:
    """Estimated covariance of two totals (of one with itself when `other` is None); `known` weighs f1 * f2."""
    left, right, taken = (_weight(early, terms) for terms in (one, other or one, known))
    if left is None or right is None or taken is None:
        return None
    products = early.column("square", f"({left}) * ({right})")
    return f"sum({products}) - sum({early.column('sum', taken)})"


def _weight(early: Early, terms: list[Term]) -> str | None:
    """A sum of products as SQL over a release row, None when the final query has a share in it."""
    texts = [early.product(term) for term in terms]
    if any(text is None for text in texts):
        return None
    signed = " ".join(f"{'+' if t.sign > 0 else '-'} {text}" for t, text in zip(terms, texts, strict=True))
    return signed.removeprefix("+ ") or "0"
