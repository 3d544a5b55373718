"""Ctrl-C while a kernel runs.

DuckDB hands control back to Python only at some points, and compiled loops never do. So a kernel runs on a thread of
its own, the thread that DuckDB called waits for it, and Ctrl-C sets the flags of all running calls
(`model.progress`), by a handler chained before the one in place.

Limit: `con.interrupt()` from another thread ends a call when its kernel has ended; `stop_running` ends it at once.
Cost: a thread a call.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import duckdb

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import Interrupted, new_flag, stopped_by, tick

_POLL = 0.05  # seconds
_Answer = TypeVar("_Answer")

_flags: dict[int, IntArray] = {}
_pressed = [0]


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
    """How often Ctrl-C was pressed; the only sign of an interrupt while Python runs a finalizer."""
    return _pressed[0]


def stop_running() -> None:
    """Make all running kernels stop at their next tick."""
    for flag in list(_flags.values()):
        flag[0] = 1


@contextmanager
def watching() -> Iterator[IntArray]:
    """Give the call that this thread works on a flag, until the block ends."""
    flag = new_flag()
    _flags[id(flag)] = flag
    try:
        with stopped_by(flag):
            yield flag
    finally:
        del _flags[id(flag)]


def run(work: Callable[[], _Answer]) -> _Answer:
    """Run `work` on a thread of its own and wait for it, so that Ctrl-C reaches this thread meanwhile."""
    before = pressed()

    def watched() -> _Answer:
        with watching() as flag:
            if pressed() > before:  # Ctrl-C before there was a flag
                flag[0] = 1
            return work()

    return in_thread(watched)  # on Ctrl-C the handler has set the flag of the call, which ends soon


def in_thread(
    work: Callable[[], _Answer], beat: Callable[[], None] = lambda: None, stop: Callable[[], None] = lambda: None
) -> _Answer:
    """Run `work` on a thread of its own and wait for its end."""
    answers: list[_Answer] = []
    errors: list[BaseException] = []
    # Compiled primitives: KeyboardInterrupt inside `Event.wait` or `Thread.start` may leave a lock taken for ever.
    ended = threading.Lock()
    ended.acquire()

    def job() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.release()

    begun = False
    while not answers and not errors:
        try:
            if not begun:
                begun = True
                _thread.start_new_thread(job, ())
            elif not ended.acquire(timeout=_POLL):
                beat()
        except KeyboardInterrupt:
            stop()
    if errors:
        raise errors[0]
    return answers[0]


@contextmanager
def passing_on(con: duckdb.DuckDBPyConnection, flag: IntArray) -> Iterator[None]:
    """Interrupt what runs on `con`, on which a call works, as soon as the call's `flag` is set."""
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
    """Let an interrupt end the call, not only the statement it met: a caller that survives errors ends as well."""
    tick()
    try:
        yield
    except duckdb.InterruptException as error:
        raise Interrupted("interrupted") from error
    except (duckdb.Error, RuntimeError):
        tick()
        raise
