"""Subqueries of FROM become part of the SELECT around them, where that means the same.

    FROM people LEFT JOIN (SELECT name, 1 AS k FROM regions) AS r ON region = name

Here r.k is NULL beside a row that finds none, and 1 is not: what an outer join may fill with NULLs stays a subquery
unless what it shows is NULL where its columns are. So does what ASOF and POSITIONAL JOIN pick single rows of.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.merge_subqueries import merge_subqueries

from duckdb_anon.rewrite.query.scoping import step_of
from duckdb_anon.rewrite.query.walking import all_of

_APART = "prewhere"
"""A clause that DuckDB does not have, and that keeps a SELECT from being merged."""
_OF_ONE = (
    exp.Paren,
    exp.Neg,
    exp.Not,
    exp.Cast,
    exp.Upper,
    exp.Lower,
    exp.Abs,
    exp.DateTrunc,
    exp.TimestampTrunc,
    exp.Year,
)
_OF_TWO = (exp.Add, exp.Sub, exp.Mul, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
"""What is NULL where a thing it is made of is."""


def merged(tree: exp.Query) -> exp.Query:
    """Merge subqueries that only select and filter into the SELECT around them."""
    for select in all_of(tree, exp.Select):
        for inner in _apart(select):
            inner.set(_APART, exp.true())
    tree = merge_subqueries(tree)
    for select in all_of(tree, exp.Select):
        select.set(_APART, None)
    return tree


def _apart(select: exp.Select) -> Iterator[exp.Select]:
    """The SELECTs of FROM that stay as they are."""
    source = select.args.get("from_")
    before = [source.this] if source is not None else []
    filled: list[exp.Expr] = []
    for join in select.args.get("joins") or []:
        side = (join.side or "").upper()
        if (join.args.get("method") or "").upper() in ("ASOF", "POSITIONAL"):
            yield from _selects([*before, join.this])
        filled += before if side in ("RIGHT", "FULL") else []
        filled += [join.this] if side in ("LEFT", "FULL") else []
        before.append(join.this)
    for inner in _selects(filled):
        if not all(_is_null_of_nulls(one.unalias()) for one in inner.expressions):
            yield inner


def _is_null_of_nulls(node: exp.Expr) -> bool:
    """Whether an expression is NULL where all its columns are."""
    if isinstance(node, _OF_ONE):
        return _is_null_of_nulls(node.this)
    if isinstance(node, _OF_TWO) and not isinstance(node.expression, exp.SubqueryPredicate):
        return _is_null_of_nulls(node.this) or _is_null_of_nulls(node.expression)
    return isinstance(node, exp.Column)


def _selects(items: list[exp.Expr]) -> Iterator[exp.Select]:
    for item in items:
        step = step_of(item) if isinstance(item, exp.Table) else None
        inner = step.this if step is not None else item.this
        if isinstance(inner, exp.Select):
            yield inner
