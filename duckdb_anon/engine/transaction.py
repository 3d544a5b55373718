"""Transactions for what is written together: of its own, and the next one for what is in another database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import duckdb

from duckdb_anon.model.errors import AnonError


@contextmanager
def transaction(
    con: duckdb.DuckDBPyConnection, function: str, reason: str = "", conflict: Callable[[], AnonError] | None = None
) -> Iterator[None]:
    """A transaction that ends with the block."""
    try:
        con.execute("begin")
    except duckdb.TransactionException as error:
        raise AnonError(f"{function}: a transaction is open; COMMIT or ROLLBACK first{reason}") from error
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):  # the first of two transactions may have ended
            con.execute("rollback")
        raise
    try:
        con.execute("commit")
    except duckdb.TransactionException as error:
        if conflict is None:
            raise
        raise conflict() from error


def next_transaction(con: duckdb.DuckDBPyConnection) -> None:
    """Commit, and begin anew: DuckDB writes to one database in a transaction."""
    con.execute("commit")
    con.execute("begin")


@contextmanager
def in_next_transaction(con: duckdb.DuckDBPyConnection, undo: str) -> Iterator[None]:
    """The next transaction, for the block."""
    next_transaction(con)
    try:
        yield
    except BaseException:
        if undo:
            con.execute("rollback")
            con.execute(undo)
            con.execute("begin")
        raise
