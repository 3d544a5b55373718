"""The output columns of a query: their names as DuckDB gives them, which are keys and which are measures.

A measure is a column computed by an aggregate, in the query or in a subquery it reads; every other column is a key.
DuckDB names the columns: it describes the query on the original or its shape, without running it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.parse import bound, parse, require_table
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import all_of, has_aggregate, leftmost

Describe = Callable[[str], Sequence[str]]
"""Gives the names of the columns of a query's result; raises RewriteError, in DuckDB's words, where it binds none."""


@dataclass(frozen=True)
class Output:
    """One output column.

    Attributes:
        name: what the result of the query calls it.
        measure: whether an aggregate computes it.
        additive: whether no matching row means 0 (COUNT and SUM) rather than unknown.
    """

    name: str
    measure: bool
    additive: bool


def read_query(
    query: str, tables: Sequence[TableInfo], describe: Describe | None = None
) -> tuple[exp.Query, list[str]]:
    """A query, bound, and the names of its output columns.

    Args:
        query: one SELECT over the original.
        tables: the original first, then other tables of the query.
        describe: asks DuckDB for names; without it they are those of the bound query.

    Raises:
        RewriteError: it cannot be read.
    """
    written = parse(query)
    require_table(written, tables[0])
    try:
        tree = bound(_titled(written, describe), tables)
    except RewriteError:
        if describe is not None:
            describe(query)  # DuckDB says what is wrong, and which names are near
        raise
    columns = [one.alias_or_name for one in leftmost(tree).expressions]
    names = _described(query, describe)
    return tree, list(names) if len(names) == len(columns) else columns


def outputs(query: str, names: Sequence[str], tree: exp.Query) -> tuple[Output, ...]:
    """Describe the output columns of a bound query; expressions without an alias are called by their text.

    Args:
        query: its text.
        names: names of its columns.
        tree: the bound query.
    """
    written = leftmost(parse(query)).expressions
    if len(written) == len(names) and not any(one.is_star for one in written):
        texts = [one.sql("duckdb", normalize_functions="lower") for one in written]
        names = [texts[i] if _is_unnamed(one) else names[i] for i, one in enumerate(written)]
    scope = build_scope(tree)
    flags = measure_flags(scope) if scope is not None else [False] * len(names)
    values = [e.unalias() for e in leftmost(tree).expressions]
    return tuple(
        Output(name, flag, isinstance(_aggregate(value), (exp.Count, exp.Sum, exp.CountIf)))
        for name, flag, value in zip(names, flags, values, strict=True)
    )


def _described(query: str, describe: Describe | None) -> Sequence[str]:
    """Names of the columns; none where DuckDB cannot bind the query, which may read a table by another name."""
    try:
        return describe(query) if describe is not None else ()
    except RewriteError:
        return ()


def _titled(query: exp.Query, describe: Describe | None) -> exp.Query:
    """The query with an alias on each expression without one in FROM and WITH, by which it may be read."""
    if describe is None or not any(True for _ in _untitled(query)):
        return query
    made = query.copy()
    for select in _untitled(made):
        names = _described(select.sql("duckdb"), describe)
        if len(names) == len(select.expressions):
            for projection, name in zip(select.expressions, unique_names(names), strict=True):
                if _is_unnamed(projection):
                    projection.replace(exp.alias_(projection.copy(), name, quoted=True))
    return made


def _untitled(query: exp.Query) -> Iterator[exp.Select]:
    """SELECTs in FROM and WITH that have an expression without a name."""
    for select in all_of(query, exp.Select):
        top: exp.Expr = select
        while isinstance(top.parent, exp.SetOperation) and top.parent.this is top:
            top = top.parent
        around = top.parent
        source = isinstance(around, exp.Subquery) and isinstance(around.parent, (exp.From, exp.Join, exp.Subquery))
        if (source or isinstance(around, exp.CTE)) and any(map(_is_unnamed, select.expressions)):
            yield select


def _is_unnamed(projection: exp.Expr) -> bool:
    return not (projection.is_star or projection.alias or isinstance(projection.unnest(), exp.Column))


def unique_names(names: Sequence[str]) -> list[str]:
    """Names that all differ: equal ones have numbers, as the columns of a subquery in DuckDB have."""
    found: list[str] = []
    for first in names:
        name, number = first, 0
        while fold(name) in map(fold, found):
            name = f"{first}_{(number := number + 1)}"
        found.append(name)
    return found


def measure_flags(scope: Scope) -> list[bool]:
    """Whether an aggregate computes each output column of a query."""
    if scope.set_operation_scopes:
        left, right = (measure_flags(part) for part in scope.set_operation_scopes[:2])
        return [a or b for a, b in zip(left, right, strict=False)]
    if not isinstance(scope.expression, exp.Select):
        return []
    inner: dict[str, dict[str, bool]] = {}
    for name, source in scope.sources.items():
        if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            columns = source.expression.named_selects
            inner[name] = dict(zip(columns, measure_flags(source), strict=False))
    return [_is_measure(e, inner) for e in scope.expression.expressions]


def _is_measure(projection: exp.Expr, inner: dict[str, dict[str, bool]]) -> bool:
    if projection.find(exp.Query) is not None or has_aggregate(projection):
        return True
    columns = all_of(projection, exp.Column)
    return any(inner.get(column.table, {}).get(column.name, False) for column in columns)


def _aggregate(projection: exp.Expr) -> exp.Expr:
    return projection.this if isinstance(projection, exp.Filter) else projection
