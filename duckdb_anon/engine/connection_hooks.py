"""Cursors of a loaded connection know its functions.

A cursor is another connection to the same database: the temporary macros of `load` are not there, and to make a hundred
of them anew takes DuckDB a tenth of a second. So the first cursor puts them, once a database instance, into a database
in memory that no list shows, and each cursor has it at the end of its search path. For that the methods of DuckDB's
connections which make cursors are wrapped once: on connections that nobody loaded they do what they did.

`USE` and `SET search_path` replace that path, and DuckDB has no hook for it: such a cursor is loaded again. What stays
on every path is the database's own schemas, which are the user's, and the connection's temporary one: a hundred macros
there cost a tenth of a second a cursor, against a thousandth.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable

import duckdb

from duckdb_anon.engine import interrupts
from duckdb_anon.engine.sql_quoting import ident, literal

_DATABASE = "_anon_functions"
_METHODS = ("cursor", "duplicate")
_plain = duckdb.DuckDBPyConnection.cursor
_loaded: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, int] = weakref.WeakKeyDictionary()
_made: set[int] = set()
_lock = threading.Lock()

Load = Callable[[duckdb.DuckDBPyConnection], object]
Statements = Callable[[], Iterable[tuple[str, str]]]


def in_one_text(statements: Iterable[str]) -> str:
    """Statements that DuckDB takes two thirds of the time for, against one by one."""
    return "\n;\n".join(statements)  # a statement may end in a comment


def plain(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A cursor as DuckDB makes it, without functions: for planning, which needs none."""
    return _plain(con)


def listen(con: duckdb.DuckDBPyConnection, instance: int, load: Load, statements: Statements) -> None:
    """Have the cursors of `con` know the functions.

    Args:
        con: a connection that has been loaded.
        instance: number of its database instance.
        load: makes the functions known to one connection, where no database can be attached.
        statements: names and texts of the statements that make lasting macros.
    """
    _loaded[con] = instance
    if getattr(duckdb.DuckDBPyConnection.cursor, "knows_duckdb_anon", False):
        return

    @functools.wraps(_plain)
    def cursor(self: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        made = _plain(self)
        number = _loaded.get(self)
        if number is None:
            return made
        try:
            _enter(made, number, statements)
        except duckdb.Error:  # nothing may be attached here
            made = _plain(self)
            load(made)
        else:
            _loaded[made] = number
            interrupts.listen(made, number)
        return made

    cursor.knows_duckdb_anon = True  # type: ignore[attr-defined]
    for name in _METHODS:
        setattr(duckdb.DuckDBPyConnection, name, cursor)


def _enter(cursor: duckdb.DuckDBPyConnection, instance: int, statements: Statements) -> None:
    """Put the macros at the end of the search path of a cursor, making them where they are not yet."""
    home = ".".join(ident(name) for name in cursor.execute("select current_database(), current_schema()").fetchall()[0])
    with _lock:
        if instance not in _made:
            cursor.execute(f"attach ':memory:' as {_DATABASE} (hidden, read_write)")  # beside a read-only file, too
            cursor.execute(f"use {_DATABASE}")
            cursor.execute(in_one_text(statement for _, statement in statements()))
            _made.add(instance)
    cursor.execute(f"set search_path = {literal(f'{home},{_DATABASE}.main')}")
