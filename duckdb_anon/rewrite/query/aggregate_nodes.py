"""Where the aggregates of a SELECT stand."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from duckdb_anon.rewrite.query.refusals import is_aggregate


def aggregate_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Aggregates of this SELECT, with their FILTER; those of subqueries are not its own."""
    places = list(select.expressions)
    places += [select.args[key] for key in ("having", "order", "qualify") if select.args.get(key)]
    for place in places:
        yield from _outermost(place)


def _outermost(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        # the function over a window works on the groups; only aggregates inside it are of the rows
        for part in node.iter_expressions():
            for inner in part.iter_expressions() if part is node.this else (part,):
                yield from _outermost(inner)
        return
    if isinstance(node, (exp.Filter, exp.WithinGroup)) or is_aggregate(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from _outermost(child)
