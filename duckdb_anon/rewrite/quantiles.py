"""Weighted quantiles: where the sum of weights up to a value passes the wanted share.

With weights of one they are DuckDB's: the continuous quantile of n values lies at position share * (n - 1), between its
two neighbours; the discrete one is the first value that at least share * n values do not exceed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.factors import NotLinearError
from duckdb_anon.rewrite.query.trees import without_filter

HALF: exp.Expr | None = exp.Literal.number(0.5)


@dataclass(frozen=True)
class Quantile:
    """A median or quantile of a query.

    Attributes:
        value: what it is taken of.
        share: SQL of the share, 0.5 for the median.
        continuous: whether it lies between two values.
        condition: its FILTER.
    """

    value: exp.Expr
    share: str
    continuous: bool
    condition: exp.Expr | None


def read_quantile(node: exp.Expr) -> Quantile | None:
    """Read a median or quantile with its FILTER; None for other aggregates.

    Raises:
        NotLinearError: it asks for several shares, or a share that is not a number.
    """
    inner, where = without_filter(node)
    order = None
    if isinstance(inner, exp.WithinGroup):
        order, inner = inner.expression.expressions[0], inner.this
    if isinstance(inner, exp.Median):
        value, share = inner.this, HALF
    elif isinstance(inner, (exp.PercentileCont, exp.PercentileDisc)):
        value, share = (order.this, inner.this) if order is not None else (inner.this, inner.expression)
    elif isinstance(inner, (exp.Quantile, exp.ApproxQuantile)):
        value, share = inner.this, inner.args.get("quantile")
    else:
        return None
    if value is None or isinstance(value, exp.Distinct) or not isinstance(share, exp.Literal):
        raise NotLinearError(f"{inner.sql('duckdb')} is not one quantile of all values")
    text = share.sql("duckdb")
    if order is not None and order.args.get("desc"):
        text = f"(1 - {text})"
    return Quantile(value, text, isinstance(inner, (exp.Median, exp.PercentileCont)), where)


def weighted_quantile(asked: Quantile, keys: Sequence[exp.Expr], weight: exp.Expr, source: exp.Select) -> str:
    """SELECT the keys k0, k1, ... and the quantile `value` of each group.

    Args:
        asked: the quantile.
        keys: expressions of GROUP BY.
        weight: the weight of a row.
        source: FROM and WHERE of the weighted rows.
    """
    rows = source.copy()
    shown = [f"{key.sql('duckdb')} as _k{i}" for i, key in enumerate(keys)]
    shown += [f"{asked.value.sql('duckdb')} as x", f"sum({weight.sql('duckdb')}) as w"]
    rows.set("expressions", [exp.Var(this=one) for one in shown])
    for condition in (
        exp.Not(this=exp.Is(this=exp.Paren(this=asked.value.copy()), expression=exp.Null())),
        asked.condition,
    ):
        if condition is not None:
            rows.where(condition.copy(), copy=False)
    names = "".join(f"_k{i}, " for i, _ in enumerate(keys))
    parts = f"partition by {names.rstrip(', ')} " if keys else ""
    summed = f"""
        select {names}x, sum(w) over ({parts}order by x) as upto, sum(w) over ({parts.rstrip()}) as total
        from ({rows.sql("duckdb")} group by all) as v"""
    if not asked.continuous:
        found = f"coalesce(min(x) filter (where upto >= {asked.share} * total * (1 - 1e-12)), max(x))"
    else:
        at = f"greatest({asked.share} * (total - 1), 0)"
        below, above = (
            f"coalesce(min(x) filter (where upto > {end}({at}) + 1e-9), max(x))" for end in ("floor", "ceil")
        )
        found = f"{below}::double + ({above} - {below})::double * any_value({at} - floor({at}))"
    last = f" group by {names.rstrip(', ')}" if keys else ""
    return f"select {names}{found} as value from ({summed}) as c where total > 0{last}"
