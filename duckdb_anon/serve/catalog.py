"""What clients learn of tables and columns: the catalog of a database that holds their names and types and no row.

A statement over the catalog (information_schema, duckdb_tables(), SHOW, DESCRIBE) runs there, and the server sends what
it returned as values. So no such statement can name anything else, whatever it asks. Rows are bounded by `_MOST`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.source_tables import SourceTable
from duckdb_anon.model.errors import one_line
from duckdb_anon.serve.guard import Refused

_MOST = 10_000
CLOSED = ("autoinstall_known_extensions = false", "autoload_known_extensions = false", "temp_directory = ''")
LOCKED = ("enable_external_access = false", "lock_configuration = true")
"""Settings of a database that reaches nothing else."""


class Catalog:
    """The catalog of some tables."""

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
