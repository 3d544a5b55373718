"""The named steps of a text that was rewritten, each with a query that runs it and what it reads, and nothing after it.

DuckDB says of a text that fails what went wrong, not where, once rows are read: `Conversion Error: ...`. Whoever ran it
runs the steps one by one, and the first that fails the same way is the one to show. Cost: one parse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from duckdb_anon.rewrite.query.trees import all_of, laid_out


@dataclass(frozen=True)
class WrittenStep:
    """A step.

    Attributes:
        name: what the text calls it.
        sql: its SELECT, without the steps inside it.
        alone: a query that reckons every column of the step, and gives one row.
    """

    name: str
    sql: str
    alone: str


def written_steps(text: str) -> list[WrittenStep]:
    r"""The steps of one statement, each after those it reads; none where it has none, or is no statement.

    Args:
        text: SQL.

    >>> [(s.name, s.sql) for s in written_steps("with a as (select 1 as x) select * from a")]
    [('a', 'SELECT\n  1 AS x')]
    """
    try:
        query = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError:
        return []
    steps = [cte for cte in _inside_out(query) if cte.alias]
    return [WrittenStep(cte.alias, _without_inner_steps(cte), _single_step_query(cte)) for cte in steps]


def _inside_out(query: exp.Expr) -> Iterator[exp.CTE]:
    """Steps in the order they are needed: those inside a step before it."""
    found = all_of(query, exp.CTE)
    inner = {id(step) for cte in found for step in all_of(cte.this, exp.CTE)}
    for cte in found:
        if id(cte) not in inner:
            yield from _inside_out(cte.this)
            yield cte


def _without_inner_steps(cte: exp.CTE) -> str:
    made = cte.this.copy()
    for steps in all_of(made, exp.With):
        steps.pop()
    return laid_out(made).strip()


def _single_step_query(cte: exp.CTE) -> str:
    """A query of one step: without its hash, columns that nothing reads would not be reckoned."""
    made: exp.Query = sqlglot.select("max(hash(columns(*)))", dialect="duckdb").from_(
        exp.Table(this=exp.to_identifier(cte.alias, quoted=True))
    )
    node: exp.Expr = cte
    while True:
        around = node.find_ancestor(exp.CTE, exp.With)
        if isinstance(around, exp.With) and isinstance(node, exp.CTE):
            needed = around.expressions[: _index_of(around, node) + (node is cte)]
            made = _with(made, needed, bool(around.args.get("recursive")))
        if around is None:
            return laid_out(made)
        node = around


def _index_of(steps: exp.With, step: exp.CTE) -> int:
    return next(number for number, projection in enumerate(steps.expressions) if projection is step)


def _with(query: exp.Query, steps: list[exp.CTE], recursive: bool) -> exp.Query:
    if not steps:
        return query
    if query.args.get("with_") is not None:
        query = exp.Select(
            expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this="inside")))
        )
    query.set("with_", exp.With(expressions=[step.copy() for step in steps], recursive=recursive or None))
    return query
