"""The tables and views of the database that is published, attached to the connection that reads it."""

from __future__ import annotations

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.serve.cell_unwrapping import CandidateTable

ATTACHED = "_anon_source"


def candidate(con: duckdb.DuckDBPyConnection, schema: str, name: str, comment: str | None) -> CandidateTable:
    """One of the tables, with the types and comments of its columns.

    Args:
        con: where the source is attached.
        schema: the table's schema in it.
        name: the table.
        comment: what stands on the table.
    """
    rows = con.execute(
        "select column_name, data_type, comment from duckdb_columns() "
        "where database_name = ? and schema_name = ? and table_name = ? order by column_index",
        [ATTACHED, schema, name],
    ).fetchall()
    columns = {column: (kind, text) for column, kind, text in rows}
    return CandidateTable(f"{ATTACHED}.{ident(schema)}.{ident(name)}", name, comment or "", columns)


def all_tables(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str | None]]:
    """Schema, name and comment of every table."""
    return con.execute(
        "select schema_name, table_name, comment from duckdb_tables() "
        "where database_name = ? and not internal and not temporary order by all",
        [ATTACHED],
    ).fetchall()


def all_views(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Schema and name of every view."""
    return con.execute(
        "select schema_name, view_name from duckdb_views() where database_name = ? and not internal", [ATTACHED]
    ).fetchall()
