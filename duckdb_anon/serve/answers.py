"""Statements that name an original, answered from its release: the SQL that runs in place of a client's statement.

Aggregates are estimates of the rewriter, in closed form or from its plausible tables. Rows are those of one plausible
table, which is drawn when the server starts. No row of the original is read, and the SQL of an answer
passes a guard of its own, which knows releases alone.
Cost: one draw at the start; then planning alone, since what a release carries is read once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from duckdb_anon.answering.original_names import Answering
from duckdb_anon.engine.catalog.catalog import Catalog as PlannersCatalog
from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.catalog.duckdb_metadata import functions_there
from duckdb_anon.engine.planning_context import Context
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.source_tables import SourceTable, tables_of
from duckdb_anon.measures.queries.query_tables import query_tables, several_tables
from duckdb_anon.model.errors import AnonError, one_line
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.registry import ENTRIES
from duckdb_anon.rewrite.query.parse import parse
from duckdb_anon.rewrite.query.refusals import require_understood
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.rewriter import rewrite
from duckdb_anon.serve.guard import AGGREGATES, ANSWERING, FUNCTIONS, HARMLESS, Guard, Refused, Statement

_MOST = 10_000
CLOSED = ("autoinstall_known_extensions = false", "autoload_known_extensions = false", "temp_directory = ''")
LOCKED = ("enable_external_access = false", "lock_configuration = true")
"""Settings of a database that reaches nothing else."""


class Catalog:
    """The catalog of some tables, in a database that holds their names and types and no row.

    A statement over the catalog (information_schema, duckdb_tables(), SHOW, DESCRIBE) runs there, and the server sends
    what it returned as values. So no such statement can name anything else, whatever it asks.
    """

    def __init__(self, tables: Iterable[SourceTable]) -> None:
        """Make empty tables of these names, types and comments."""
        self._con = duckdb.connect(":memory:")
        self._lock = threading.Lock()
        for table in tables:
            columns = ", ".join(f"{ident(column)} {kind}" for column, (kind, _) in table.columns.items())
            self._con.execute(f"create table {ident(table.name)} ({columns})")
            comments = {column: text for column, (_, text) in table.columns.items() if text}
            write_comments(self._con, ident(table.name), table.comment, comments)
        own = ("memory_limit = '64MB'", "threads = 1", "python_enable_replacements = false")
        for setting in (*own, *CLOSED, *LOCKED):
            self._con.execute(f"set global {setting}")

    def answer(self, statement: str) -> str:
        """SQL of the values that a statement over the catalog returns."""
        try:
            with self._lock:
                cursor = self._con.execute(statement)
                named = [(str(name), str(kind)) for name, kind, *_ in cursor.description or []]
                rows = cursor.fetchmany(_MOST + 1)
        except duckdb.Error as error:
            raise Refused(one_line(error)) from error
        if len(rows) > _MOST:
            raise Refused(f"a statement over the catalog may return {_MOST} rows")
        return values_sql(named, rows)


def values_sql(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> str:
    """SQL that returns rows as constants, its columns by name and type."""
    shown = ", ".join(f"c{place}::{kind} as {ident(name)}" for place, (name, kind) in enumerate(columns))
    numbered = ", ".join(f"c{place}" for place, _ in enumerate(columns))
    listed = ", ".join(f"({', '.join(map(_value, row))})" for row in rows or [(None,) * len(columns)])
    return f"select {shown} from (values {listed}) as t({numbered}){'' if rows else ' where false'}"


def _value(value: Any) -> str:
    """A value of the catalog as SQL: numbers and truth values, texts, and lists of them."""
    if isinstance(value, dict):
        return f"map {literal(value)}"
    return literal(value if value is None or isinstance(value, (bool, int, list)) else str(value))


_FUNCTION = "rewrite_query"
_DRAWN = "drawn"
_NO_ROWS = "the release holds noisy counts, of which no rows can be drawn; ask for aggregates"
_MARK = (
    "plausible rows drawn from a release of {original}; no row is the record of an individual. Aggregates in a "
    "statement that is sent with query() or quack_query() are estimates from the release itself"
)


@dataclass(frozen=True)
class Answer:
    """What runs in place of a client's statement."""

    sql: str
    engine: str | None = None  # what computes the answer
    refused: str = ""  # why the statement may not run
    facts: Mapping[str, object] = field(default_factory=dict)  # what the audit log has of it besides


