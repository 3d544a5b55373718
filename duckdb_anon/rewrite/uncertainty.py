"""95% intervals of estimates from randomized releases.

A total is a sum over released rows of a weight W with E[W] = f, the row's true contribution, and the rows were
randomized independently. So its variance, the original table held fixed, is the sum of E[W^2] - f^2, which the
sum of W^2 - V estimates without bias, V being the weight of f^2 (Guo, Ying and Wu 2011, equation 2, without
its second source of error, the sampling of records). A mean is the ratio of two totals (delta method). Where
the final query sees randomized columns value by value, W carries the weight of a whole group: see `squares`.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.errors import RewriteError
from duckdb_anon.rewrite.aggregates import Aggregate, estimate
from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.logic import Term, amount, event, present, product
from duckdb_anon.rewrite.model import Model
from duckdb_anon.rewrite.parse import to_sql
from duckdb_anon.rewrite.parts import parsed
from duckdb_anon.rewrite.randomized import RandomizedPart
from duckdb_anon.rewrite.squares import Squares

REACH = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def randomized_only(model: Model) -> bool:
    """Whether randomization is all that stands between the release and the original."""
    return bool(model.parts) and not model.weight and all(isinstance(part, RandomizedPart) for part in model.parts)


def interval(
    aggregate: Aggregate, where: exp.Expr | None, early: Early, squares: Squares
) -> tuple[exp.Expr, exp.Expr] | None:
    """Ends of the 95% interval of an aggregate, as expressions over the final query's rows.

    Args:
        aggregate: COUNT, SUM or AVG.
        where: conditions of the query still to be satisfied, None if there are none.
        early: provides weights.
        squares: provides sums of squared weights.

    Returns:
        Low and high; None for other aggregates, and where a squared amount takes too many products.
    """
    if aggregate.kind not in ("count", "sum", "avg"):
        return None
    try:
        variance = _variance(aggregate, where, early, squares)
        middle = to_sql(estimate(aggregate, where, early), pretty=False)
    except RewriteError:
        return None
    reach = f"{REACH} * sqrt(greatest({variance}, 0))"
    return parsed(f"{middle} - {reach}"), parsed(f"{middle} + {reach}")


def _variance(aggregate: Aggregate, where: exp.Expr | None, early: Early, squares: Squares) -> str:
    unit_of = early.units.of
    condition = aggregate.condition if where is None else exp.and_(where.copy(), aggregate.condition.copy())
    rows = event(condition, unit_of)
    if aggregate.value is None:
        return f"{squares.of(rows, rows)} + {squares.of_one_row(rows)} - {_total(early, rows)}"
    value = aggregate.value
    squared = exp.Mul(this=exp.paren(value.copy()), expression=exp.paren(value.copy()))
    first, second = (product(rows, amount(one, unit_of)) for one in (value, squared))
    of_total = f"{squares.of(first, first)} - {_total(early, second)}"
    if aggregate.kind == "sum":
        return f"{of_total} + {squares.of_one_row(first)}"
    there = event(exp.and_(condition.copy(), present(value, unit_of)), unit_of)
    between = f"{squares.of(first, there)} - {_total(early, first)}"
    of_count = f"{squares.of(there, there)} - {_total(early, there)}"
    total, count = _total(early, first), _total(early, there)
    ratio = f"({total} / {count})"
    return f"(({of_total}) - 2 * {ratio} * ({between}) + {ratio} ** 2 * ({of_count})) / {count} ** 2"


def _total(early: Early, terms: list[Term]) -> str:
    """A sum of products, summed over a group of the final query."""
    signed = " ".join(f"{'+' if t.sign > 0 else '-'} {to_sql(early.term(t), pretty=False)}" for t in terms)
    return f"sum({signed.removeprefix('+ ') or '0'})"
