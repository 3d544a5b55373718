"""Values of an ENUM in the order of their type, where a query asks for an order: a release shows them as texts.

    SELECT mood, count(*) FROM t GROUP BY mood ORDER BY mood
    ... ORDER BY mood::ENUM('sad', 'ok', 'happy')

DuckDB compares a value with a text as texts, which needs nothing; ORDER BY, MIN, MAX, quantiles, GREATEST, LEAST and
comparisons with anything else go by the type, and functions of an ENUM (`enum_code`) take nothing else. Cost: one pass
over the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_enum
from duckdb_anon.rewrite.query.parse import from_items, is_original
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.query.whole_counts import made_of

_COMPARES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_ONE_OF = (exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.Greatest, exp.Least)
_DECLARED = (exp.DType.ENUM, exp.DType.USERDEFINED)
_OF_ONE = (exp.Ordered, exp.Min, exp.Max, exp.Median, exp.PercentileDisc, exp.PercentileCont, exp.Quantile)


def keep_order(query: exp.Query, original: TableInfo) -> None:
    """Cast columns of an ENUM type back to it where their order matters, in place.

    Args:
        query: a bound query.
        original: its columns' types.
    """
    kinds = {name: kind for name, kind in original.types.items() if is_enum(kind)}
    if not kinds:
        return
    for node in all_of(query, *_OF_ONE, exp.Greatest, exp.Least, *_COMPARES, exp.Anonymous):
        if isinstance(node, exp.Anonymous) and not fold(node.name).startswith("enum_"):
            continue
        read = [(one, _enum(one, kinds)) for one in _operands(node)]
        texts = [one for one, kind in read if kind is None and isinstance(one.unnest(), exp.Literal)]
        if texts and not isinstance(node, _OF_ONE) and not isinstance(node.args.get("this"), exp.Tuple):
            continue  # compared as texts
        for one, kind in read:
            if kind:
                value = _projection(one) if isinstance(node, exp.Ordered) else None
                to = exp.DataType.build(kind, dialect="duckdb")
                one.replace(exp.Cast(this=copied(one if value is None else value), to=to))


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    for key in ("this", "expression", "low", "high", "expressions"):
        value = node.args.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield from one.expressions if isinstance(one, exp.Tuple) else [one]


def _enum(node: exp.Expr, kinds: dict[str, str]) -> str | None:
    """The ENUM type of a value, whatever subqueries it comes through.

    None for anything else, '' where another value decides: NULL, and what is cast to an ENUM by its texts or its name.
    """
    node = node.unnest()
    if isinstance(node, exp.Alias):
        return _enum(node.this, kinds)
    if isinstance(node, exp.Null) or (isinstance(node, exp.Cast) and node.to.this in _DECLARED):
        return ""
    if isinstance(node, _ONE_OF):
        several = {_enum(one, kinds) for one in _picked(node)} - {""}
        return several.pop() if len(several) == 1 else None if several else ""
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


def _picked(node: exp.Expr) -> Iterator[exp.Expr]:
    """The values that an expression is one of."""
    if isinstance(node, exp.Case):
        yield from (one.args["true"] for one in node.args["ifs"])
        if node.args.get("default") is not None:
            yield node.args["default"]
    elif isinstance(node, exp.If):
        yield from (one for one in (node.args["true"], node.args.get("false")) if one is not None)
    elif isinstance(node, exp.Nullif):
        yield node.this
    else:
        yield from _operands(node)


def _projection(node: exp.Expr) -> exp.Expr | None:
    """What an alias of the same SELECT stands for."""
    select = node.find_ancestor(exp.Select)
    if not isinstance(node, exp.Column) or node.table or not isinstance(select, exp.Select):
        return None
    return next((e.unalias() for e in select.expressions if e.alias_or_name == node.name), None)