class Answers:
    """Answers for originals from releases."""

    def __init__(self, con: duckdb.DuckDBPyConnection, releases: Mapping[str, str], seed: int, bounds: Bounds) -> None:
        """Read what the releases carry, and draw a plausible table of each."""
        self._con, self._lock = con.cursor(), threading.Lock()
        self._answering = Answering(releases, bounds)
        self._catalog = PlannersCatalog(self._con, "memory", "main")
        self._read = {original: self._reading(original, release) for original, release in releases.items()}
        database = {original: releases[original] for original, (info, _) in self._read.items() if info.pseudonyms}
        con.execute(f"attach ':memory:' as {_DRAWN}")
        shown = [original for original, (_, release) in self._read.items() if release.reader.can_draw]
        for original in shown:
            drawn = f"impute({literal(releases[original])}, original := {literal(original)}, seed := {seed}"
            if original in database:  # tables that join are drawn together
                drawn += f", together := {literal(database)}"
            # the call is planned for tables of these names, so what it makes has another one while it runs
            con.execute(f"create table {_DRAWN}.main._anon_drawing as from {drawn})")
            con.execute(f"alter table {_DRAWN}.main._anon_drawing rename to {ident(original)}")
        for original in shown:  # once all are drawn, which takes the shapes
            _show(con, original)
        tables = "select view_name from duckdb_views() union all select table_name from duckdb_tables()"
        names = {str(name) for (name,) in con.execute(tables).fetchall()}
        hidden = [name for name in names if fold(name) not in self._read]
        self.guard = Guard(releases, HARMLESS, {"unnest": ANSWERING["unnest"]}, hidden)
        trees = [tree.given for info, _ in self._read.values() for tree in info.hierarchies.values()]
        self._inner = Guard([*releases.values(), *trees], FUNCTIONS, ANSWERING)

    def answer(self, text: str, statement: Statement) -> Answer:
        """What answers a statement that the guard has checked."""
        if not statement.reads:
            return Answer(text, "constants")
        if asks_for_rows(statement):
            if any(not self._read[original][1].reader.can_draw for original in statement.reads):
                raise Refused(_NO_ROWS)
            return Answer(text, "plausible rows")
        with self._lock:
            answer, _ = self._answering.rewritten(text, (), self)
        found = self._inner.check(answer)
        draws = any(fold(node.get("function_name", "")) == "impute" for node in found.nodes)
        return Answer(answer, "plausible tables" if draws else "closed form")

    def rewritten(self, query: str, releases: Mapping[str, str], bounds: str) -> str:
        """The SQL of a query's estimate, from what was read at the start; see `original_names.Rewriter`."""
        if len(releases) > 1:
            entries = {entry.name: entry for entry in ENTRIES}
            context = Context(_FUNCTION, self._catalog, {"query": query}, entries)
            info, released, _ = several_tables(context, query, releases, "none")
        else:
            info, released = self._read[next(iter(releases))]
        require_understood(parse(query), lambda names: functions_there(self._catalog, names))
        wanted: Bounds = "none" if bounds == "none" else "sure"
        return rewrite(query, info, released, (), wanted, True, "learnt", noted=True)

    def _reading(self, original: str, release: str) -> tuple[TableInfo, TableInfo]:
        """What the rewriter needs of an original and its release."""
        arguments = {"query": f"select count(*) from {ident(original)}", "original": original, "release": release}
        entries = {entry.name: entry for entry in ENTRIES}
        context = Context(_FUNCTION, self._catalog, {**arguments, "bounds": "sure"}, entries)
        try:
            info, released, _ = query_tables(context, arguments["query"], "sure")
        except AnonError as error:
            raise AnonError(f"serve: --answer {original}:{release} does not hold: {error}") from error
        return info, released


def _drawn_of(original: str) -> str:
    return f"{_DRAWN}.main.{ident(original)}"


def _show(con: duckdb.DuckDBPyConnection, original: str) -> None:
    """Put a view of a plausible table in the place of the shape of an original: no client can name the table."""
    name = ident(original)
    labels = next(t for t in tables_of(con, "memory") if t.is_view and fold(t.name) == fold(original)).columns
    con.execute(f"create or replace view main.{name} as from {_drawn_of(original)}")
    drawn_columns = con.sql(f"from main.{name}").columns
    kept = {column: text for column in drawn_columns if (text := labels.get(column, ("", None))[1])}
    con.execute(f"comment on view main.{name} is {literal(_MARK.format(original=original))}")
    write_comments(con, f"main.{name}", None, kept)


def asks_for_rows(statement: Statement) -> bool:
    """Whether a statement shows rows of one table, some or all, and computes nothing over several of them."""
    if not statement.is_of_one_table:
        return False
    for inner in statement.nodes:
        function = fold(inner.get("function_name", "")) if inner.get("class") == "FUNCTION" else ""
        if function in AGGREGATES or inner.get("class") in ("WINDOW", "SUBQUERY"):
            return False
        if inner["type"] == "DISTINCT_MODIFIER":
            return False
    return True
