"""Values of an ENUM in the order of their type, where a query asks for an order: a release shows them as texts.

    SELECT mood, count(*) FROM t GROUP BY mood ORDER BY mood
    ... ORDER BY mood::ENUM('sad', 'ok', 'happy')

DuckDB compares a value with a text as texts, which needs nothing; ORDER BY, MIN, MAX, GREATEST, LEAST and comparisons
of one column with another go by the type, and functions of an ENUM (`enum_code`) take nothing else. Cost: one pass over
the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from duckdb_anon.model.folding import fold
from duckdb_anon.model.shapes.types import is_enum
from duckdb_anon.rewrite.query.parse import from_items, is_original
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.query.whole_counts import made_of

_COMPARES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


def keep_order(query: exp.Query, original: TableInfo) -> None:
    """Cast columns of an ENUM type back to it where their order matters, in place.

    Args:
        query: a bound query.
        original: its columns' types.
    """
    kinds = {name: kind for name, kind in original.types.items() if is_enum(kind)}
    if not kinds:
        return
    for node in all_of(query, exp.Ordered, exp.Min, exp.Max, exp.Greatest, exp.Least, *_COMPARES, exp.Anonymous):
        if isinstance(node, exp.Anonymous) and not fold(node.name).startswith("enum_"):
            continue
        read = [(one, _enum(one, kinds)) for one in _operands(node)]
        alone = isinstance(node, (exp.Ordered, exp.Min, exp.Max))
        if not alone and len({kind for _, kind in read}) > 1:
            continue
        for one, kind in read:
            if kind is not None:
                value = _projection(one) if isinstance(node, exp.Ordered) else None
                to = exp.DataType.build(kind, dialect="duckdb")
                one.replace(exp.Cast(this=copied(one if value is None else value), to=to))


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    for key in ("this", "expression", "low", "high", "expressions"):
        value = node.args.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield one


def _enum(node: exp.Expr, kinds: dict[str, str]) -> str | None:
    """The ENUM type of a column, whatever subqueries it comes through; None for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Alias):
        return _enum(node.this, kinds)
    if not isinstance(node, exp.Column):
        return None
    if not node.table:
        found = _projection(node)
        return _enum(found, kinds) if found is not None and found is not node else None
    select = node.find_ancestor(exp.Select)
    while isinstance(select, exp.Select):
        for item in from_items(select):
            if item.alias_or_name == node.table:
                if is_original(item):
                    return kinds.get(fold(node.name))
                inner = made_of(node)
                return _enum(inner, kinds) if inner is not None else None
        select = select.find_ancestor(exp.Select)
    return None


def _projection(node: exp.Expr) -> exp.Expr | None:
    """What an alias of the same SELECT stands for."""
    select = node.find_ancestor(exp.Select)
    if not isinstance(node, exp.Column) or node.table or not isinstance(select, exp.Select):
        return None
    return next((e.unalias() for e in select.expressions if e.alias_or_name == node.name), None)
