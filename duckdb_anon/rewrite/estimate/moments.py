"""Variances, correlations and regressions as formulas of counts and sums, which have expectations.

With n, Sx, Sxx, Sxy the number of rows (pairs) that have values and the sums of them and of their products,

    variance = (Sxx - Sx^2 / n) / n,    covariance = (Sxy - Sx * Sy / n) / n,    slope = covariance / variance of x.

Each total is estimated; a formula of expectations is not the expectation of the formula, so these have no bounds.
Generalized cells count with their spread inside: E[x^2] of a box, not its middle squared.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.template import copied, every, tree

_ONE: dict[type[exp.Expr], str] = {
    exp.VariancePop: "{vx} / {n}",
    exp.Variance: "{vx} / nullif({n} - 1, 0)",
    exp.StddevPop: "sqrt({vx} / {n})",
    exp.Stddev: "sqrt({vx} / nullif({n} - 1, 0))",
    exp.StddevSamp: "sqrt({vx} / nullif({n} - 1, 0))",
}
_TWO: dict[type[exp.Expr], str] = {
    exp.CovarPop: "{c} / {n}",
    exp.CovarSamp: "{c} / nullif({n} - 1, 0)",
    exp.Corr: "{c} / nullif(sqrt({vx} * {vy}), 0)",
    exp.RegrSlope: "{c} / nullif({vx}, 0)",
    exp.RegrIntercept: "({y} - {c} / nullif({vx}, 0) * {x}) / {n}",
    exp.RegrR2: "{c} ** 2 / nullif({vx} * {vy}, 0)",
    exp.RegrCount: "{rows}",
}
"""Formulas of y (first argument) and x (second): sums of squares about the mean vx and vy, of products c."""


def as_sums(node: exp.Expr) -> exp.Expr | None:
    """Write a variance, correlation or regression, with its FILTER, as a formula of COUNT and SUM; None for others.

    Example:
        >>> import sqlglot
        >>> as_sums(sqlglot.parse_one("regr_count(y, x)", dialect="duckdb")).sql("duckdb")
        'COUNT(*) FILTER(WHERE NOT x IS NULL AND NOT y IS NULL)'
    """
    inner, among = without_filter(node)
    known = _ONE.get(type(inner)) or _TWO.get(type(inner))
    if known is None or isinstance(inner.this, exp.Distinct):
        return None
    y = inner.this
    x = inner.expression if type(inner) in _TWO else y
    tests = [tree("{v} is not null", v=v) for v in dict.fromkeys((x, y))]
    if among is not None:
        tests.append(copied(among))

    def total(template: str) -> Callable[[], exp.Expr]:
        return lambda: exp.Filter(this=tree(template, x=x, y=y), expression=exp.Where(this=every(tests)))

    rows = total("count(*)")

    def n() -> exp.Expr:
        return tree("nullif({n}, 0)::double", n=rows())

    sx, sy = total("sum({x})"), total("sum({y})")
    sxx, syy, sxy = total("sum({x} * {x})"), total("sum({y} * {y})"), total("sum({x} * {y})")

    def about(squares: Callable[[], exp.Expr], a: Callable[[], exp.Expr], b: Callable[[], exp.Expr]) -> exp.Expr:
        return tree("({s} - {a} * {b} / {n})", s=squares(), a=a(), b=b(), n=n())

    return tree(
        known,
        n=n(),
        rows=rows(),
        x=sx(),
        y=sy(),
        vx=tree("greatest({v}, 0)", v=about(sxx, sx, sx)),
        vy=tree("greatest({v}, 0)", v=about(syy, sy, sy)),
        c=about(sxy, sx, sy),
    )
