"""What clients learn of tables and columns: the catalog of a database that holds their names and types and no row.

A statement over the catalog (information_schema, duckdb_tables(), SHOW, DESCRIBE) runs there, and the server sends what
it returned as values. So no such statement can name anything else, whatever it asks. Rows are bounded by `_MOST`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from duckdb_anon.engine.catalog import write_comments
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import one_line
from duckdb_anon.serve.guard import Refused

_MOST = 10_000
_SETTINGS = (
    "memory_limit = '64MB'", "threads = 1", "temp_directory = ''", "python_enable_replacements = false",
    "autoinstall_known_extensions = false", "autoload_known_extensions = false", "enable_external_access = false",
    "lock_configuration = true",
)  # fmt: skip


@dataclass(frozen=True)
class TableText:
    """What a client learns of a table.

    Attributes:
        columns: their types by name.
        comment: of the table.
        comments: of columns, by name.
    """

    columns: Mapping[str, str]
    comment: str
    comments: Mapping[str, str] = field(default_factory=dict)


class Catalog:
    """The catalog of some tables."""

    def __init__(self, tables: Mapping[str, TableText]) -> None:
        """Make empty tables of these names."""
        self._con = duckdb.connect(":memory:")
        self._lock = threading.Lock()
        for name, table in tables.items():
            columns = ", ".join(f"{ident(column)} {kind}" for column, kind in table.columns.items())
            self._con.execute(f"create table {ident(name)} ({columns})")
            write_comments(self._con, ident(name), table.comment, table.comments)
        for setting in _SETTINGS:
            self._con.execute(f"set global {setting}")

    def answer(self, statement: str) -> str:
        """SQL of the values that a statement over the catalog returns.

        Raises:
            Refused: it fails, or returns too many rows.
        """
        try:
            with self._lock:
                cursor = self._con.execute(statement)
                named = [(str(name), str(kind)) for name, kind, *_ in cursor.description or []]
                rows = cursor.fetchmany(_MOST + 1)
        except duckdb.Error as error:
            raise Refused(one_line(error)) from error
        if len(rows) > _MOST:
            raise Refused(f"a statement over the catalog may return {_MOST} rows")
        shown = ", ".join(f"c{place}::{kind} as {ident(name)}" for place, (name, kind) in enumerate(named))
        columns = ", ".join(f"c{place}" for place, _ in enumerate(named))
        listed = ", ".join(f"({', '.join(map(_value, row))})" for row in rows or [(None,) * len(named)])
        return f"select {shown} from (values {listed}) as t({columns}){'' if rows else ' where false'}"


def _value(value: Any) -> str:
    """A value of the catalog as SQL: numbers and truth values, texts, and lists of them."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"map {{{', '.join(f'{_value(key)}: {_value(item)}' for key, item in value.items())}}}"
    return str(value) if isinstance(value, (bool, int)) else literal(str(value))
