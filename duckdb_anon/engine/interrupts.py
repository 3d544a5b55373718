"""Ctrl-C and `con.interrupt()` during a long kernel.

DuckDB notices an interrupt only when a Python function returns, may run that function on a thread of its own, where
no KeyboardInterrupt arrives, and tells Python functions nothing of `interrupt()`. So every running call has a flag
(`model.progress`), and here are the ways to set it:

* Ctrl-C sets those of all calls: a handler is chained before the one in place on the main thread.
* `con.interrupt()` sets those of the calls that run on `con`, which DuckDB's number of the connection tells. For
  that the method of DuckDB's connections is wrapped once: it does what it did, and sets flags.
"""

from __future__ import annotations

import functools
import itertools
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import duckdb

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import Interrupted as Interrupted
from duckdb_anon.model.progress import new_flag, stopped_by
from duckdb_anon.model.progress import tick as tick

Place = tuple[int, int]
"""Number of the database instance and, within it, of the connection."""

_POLL = 0.1  # seconds
_running: dict[int, tuple[Place | None, IntArray]] = {}
_calls = itertools.count()
_stopped: dict[Place | None, float] = {}
_planned: dict[int, float] = {}
_MOST_PLANNED = 1000  # a statement that was planned and never run leaves its number behind
_pressed = [0]
_places: list[tuple[weakref.ref[duckdb.DuckDBPyConnection], Place]] = []


def install() -> None:
    """Chain the handler of Ctrl-C; does nothing off the main thread, when already chained, or where it is ignored."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN) or getattr(before, "stops_duckdb_anon", False):
        return

    def handler(number: int, frame: FrameType | None) -> Any:
        _pressed[0] += 1
        stop_running()
        if callable(before):
            return before(number, frame)
        if before == signal.SIG_DFL:
            raise KeyboardInterrupt
        return None

    handler.stops_duckdb_anon = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, handler)


def pressed() -> int:
    """How often Ctrl-C was pressed; of an interrupt that comes while Python runs a finalizer, nothing else tells."""
    return _pressed[0]


def listen(con: duckdb.DuckDBPyConnection, instance: int) -> None:
    """Have `con.interrupt()` stop the kernels that run on `con`, a connection to database instance `instance`."""
    row = con.execute("select current_connection_id()").fetchone()
    _places[:] = [(seen, place) for seen, place in _places if seen() is not None and seen() is not con]
    _places.append((weakref.ref(con), (instance, int(row[0]) if row else -1)))
    plain = duckdb.DuckDBPyConnection.interrupt
    if getattr(plain, "stops_duckdb_anon", False):
        return

    @functools.wraps(plain)
    def interrupt(self: duckdb.DuckDBPyConnection) -> None:
        for seen, place in list(_places):
            if seen() is self:
                stop_running(place)
        plain(self)

    interrupt.stops_duckdb_anon = True  # type: ignore[attr-defined]
    duckdb.DuckDBPyConnection.interrupt = interrupt  # type: ignore[method-assign]


def connection_at(place: Place) -> duckdb.DuckDBPyConnection | None:
    """The loaded connection that has a number in a database instance; None where it is not known or gone.

    Args:
        place: number of the instance, and of the connection in it.
    """
    return next((con for seen, where in list(_places) if where == place and (con := seen()) is not None), None)


def stop_running(place: Place | None = None) -> None:
    """Make the running kernels stop at their next tick: all, or those of one connection."""
    _stopped[place] = time.monotonic()
    for where, flag in list(_running.values()):
        if place is None or where == place:
            flag[0] = 1


def planned(begun: float) -> int:
    """Note when the planning of a call began, by `time.monotonic`; return the number that `begun` knows it by.

    DuckDB forgets an interrupt that comes while it binds a statement: it clears its own flag when it starts to run.
    """
    number = next(_calls)
    _planned[number] = begun
    for old in list(_planned)[:-_MOST_PLANNED]:
        _planned.pop(old, None)
    return number


def begun(number: int | None) -> float | None:
    """When a call's planning began; None where it ran before: a prepared statement is planned once."""
    return None if number is None else _planned.pop(number, None)


@contextmanager
def watching(place: Place | None = None, since: float | None = None) -> Iterator[IntArray]:
    """Give the call that this thread works on a flag, until the block ends.

    Args:
        place: the connection the call came by.
        since: when its statement began, by `time.monotonic`: who has stopped it since has stopped this call. An
            interrupt that comes while DuckDB binds it, or hands over the last rows, is lost otherwise.
    """
    number, flag = next(_calls), new_flag()
    if since is not None and max(_stopped.get(place, since), _stopped.get(None, since)) > since:
        flag[0] = 1
    _running[number] = place, flag
    try:
        with stopped_by(flag):
            yield flag
    finally:
        del _running[number]


@contextmanager
def interrupting(
    con: duckdb.DuckDBPyConnection, place: Place | None = None, since: float | None = None
) -> Iterator[None]:
    """As `watching`, for a call that works on a connection of its own: what stops it also stops what runs there.

    Args:
        con: that connection.
        place: the connection the call came by.
        since: as for `watching`.
    """
    with watching(place, since) as flag, passing_on(con, flag):
        yield


@contextmanager
def passing_on(con: duckdb.DuckDBPyConnection, flag: IntArray) -> Iterator[None]:
    """Interrupt what runs on `con` as soon as `flag` is set, until the block ends.

    Args:
        con: a connection on which a running call works.
        flag: of that call.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_POLL):
            if flag[0] != 0:
                con.interrupt()

    watcher = threading.Thread(target=watch, name="interrupts", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def stoppable() -> Iterator[None]:
    """Let an interrupt end the call, not only the statement it met: whoever goes on after errors goes on after it too.

    Raises:
        Interrupted: the call was stopped before the block, or a statement inside it was.
    """
    tick()
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        # a RuntimeError is how DuckDB's client says that Ctrl-C stopped a query
        text = str(error).split("\n")[0].lower()
        stopped = isinstance(error, duckdb.InterruptException) or text.endswith(": interrupted")
        if stopped or (not isinstance(error, duckdb.Error) and "interrupt" in text):
            raise Interrupted("interrupted") from error
        raise
