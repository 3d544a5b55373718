"""Databases with the package loaded, passed from test to test, since loading takes DuckDB a fifth of a second.

A database is passed on when the test attached no other one and left the settings as they were; what it made is dropped.
A test file that makes what DuckDB does not list cheaply always gets new databases. Each has one thread: small queries
take a third less processor time then, and tables of tests fill no second one.
"""

import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb

import duckdb_anon
from duckdb_anon.engine.sql_quoting import ident

_NEW = re.compile(
    r"create \w* ?macro|create or replace \w* ?macro|create_function|pragma|threading|interrupt|"
    r"secret \(|\bprepare|variable ",
    re.IGNORECASE,
)
_SETS = re.compile(r"\b(set|reset|use) ", re.IGNORECASE)
_SETTINGS = "select name, value from duckdb_settings() where name <> 'temp_directory' order by name"
_OBJECTS = """
select 'database', false, database_name from duckdb_databases() where not internal and database_name <> 'memory'
union all select 'schema', false, schema_name from duckdb_schemas() where not internal and schema_name <> 'main'
union all select 'view', temporary, view_name from duckdb_views() where not internal and schema_name = 'main'
union all select 'table', temporary, table_name from duckdb_tables() where schema_name = 'main'
union all select 'sequence', temporary, sequence_name from duckdb_sequences() where schema_name = 'main'
union all select 'type', false, type_name from duckdb_types() where not internal and schema_name = 'main'
"""
_free: list[duckdb.DuckDBPyConnection] = []
_settings: list[object] = []


def take(file: Path) -> duckdb.DuckDBPyConnection:
    """An empty database for a test of a file."""
    if _free and not _matches(_NEW, file):
        return _free.pop()
    con = duckdb_anon.connect(threads=1)
    if not _settings:
        _settings.append(con.execute(_SETTINGS).fetchall())
    return con


def give_back(con: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Empty a database for the next test, or close it."""
    if _matches(_NEW, file) or not _emptied(con, file):
        con.close()
    else:
        _free.append(con)


@cache
def _matches(pattern: re.Pattern[str], file: Path) -> bool:
    return pattern.search(file.read_text(encoding="utf-8")) is not None


def _emptied(con: duckdb.DuckDBPyConnection, file: Path) -> bool:
    """Drop what a test made; False where something else is left."""
    try:
        with suppress(duckdb.TransactionException):  # where the test left no transaction open
            con.rollback()
            return False
        if _matches(_SETS, file) and con.execute(_SETTINGS).fetchall() != _settings[0]:
            return False
        objects = con.execute(_OBJECTS).fetchall()
        if any(kind == "database" for kind, _, _ in objects):
            return False
        for kind, temporary, name in objects:
            if kind == "schema":
                con.execute(f"drop schema memory.{ident(name)} cascade")
            else:
                con.execute(f"drop {kind} {'temp' if temporary else 'memory'}.main.{ident(name)}")
    except duckdb.Error:
        return False
    return True
