"""What DuckDB's catalog says of tables and views by their names: comments, and columns of plain tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import duckdb

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.identifier_case import fold

PART = r'(?:"(?:[^"]|"")+"|[^\s".()]+)'
QUALIFIED = re.compile(rf"{PART}(?:\.{PART}){{0,2}}")


class _Row(NamedTuple):
    """What the catalog says of a column, or of a table itself, whose `column` is ''; `place` is folded.

    `number_of_table` is that by which DuckDB knows a table, 0 of what is none: no other of the instance has it, nor
    has one that replaces it.
    """

    place: tuple[str, str]
    number: int
    column: str
    kind: str
    comment: str | None
    is_table: bool
    may_collate: bool
    number_of_table: int


_TABLES = """
select table_name, database_name, schema_name, column_index, column_name, data_type, comment, false, false, 0
from duckdb_columns() where not internal and lower(table_name) {named}
union all select table_name, database_name, schema_name, 0, '', '', comment, true,
contains(lower(sql), 'collate') or current_setting('default_collation') <> '', table_oid
from duckdb_tables() where lower(table_name) {named}"""
_VIEWS = """
select view_name, database_name, schema_name, 0, '', '', comment, false, false, 0
from duckdb_views() where not internal and lower(view_name) {named}"""


class CatalogRows:
    """Rows of the catalog for the names a call gives, read in one statement."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection | None, database: str, schema: str) -> None:
        """Read through `cursor`, wherever it stands.

        Args:
            cursor: a connection to the caller's database; None sees nothing.
            database: the caller's default database.
            schema: the caller's default schema.
        """
        self._cursor, self._here = cursor, (fold(database), fold(schema))
        self._said: dict[str, list[_Row]] = {}
        self._expected: set[str] = set()
        self._views: set[str] = set()

    def expect(self, given: Iterable[object]) -> None:
        """Let the catalog be read for several tables in one statement, once one of them is asked for.

        Args:
            given: arguments of a call, of which some may be names of tables.
        """
        named = [text for text in given if isinstance(text, str) and QUALIFIED.fullmatch(text)]
        self._expected |= {names_of(text)[-1] for text in named}

    def said(self, sql: str) -> tuple[dict[str, str], str]:
        """Comments of a table's columns as they are written, and of the table itself."""
        *qualifiers, table = names_of(sql)
        rows = self._look_up(table)
        columns, tables = ([row for row in rows if bool(row.column) is of_column] for of_column in (True, False))
        return self._nearest(columns, qualifiers), self._nearest(tables, qualifiers).get("", "")

    def columns_here(self, sql: str) -> dict[str, str]:
        """Columns of a table, not of a view, in the caller's own schema, which a bare name means; none for others."""
        rows = self._of_table_here(sql)
        return {row.column: row.kind for row in sorted(rows, key=lambda row: row.number) if row.column}

    def by_letters(self, sql: str) -> bool:
        """Whether a table that has `columns_here` has, for certain, no column with a collation."""
        rows = self._of_table_here(sql)
        return bool(rows) and not any(row.may_collate for row in rows)

    def number_of_table(self, sql: str) -> int:
        """The number by which DuckDB knows a table that has `columns_here`; 0 for others."""
        return next((row.number_of_table for row in self._of_table_here(sql) if row.is_table), 0)

    def _of_table_here(self, sql: str) -> list[_Row]:
        qualified = len(parts := names_of(sql)) > 1
        rows = [] if qualified else [row for row in self._look_up(parts[0]) if self._is_here(row)]
        return rows if any(row.is_table for row in rows) else []

    def _is_here(self, row: _Row) -> bool:
        return row.place == self._here

    def _look_up(self, table: str) -> list[_Row]:
        """What the catalog says of all tables and views that a name, folded, means somewhere."""
        if self._cursor is None:
            return []
        self._expected.add(table)
        if table not in self._said:
            self._read(_TABLES)
        if table not in self._views and not any(row.is_table and self._is_here(row) for row in self._said[table]):
            self._read(_VIEWS)  # a view of the caller's schema comes before tables elsewhere
            self._views |= self._expected
        return self._said[table]

    def _read(self, statement: str) -> None:
        assert self._cursor is not None  # noqa: S101 -- callers ask
        asked = self._expected - (self._views if statement == _VIEWS else set(self._said))
        named = f"in ({', '.join(f'lower({literal(name)})' for name in sorted(asked))})"
        for name in asked:
            self._said.setdefault(name, [])
        for name, database, schema, *said in self._cursor.execute(statement.format(named=named)).fetchall():
            if fold(name) in asked:  # lower() of SQL makes one of letters that DuckDB tells apart
                self._said[fold(name)].append(_Row((fold(database), fold(schema)), *said))

    def _nearest(self, rows: list[_Row], qualifiers: list[str]) -> dict[str, str]:
        """Comments by name, of the table a name with these qualifiers means: the caller's own schema comes first."""

        def rank(row: _Row) -> int:
            database, schema = row.place
            if qualifiers and not (schema == qualifiers[-1] or (len(qualifiers) == 1 and database == qualifiers[0])):
                return 9
            if len(qualifiers) == 2 and database != qualifiers[0]:
                return 9
            return 0 if self._is_here(row) else 1 if database == self._here[0] else 2

        best = min(map(rank, rows), default=9)
        return {row.column: row.comment for row in rows if row.comment and best < 9 and rank(row) == best}


def names_of(sql: str) -> list[str]:
    """The parts of a table's name, folded."""
    parts = re.findall(PART, sql)
    return [fold(p[1:-1].replace('""', '"') if p.startswith('"') else p) for p in parts]
