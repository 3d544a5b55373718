"""Reading a query: one SELECT, DuckDB's dialect, every column bound to its table by `passes`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query import passes, pivots
from duckdb_anon.rewrite.query.refusals import refuse, refuse_lists, unlisted
from duckdb_anon.rewrite.query.tables import Describe, TableInfo, same_table
from duckdb_anon.rewrite.query.trees import (
    all_of,
    groups_of,
    has_aggregate,
    leftmost,
    quoted,
    step_of,
    table_number,
)


@lru_cache(maxsize=32)
def parse(query: str) -> exp.Query:
    """Parse one query; the tree is the same for the same text, so it is read and copied, never changed.

    Raises:
        RewriteError: when the text is not exactly one SELECT.
    """
    try:
        with _without_warnings():
            trees = [tree for tree in sqlglot.parse(query, read="duckdb") if tree is not None]
    except SqlglotError as error:
        position = str(error).split("\n", 1)[0]
        raise RewriteError(f"the query could not be parsed: {position}") from error
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, exp.Pivot)):
        types = listed(type(tree).__name__.upper() for tree in trees)
        raise RewriteError(f"the query must be one SELECT, found {len(trees)} statement(s): {types}")
    refuse_lists(query)
    return passes.run(trees[0], passes.OF_TEXT)


def with_values(query: str, look_up: pivots.LookUp) -> str:
    """Text of a query with the values and keys of each PIVOT that does not name them."""
    if not parse(query).meta.get(pivots.OPEN):
        return query
    made = pivots.spelled_out(sqlglot.parse_one(query, dialect="duckdb"), look_up)
    refuse(made, ())
    return made.sql("duckdb")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What is no query is refused here, so what sqlglot would print of it is not."""
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def tables_of(query: str) -> list[str]:
    """List the tables a query reads, as SQL text, CTEs left out, so that a planner can describe them."""
    names = []
    for table in all_of(parse(query), exp.Table):
        if not isinstance(table.this, exp.Identifier) or step_of(table) is not None:
            continue
        if not (table.args.get("db") or table.args.get("catalog")):
            names.append(quoted(table.name) if table.this.quoted else table.name)
            continue
        bare = table.copy()
        for key in ("alias", "joins", "pivots", "sample"):
            bare.set(key, None)
        names.append(bare.sql("duckdb"))
    return list(dict.fromkeys(names))


def require_table(tree: exp.Query, info: TableInfo) -> None:
    """Raise unless the query reads the original."""
    read = [table for table in all_of(tree, exp.Table) if step_of(table) is None]
    if not any(same_table(table, info) for table in read):
        tables = [table.name for table in read]
        near = next((found for found in (nearest(name, [info.name]) for name in tables) if found), "")
        raise RewriteError(
            f"the query does not read the original {info.name}; it reads {listed(tables) or 'no table'}{near}"
        )


def grounded(tree: exp.Query, tables: Sequence[TableInfo]) -> exp.Query:
    """Put the tables' own SQL back where `name_tables` wrote plain names, in place."""
    for table in all_of(tree, exp.Table):
        number = table_number(table)
        if number is not None and number < len(tables):
            table.set("this", exp.Var(this=tables[number].sql))  # what follows FROM stays as it is
    return tree


@dataclass(frozen=True)
class Output:
    """One output column.

    Attributes:
        name: what the result of the query calls it.
        measure: whether an aggregate computes it.
        additive: whether no matching row means 0 (COUNT and SUM) rather than unknown.
        type: its DuckDB type; '' where it is unknown.
    """

    name: str
    measure: bool
    additive: bool
    type: str = ""


def read_query(query: str, tables: Sequence[TableInfo]) -> tuple[exp.Query, tuple[Output, ...]]:
    """A query, bound, and its output columns; without `describe` names are those of the bound query.

    Args:
        query: one SELECT over the original.
        tables: the original first, then other tables of the query.

    Raises:
        RewriteError: it cannot be read.
    """
    describe = tables[0].describe
    written = parse(query)
    if written.meta.get(pivots.OPEN):  # what it reads stands in its place
        raise unlisted()
    require_table(written, tables[0])
    try:
        tree = passes.run(_titled(written, describe).copy(), passes.OF_NAMES, tables)
    except RewriteError:
        if describe is not None:
            describe(query)  # DuckDB says what is wrong, and which names are near
        raise
    columns = [projection.alias_or_name for projection in leftmost(tree).expressions]
    described = _described(query, describe)
    if len(described) != len(columns):
        described = [(name, "") for name in columns]
    scope = build_scope(tree)
    flags = measure_flags(scope) if scope is not None else []
    flags += [False] * (len(columns) - len(flags))
    values = [e.unalias() for e in leftmost(tree).expressions]
    return tree, tuple(
        Output(name, flag, isinstance(_aggregate(value), (exp.Count, exp.Sum, exp.CountIf)), kind)
        for (name, kind), flag, value in zip(described, flags, values, strict=True)
    )


def called_by_text(query: str, outputs: Sequence[Output]) -> tuple[Output, ...]:
    """The output columns of a query's text; expressions without an alias are called by their text."""
    written, names = leftmost(parse(query)).expressions, [output.name for output in outputs]
    if len(written) == len(names) and not any(step.is_star for step in written):
        texts = [step.sql("duckdb", normalize_functions="lower") for step in written]
        names = [texts[i] if _is_unnamed(step) else names[i] for i, step in enumerate(written)]
    return tuple(replace(output, name=name) for output, name in zip(outputs, names, strict=True))


def _described(query: str, describe: Describe | None) -> Sequence[tuple[str, str]]:
    """Names and types of the columns; none where DuckDB cannot bind the query, which may call a table otherwise."""
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
        names = [name for name, _ in _described(select.sql("duckdb"), describe)]
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
    keys = groups_of(scope.expression).keys
    return [e.unalias() not in keys and _is_measure(e, inner) for e in scope.expression.expressions]


def _is_measure(projection: exp.Expr, inner: dict[str, dict[str, bool]]) -> bool:
    if projection.find(exp.Query) is not None or has_aggregate(projection):
        return True
    columns = all_of(projection, exp.Column)
    return any(inner.get(column.table, {}).get(column.name, False) for column in columns)


def _aggregate(projection: exp.Expr) -> exp.Expr:
    return projection.this if isinstance(projection, exp.Filter) else projection
