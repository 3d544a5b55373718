"""Variances, correlations and regressions as formulas of counts and sums, which have expectations.

With n, Sx, Sxx, Sxy the number of rows (pairs) that have values and the sums of them and of their products,

    variance = (Sxx - Sx^2 / n) / n,    covariance = (Sxy - Sx * Sy / n) / n,    slope = covariance / variance of x.

Each total is estimated; a formula of expectations is not the expectation of the formula, so these have no bounds.
Generalized cells count with their spread inside: E[x^2] of a box, not its middle squared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.template import copied, every, tree
from duckdb_anon.rewrite.query.walking import all_of

_SPARE = "nullif(greatest({n} - 1, 1e-9), 1e-9)"
"""Rows beyond the first, none where hardly a second one is expected."""
_ONE: dict[type[exp.Expr], str] = {
    exp.VariancePop: "{vx} / {n}",
    exp.Variance: "{vx} / " + _SPARE,
    exp.StddevPop: "sqrt({vx} / {n})",
    exp.Stddev: "sqrt({vx} / " + _SPARE + ")",
    exp.StddevSamp: "sqrt({vx} / " + _SPARE + ")",
}
_NO_VARIANCE = "case when {n} > 0 then 'nan'::double end"
"""What DuckDB says of rows of which one side is all the same."""
_TWO: dict[type[exp.Expr], str] = {
    exp.CovarPop: "{c} / {n}",
    exp.CovarSamp: "{c} / " + _SPARE,
    exp.Corr: "coalesce({c} / nullif(sqrt({vx} * {vy}), 0), " + _NO_VARIANCE + ")",
    exp.RegrSlope: "coalesce({c} / nullif({vx}, 0), " + _NO_VARIANCE + ")",
    exp.RegrIntercept: "({y} - {c} / nullif({vx}, 0) * {x}) / {n}",
    exp.RegrR2: "case when {vy} = 0 and {vx} > 0 then 1 else {c} ** 2 / nullif({vx} * {vy}, 0) end",
    exp.RegrCount: "{rows}",
}
"""Formulas of y (first argument) and x (second): sums of squares about the mean vx and vy, of products c."""


_SQUARES = {
    **dict.fromkeys(("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER"), "bigint"),
    **dict.fromkeys(("UINTEGER", "BIGINT"), "hugeint"),
}
"""By type of whole numbers: the type that holds a product of two. In their own type 12 * 12 is too much for TINYINT."""


def as_sums(node: exp.Expr, alias: str = "", types: Mapping[str, str] | None = None) -> exp.Expr | None:
    """Write a variance, correlation or regression, with its FILTER, as a formula of COUNT and SUM; None for others.

    Args:
        node: an aggregate.
        alias: how its columns name the original.
        types: DuckDB types of the original's columns, by lower-case name.

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
    tests = [tree("{v} is not null", v=v) for v in dict.fromkeys([*_needed(x), *_needed(y)])]
    if among is not None:
        tests.append(copied(among))

    def total(template: str) -> Callable[[], exp.Expr]:
        return lambda: exp.Filter(this=tree(template, x=x, y=y), expression=exp.Where(this=every(tests)))

    rows = total("count(*)")

    def n() -> exp.Expr:
        return tree("nullif({n}, 0)::double", n=rows())

    sx, sy = total("sum({x})"), total("sum({y})")
    kinds = {"x": _wider(x, alias, types or {}), "y": _wider(y, alias, types or {})}

    def products(a: str, b: str) -> Callable[[], exp.Expr]:
        kind = max(kinds[a], kinds[b]) if kinds[a] and kinds[b] else ""
        return total(f"sum({{{a}}}::{kind} * {{{b}}})" if kind else f"sum({{{a}}} * 1e0 * {{{b}}})")

    sxx, syy, sxy = products("x", "x"), products("y", "y"), products("x", "y")

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


def _needed(value: exp.Expr) -> list[exp.Expr]:
    """What must not be NULL for a value to be none: its columns, where it is a sum or product of them."""
    known = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul)
    columns: list[exp.Expr] = list(all_of(value, exp.Column))
    return columns if columns and all(isinstance(node, known) for node in value.walk()) else [value]


def _wider(value: exp.Expr, alias: str, types: Mapping[str, str]) -> str:
    """The type that holds squares of a column of whole numbers; '' for anything else, where DOUBLE has to."""
    if not isinstance(value, exp.Column) or value.table != alias:
        return ""
    return _SQUARES.get(types.get(fold(value.name), "").upper(), "")
