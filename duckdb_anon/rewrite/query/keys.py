"""Keys of originals whose releases have pseudonyms in their place: what a query may do with them.

A pseudonym is equal to another one where the keys are, and says nothing else of its key. So keys may be compared with
keys, grouped by, counted and shown (as pseudonyms); a constant is none of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import all_of, from_items, leftmost, plain, step_of, table_number

_COMPARES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
_HANDS_ON = (exp.Paren, exp.If, exp.Case, exp.Coalesce, exp.AnyValue, exp.First, exp.Last, exp.Alias)
"""What a key goes through and stays one."""
_TAKES = (
    exp.Select, exp.Group, exp.Distinct, exp.Count, exp.Window, exp.Ordered, exp.Order, exp.Is, exp.Tuple,
    exp.ApproxDistinct, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Grouping,
)  # fmt: skip


def require_keys_alone(tree: exp.Query, tables: Sequence[TableInfo]) -> None:
    """Raise where a bound query does with a key what cannot be done with a pseudonym.

    Args:
        tree: the query.
        tables: its tables, in the order of their numbers.

    Raises:
        RewriteError: naming the key, and what may be done with it.
    """
    if not any(info.pseudonyms for info in tables):
        return
    for column in all_of(tree, exp.Column):
        if not is_key(column, tables):
            continue
        node: exp.Expr = column
        while isinstance(node.parent, _HANDS_ON) and not _is_condition(node):
            node = node.parent
        around = node.parent
        if isinstance(around, _COMPARES):
            other = around.expression if around.this is node else around.this
            allowed = _is_of_keys(other, tables)
        elif isinstance(around, exp.In):
            query = around.args.get("query")
            others = [query] if query is not None else around.expressions
            allowed = all(_is_of_keys(other, tables) for other in others if other is not node)
        else:
            allowed = around is None or isinstance(around, _TAKES)
        if not allowed:
            raise RewriteError(
                f"{column.name} is a key, and the release has pseudonyms in its place, so "
                f"{plain(around if around is not None else node)} cannot be answered. A key may be joined on, grouped "
                "by, counted, shown, and used in EXISTS and IN (SELECT ...); it is compared with keys alone"
            )


def shows_key(tree: exp.Query, tables: Sequence[TableInfo]) -> str:
    """The first output column of a bound query that is a key; '' without one."""
    for projection in leftmost(tree).expressions:
        value = projection.unalias()
        if isinstance(value, exp.Column) and is_key(value, tables):
            return str(value.name)
    return ""


def is_key(column: exp.Column, tables: Sequence[TableInfo]) -> bool:
    """Whether a column of a bound query is a key, its own table's or one that a subquery hands on."""
    item = _source(column)
    if not isinstance(item, exp.Table):
        return item is not None and _hands_on(item.this, column.name, tables)
    step = step_of(item)
    if step is not None:
        return _hands_on(step.this, column.name, tables)
    number = table_number(item)
    info = tables[number] if number is not None and number < len(tables) else None
    return info is not None and column.name in info.pseudonyms


def _source(column: exp.Column) -> exp.Expr | None:
    """The item of FROM that a column is of, in its SELECT or in one around it."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for item in from_items(select):
            if item.alias_or_name == column.table:
                return item
        select = select.find_ancestor(exp.Select)
    return None


def _hands_on(query: exp.Expr, name: str, tables: Sequence[TableInfo]) -> bool:
    """Whether a column of a subquery's result is a key."""
    if not isinstance(query, exp.Query):
        return False
    found = [projection for projection in leftmost(query).expressions if projection.alias_or_name == name]
    return bool(found) and _is_of_keys(found[0].unalias(), tables)


def _is_of_keys(node: exp.Expr, tables: Sequence[TableInfo]) -> bool:
    """Whether a value is a key: a column of keys, or a subquery of one."""
    while isinstance(node, (exp.Paren, exp.AnyValue, exp.First, exp.Last, exp.Subquery)):
        node = node.this
    if isinstance(node, exp.Query):
        return len(leftmost(node).expressions) == 1 and _is_of_keys(leftmost(node).expressions[0].unalias(), tables)
    if isinstance(node, exp.Coalesce):
        return all(_is_of_keys(part, tables) for part in [node.this, *node.expressions])
    return isinstance(node, exp.Column) and is_key(node, tables)


def _is_condition(node: exp.Expr) -> bool:
    """Whether a node is the condition of CASE, which takes a truth value and no key."""
    return isinstance(node.parent, exp.If) and node.arg_key == "this"
