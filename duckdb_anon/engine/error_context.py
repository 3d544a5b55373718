"""Which named step of a rewritten query failed, where the package runs the query itself.

The planner runs on the thread that executes a statement, so the texts it wrote for it are kept a thread. When the
statement fails, their steps run one by one on a cursor of their own, and the first that fails in the same way is
named, with its SQL. What the cursor cannot see (temporary tables, a transaction's own changes) is not named.
Cost: nothing until a statement fails; then at most its own work once more for each step.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.rewrite.written_steps import written_steps

_AFTER = "in the step"


class _Planned(threading.local):
    """The texts the thread has planned, if they are recorded."""

    texts: list[str] | None = None


_planned = _Planned()


def keep(text: str) -> None:
    """Note a text that the running statement consists of."""
    if _planned.texts is not None:
        _planned.texts.append(text)


@contextmanager
def naming_steps(con: duckdb.DuckDBPyConnection, text: str = "") -> Iterator[None]:
    """Let errors of DuckDB inside the block name the step that failed.

    Args:
        con: the connection that runs statements.
        text: a rewritten query that is run as it is; those that functions write are known.
    """
    before, _planned.texts = _planned.texts, []
    try:
        yield
    except duckdb.Error as error:
        message, texts = str(error), [text] * bool(text) + _planned.texts
        _planned.texts = None
        found = with_step(con, texts, message)
        if found == message:
            raise
        raise type(error)(found) from error
    finally:
        _planned.texts = before


def with_step(con: duckdb.DuckDBPyConnection, texts: list[str], message: str) -> str:
    """An error's message with the step that failed, where one did."""
    kind = message.split(":", 1)[0]
    if kind == "INTERRUPT Error" or _AFTER in message or not texts:
        return message
    cursor = con.cursor()
    try:
        with suppress(duckdb.Error):  # a transaction that failed answers nothing
            home = con.execute("select current_database(), current_schema()").fetchall()[0]
            cursor.execute(f"use {'.'.join(ident(name) for name in home)}")
        others = 0
        steps = [step for text in texts for step in written_steps(text)]
        for step in steps:
            try:
                cursor.execute(step.alone).fetchall()
            except duckdb.Error as error:
                if str(error).split(":", 1)[0] == kind:
                    return f"{message.rstrip()}\n\n{_AFTER} {step.name} of the rewritten query:\n{step.sql}"
                others += 1
    finally:
        cursor.close()
    last = len(texts) == 1 and steps and not others
    return (
        f"{message.rstrip()}\n\n{_AFTER}s' last SELECT: {steps[-1].name} and those before it run" if last else message
    )
