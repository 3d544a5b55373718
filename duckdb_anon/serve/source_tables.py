"""The tables and views of the database that is published, attached to the connection that reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import duckdb

from duckdb_anon.engine.column_roles import role_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.release_formats.duckdb_types import box_type, is_channels, is_nested, list_type, struct_fields

ATTACHED = "_anon_source"


@dataclass(frozen=True)
class SourceTable:
    """A table of the source: SQL that follows FROM, name, comment, columns with type and comment."""

    sql: str
    name: str
    comment: str
    columns: Mapping[str, tuple[str, str | None]]

    def role(self, column: str) -> str:
        """Role of a column by its comment, '' for none."""
        return role_of(self.columns[column][1])

    def values(self) -> list[PlainValue]:
        """The plain values inside each row: ends of intervals, elements of lists, fields of STRUCTs."""
        return [
            value
            for column, (kind, _) in self.columns.items()
            for value in _unwrapped(PlainValue(column, ident(column), kind, self.role(column)))
        ]


@dataclass(frozen=True)
class PlainValue:
    """A plain value of a row.

    Attributes:
        name: the attribute: the name of the column, or of the field that contains it.
        sql: the value; NULL where the column has several.
        kind: its type.
        role: of the column, '' for none.
    """

    name: str
    sql: str
    kind: str
    role: str


def _unwrapped(value: PlainValue) -> Iterator[PlainValue]:
    x, boxed, element = value.sql, box_type(value.kind), list_type(value.kind)
    if boxed is not None:
        yield replace(value, sql=f"case when {x}.lower = {x}.upper then {x}.lower end", kind=boxed)
    elif element is not None:
        yield from _unwrapped(replace(value, sql=f"case when len({x}) = 1 then {x}[1] end", kind=element))
    elif fields := struct_fields(value.kind):
        for name, inner in () if is_channels(value.kind) else fields:
            yield from _unwrapped(replace(value, name=name, sql=f"({x}).{ident(name)}", kind=inner))
    elif not is_nested(value.kind) or value.kind.upper() == "INTERVAL":
        yield value


def read_table(con: duckdb.DuckDBPyConnection, schema: str, name: str, comment: str | None) -> SourceTable:
    """One of the tables, with the types and comments of its columns.

    Args:
        con: where the source is attached.
        schema: the table's schema in it.
        name: the table.
        comment: the table's comment.
    """
    rows = con.execute(
        "select column_name, data_type, comment from duckdb_columns() "
        "where database_name = ? and schema_name = ? and table_name = ? order by column_index",
        [ATTACHED, schema, name],
    ).fetchall()
    columns = {column: (kind, text) for column, kind, text in rows}
    return SourceTable(f"{ATTACHED}.{ident(schema)}.{ident(name)}", name, comment or "", columns)


def all_tables(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str | None]]:
    """Schema, name and comment of every table."""
    return con.execute(
        "select schema_name, table_name, comment from duckdb_tables() "
        "where database_name = ? and not internal and not temporary order by all",
        [ATTACHED],
    ).fetchall()


def all_views(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str | None]]:
    """Schema, name and comment of every view."""
    return con.execute(
        "select schema_name, view_name, comment from duckdb_views() where database_name = ? and not internal",
        [ATTACHED],
    ).fetchall()
