"""What an expression is beside a row that finds no row of the original: every column of the original is NULL there.

FROM regions r LEFT JOIN people p ON p.region = r.name
CASE WHEN p.age > 30 THEN 1 ELSE 0 END        0
coalesce(p.cost + 1, 7)                       7
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.aggregate_nodes import aggregate_nodes, without_filter
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied, every, some
from duckdb_anon.rewrite.query.walking import columns_of

_STRICT = (
    *(exp.Neg, exp.Not, exp.Cast, exp.Upper, exp.Lower, exp.Abs, exp.DateTrunc, exp.TimestampTrunc, exp.Year),
    *(exp.Month, exp.Extract, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.EQ, exp.NEQ, exp.GT),
    *(exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.Between),
)
"""What is NULL where one of its arguments is."""


def unmatched(node: exp.Expr, alias: str, original: TableInfo) -> exp.Expr:
    """An expression over NULLs in the place of a table's columns, worked out as far as they decide it.

    Args:
        node: an expression of a bound query; it stays as it is.
        alias: the table's alias.
        original: the table.

    Raises:
        RewriteError: a subquery reads the table's columns.
    """
    if isinstance(node, exp.Column):
        return _typed(node, original) if node.table == alias else copied(node)
    if not columns_of(node, alias):
        return copied(node)
    if isinstance(node, exp.Query):
        raise RewriteError(f"{plain(node)} reads the optional side of a join, which cannot be estimated")
    found = node.__class__(
        **{
            key: [unmatched(one, alias, original) if isinstance(one, exp.Expr) else one for one in value]
            if isinstance(value, list)
            else unmatched(value, alias, original)
            if isinstance(value, exp.Expr)
            else value
            for key, value in node.args.items()
        }
    )
    branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    return found if branch else _worked_out(found)


def of_columns_or_rows(select: exp.Select, alias: str) -> bool:
    """Whether every aggregate asks of columns of a table, or counts rows.

    Args:
        select: the SELECT.
        alias: the table's alias.
    """

    def counts_rows(node: exp.Expr) -> bool:
        counted, _ = without_filter(node)
        return isinstance(counted, exp.Count) and isinstance(counted.this, (exp.Star, exp.Literal))

    return all(counts_rows(node) or columns_of(node, alias) for node in aggregate_nodes(select))


def is_null(node: exp.Expr | None) -> bool:
    """Whether an expression is NULL for its text alone."""
    node = node.unnest() if node is not None else exp.null()
    return isinstance(node, exp.Null) or (isinstance(node, exp.Cast) and is_null(node.this))


def never_true(node: exp.Expr) -> bool:
    """Whether a condition is FALSE or NULL for its text alone."""
    return is_null(node) or _is(node, False)


def _typed(column: exp.Column, original: TableInfo) -> exp.Expr:
    kind = exp.DataType.build(original.types[fold(column.name)], dialect="duckdb", udt=True)
    return exp.Cast(this=exp.null(), to=kind)


def _is(node: exp.Expr, value: bool) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Boolean) and bool(node.this) is value


def _worked_out(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Paren):
        inner = node.this
        return inner if isinstance(inner, (exp.Null, exp.Boolean, exp.Literal, exp.Cast)) else node
    if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Boolean):
        return exp.Boolean(this=_is(node.this, False))
    if isinstance(node, exp.Cast):
        return node
    if isinstance(node, _STRICT):
        made_of = [node.args.get(key) for key in ("this", "expression", "low", "high")]
        return exp.null() if any(one is not None and is_null(one) for one in made_of) else node
    if isinstance(node, exp.In) and is_null(node.this) and node.expressions:
        return exp.null()
    if isinstance(node, exp.Is) and is_null(node.this):
        return exp.Boolean(this=is_null(node.expression))
    if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)):
        return _compared(node)
    if isinstance(node, exp.And):
        return exp.false() if _one(node, False) else every([one for one in _sides(node) if not _is(one, True)])
    if isinstance(node, exp.Or):
        return exp.true() if _one(node, True) else some([one for one in _sides(node) if not _is(one, False)])
    if isinstance(node, exp.Coalesce):
        return _coalesced(node)
    if isinstance(node, (exp.Case, exp.If)):
        return _chosen(node)
    return node


def _sides(node: exp.Expr) -> list[exp.Expr]:
    return [node.this, node.expression]


def _one(node: exp.Expr, value: bool) -> bool:
    return any(_is(one, value) for one in _sides(node))


def _compared(node: exp.Expr) -> exp.Expr:
    nulls = [is_null(one) for one in _sides(node)]
    known = all(nulls) or (any(nulls) and any(isinstance(one.unnest(), exp.Literal) for one in _sides(node)))
    return exp.Boolean(this=all(nulls) is isinstance(node, exp.NullSafeEQ)) if known else node


def _coalesced(node: exp.Coalesce) -> exp.Expr:
    left: list[exp.Expr] = [one for one in [node.this, *node.expressions] if not is_null(one)]
    if not left:
        return exp.null()
    if len(left) == 1 or isinstance(left[0].unnest(), (exp.Literal, exp.Boolean)):
        return left[0]
    return exp.Coalesce(this=left[0], expressions=left[1:])


def _chosen(node: exp.Expr) -> exp.Expr:
    """The branch of a CASE that is taken; a CASE of those that may be where that is not known."""
    branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    other: exp.Expr | None = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    other = exp.null() if other is None else other
    subject = node.args.get("this") if isinstance(node, exp.Case) else None
    if subject is not None:
        return other if is_null(subject) else node
    left = []
    for branch in branches:
        if _is(branch.this, True):
            other = branch.args["true"]
            break
        if not never_true(branch.this):
            left.append(exp.If(this=branch.this, true=branch.args["true"]))
    return exp.Case(ifs=left, default=other) if left else other
