"""Where the aggregates of a SELECT stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from duckdb_anon.rewrite.query.refusals import is_aggregate
from duckdb_anon.rewrite.query.walking import all_of


def aggregate_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Aggregates of this SELECT, with their FILTER; those of subqueries are not its own."""
    places = list(select.expressions)
    places += [select.args[key] for key in ("having", "order", "qualify") if select.args.get(key)]
    for place in places:
        yield from outermost_aggregates(place)


def outermost_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Aggregates in an expression, with their FILTER; those of subqueries are not its own."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        # the function over a window works on the groups; only aggregates inside it are of the rows
        for part in window_parts(node):
            yield from outermost_aggregates(part)
        return
    if isinstance(node, (exp.Filter, exp.WithinGroup)) or is_aggregate(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from outermost_aggregates(child)


def columns_inside(nodes: Iterable[exp.Expr]) -> set[int]:
    """The columns in some nodes, by identity.

    Args:
        nodes: aggregates of a SELECT.
    """
    return {id(column) for node in nodes for column in all_of(node, exp.Column)}


def without_filter(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """An aggregate and the condition of its FILTER; None where it has none.

    >>> from sqlglot import parse_one
    >>> [one.sql() for one in without_filter(parse_one("sum(a) filter (where b > 1)"))]
    ['SUM(a)', 'b > 1']
    """
    return (node.this, node.expression.this) if isinstance(node, exp.Filter) else (node, None)


def window_parts(node: exp.Window) -> Iterator[exp.Expr]:
    """What a window function reads of each group: its arguments, its FILTER, PARTITION BY, ORDER BY and frame.

    >>> from sqlglot import parse_one
    >>> [one.sql() for one in window_parts(parse_one("sum(count(*)) filter (where a) over (partition by b)"))]
    ['COUNT(*)', 'a', 'b']
    """
    function: exp.Expr = node.this
    around: list[exp.Expr] = [one for one in node.iter_expressions() if one is not function]
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        if isinstance(function.expression, exp.Expr):
            around.insert(0, function.expression)
        function = function.this
    yield from function.iter_expressions()
    for one in around:
        yield from (one.this,) if isinstance(one, exp.Where) else (one,)
