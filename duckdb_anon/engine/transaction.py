"""A transaction of its own for what is written together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import duckdb

from duckdb_anon.model.errors import AnonError


@contextmanager
def transaction(
    con: duckdb.DuckDBPyConnection, function: str, reason: str = "", conflict: Callable[[], AnonError] | None = None
) -> Iterator[None]:
    """A transaction that ends with the block.

    Args:
        con: an open connection.
        function: for messages.
        reason: why an open transaction does not do, behind a comma.
        conflict: the error where another transaction has written the same rows.

    Raises:
        AnonError: a transaction is open, or `conflict`.
    """
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
