"""Aggregates over rows with weights: COUNT adds up weights, SUM weighted amounts, AVG divides the two.

A weighted quantile is the value where the sum of weights passes the share. With weights of one it is DuckDB's: the
continuous quantile of n values lies at position share * (n - 1); the discrete one is the first value that at least
share * n values do not exceed, or, in falling order, that at least share * n values do not fall below.

What is not linear in rows (variances, DISTINCT, extremes, lists) plausible tables answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.query.trees import tree, without_filter

LINEAR = (exp.Count, exp.CountIf, exp.Sum, exp.Avg)


def weighted(node: exp.Expr, where: exp.Expr | None, weight: exp.Expr) -> exp.Expr:
    """The estimate of COUNT, SUM or AVG over weighted rows."""
    argument = node.this
    if isinstance(node, exp.Count):
        counted = None if argument is None or isinstance(argument, (exp.Star, exp.Literal)) else argument
        return tree("coalesce({x}, 0)", x=total(weight, counted, where))
    if isinstance(node, exp.CountIf):
        return _filtered(tree("sum(case when {x} then {w} when not {x} then 0 end)", w=weight, x=argument), where)
    if isinstance(node, exp.Sum):
        return _filtered(tree("sum({w} * {x})", w=weight, x=argument), where)
    return tree("{s} / {n}", s=_filtered(tree("sum({w} * {x})", w=weight, x=argument), where),
                n=total(weight, argument, where))  # fmt: skip


def total(weight: exp.Expr, counted: exp.Expr | None, where: exp.Expr | None) -> exp.Expr:
    """The sum of weights of rows where a condition holds and an argument is not NULL."""
    present = None if counted is None else tree("{x} is not null", x=counted)
    return _filtered(tree("sum({w})", w=weight), _both(where, present))


def _both(node: exp.Expr | None, other: exp.Expr | None) -> exp.Expr | None:
    if node is None or other is None:
        return node if other is None else other
    return tree("{a} and {b}", a=node, b=other)


def _filtered(aggregate: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    if where is None:
        return aggregate
    return exp.Filter(this=aggregate, expression=exp.Where(this=where.copy()))


HALF: exp.Expr | None = exp.Literal.number(0.5)


@dataclass(frozen=True)
class Quantile:
    """A median or quantile of a query.

    Attributes:
        value: what it is taken of.
        share: SQL of the share, 0.5 for the median.
        continuous: whether it lies between two values.
        falling: whether shares are counted from the largest value on; `share` is the rest then.
        condition: its FILTER.
    """

    value: exp.Expr
    share: str
    continuous: bool
    falling: bool
    condition: exp.Expr | None


def _value_and_share(node: exp.Expr) -> tuple[exp.Expr | None, exp.Expr | None, exp.Ordered | None]:
    """What a median or quantile is taken of, which share, and its ORDER BY; no share of other aggregates."""
    inner, order = without_filter(node)[0], None
    if isinstance(inner, exp.WithinGroup):
        order, inner = inner.expression.expressions[0], inner.this
    if isinstance(inner, exp.Median):
        return inner.this, HALF, order
    if isinstance(inner, (exp.PercentileCont, exp.PercentileDisc)):
        return (order.this, inner.this, order) if order is not None else (inner.this, inner.expression, None)
    if isinstance(inner, (exp.Quantile, exp.ApproxQuantile)):
        return inner.this, inner.args.get("quantile"), order
    return None, None, None


def several_quantiles(node: exp.Expr) -> str:
    """Why an aggregate is not one quantile of all values; '' of one, and of other aggregates."""
    value, share, _ = _value_and_share(node)
    if share is None or (isinstance(share, exp.Literal) and value is not None and not isinstance(value, exp.Distinct)):
        return ""
    return f"{without_filter(node)[0].sql('duckdb')} is not one quantile of all values"


def read_quantile(node: exp.Expr) -> Quantile | None:
    """Read a median or quantile with its FILTER; None for other aggregates."""
    value, share, order = _value_and_share(node)
    if value is None or share is None:
        return None
    inner, where = without_filter(node)
    text, falling = share.sql("duckdb"), order is not None and bool(order.args.get("desc"))
    inner = inner.this if isinstance(inner, exp.WithinGroup) else inner
    continuous = isinstance(inner, (exp.Median, exp.PercentileCont))
    return Quantile(value, f"(1 - {text})" if falling else text, continuous, falling, where)


def weighted_quantile(quantile: Quantile, keys: Sequence[exp.Expr], weight: exp.Expr, source: exp.Select) -> str:
    """SELECT the keys k0, k1, ... and the quantile `value` of each group."""
    rows = source.copy()
    selected = [f"{key.sql('duckdb')} as _k{i}" for i, key in enumerate(keys)]
    selected += [f"{quantile.value.sql('duckdb')} as x", f"sum({weight.sql('duckdb')}) as w"]
    rows.set("expressions", [exp.Var(this=node) for node in selected])
    for condition in (
        exp.Not(this=exp.Is(this=exp.Paren(this=quantile.value.copy()), expression=exp.Null())),
        quantile.condition,
    ):
        if condition is not None:
            rows.where(condition.copy(), copy=False)
    names = "".join(f"_k{i}, " for i, _ in enumerate(keys))
    parts = f"partition by {names.rstrip(', ')} " if keys else ""
    summed = f"""
        select {names}x, sum(w) over ({parts}order by x) as upto, sum(w) over ({parts.rstrip()}) as total
        from ({rows.sql("duckdb")} group by all) as v"""
    if not quantile.continuous:
        reached = "> {0} * (1 + 1e-12)" if quantile.falling else ">= {0} * (1 - 1e-12)"
        found = f"coalesce(min(x) filter (where upto {reached.format(f'{quantile.share} * total')}), max(x))"
    else:
        at = f"greatest({quantile.share} * (total - 1), 0)"
        below, above = (
            f"coalesce(min(x) filter (where upto > {end}({at}) + 1e-9), max(x))" for end in ("floor", "ceil")
        )
        found = f"{below}::double + ({above} - {below})::double * any_value({at} - floor({at}))"
    last = f" group by {names.rstrip(', ')}" if keys else ""
    return f"select {names}{found} as value from ({summed}) as c where total > 0{last}"
