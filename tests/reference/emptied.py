"""Databases with the package loaded, handed from test to test: to load takes DuckDB a tenth of a second.

A database is handed on only when nothing is left of the test before but tables and views, which are dropped: anything
else (a setting, a schema, an attached database, an open transaction, a type) and it is closed. What no list of DuckDB's
shows soon enough is looked for in the test's own file.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import duckdb

import duckdb_anon
from duckdb_anon.engine.sql_quoting import ident

_NEW_ONE = re.compile(
    r"create \w* ?macro|create or replace \w* ?macro|create_function|attach|pragma|threading|interrupt", re.IGNORECASE
)
_LEFT = """
select (select count(*) from duckdb_databases() where not internal) - 1
    + (select count(*) from duckdb_schemas() where not internal) + (select count(*) from duckdb_sequences())
    + (select count(*) from duckdb_types() where not internal) + (select count(*) from duckdb_variables())
    + (select count(*) from duckdb_prepared_statements()) + (select count(*) from duckdb_secrets())
"""
_SETTINGS = "select name, value from duckdb_settings() order by name"
_TABLES = """
select 'view', temporary, schema_name, view_name from duckdb_views() where not internal
union all select 'table', temporary, schema_name, table_name from duckdb_tables()
"""
_free: list[duckdb.DuckDBPyConnection] = []
_settings: list[object] = []


def take(file: Path) -> duckdb.DuckDBPyConnection:
    """An empty database.

    Args:
        file: the test's.
    """
    if _free and not _wants_new_one(file):
        return _free.pop()
    return duckdb_anon.connect()


def give_back(con: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Empty a database for the next test, or close it.

    Args:
        con: what `take` returned.
        file: the test's.
    """
    if _wants_new_one(file) or not _emptied(con):
        con.close()
    else:
        _free.append(con)


@cache
def _wants_new_one(file: Path) -> bool:
    return _NEW_ONE.search(file.read_text(encoding="utf-8")) is not None


def _emptied(con: duckdb.DuckDBPyConnection) -> bool:
    """Drop tables and views; tell whether nothing else is left."""
    try:
        if _in_transaction(con) or con.execute(_LEFT).fetchone() != (0,):
            return False
        settings = con.execute(_SETTINGS).fetchall()
        if not _settings:
            with duckdb_anon.connect() as fresh:
                _settings.append(fresh.execute(_SETTINGS).fetchall())
        if settings != _settings[0]:
            return False
        for kind, temporary, schema, name in con.execute(_TABLES).fetchall():
            where = [("temp" if temporary else "memory"), schema, name]
            con.execute(f"drop {kind} {'.'.join(ident(one) for one in where)}")
    except duckdb.Error:
        return False
    return True


def _in_transaction(con: duckdb.DuckDBPyConnection) -> bool:
    try:
        con.rollback()
    except duckdb.TransactionException:
        return False
    return True
