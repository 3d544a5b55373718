"""Ctrl-C and `con.interrupt()` while a kernel runs.

DuckDB stops a query between two chunks of rows, and tells Python functions nothing of an interrupt. So a kernel runs on
a thread of its own, and the planned SQL asks again and again whether it is done (`sql_quoting.polled`); between two
questions DuckDB stops as it does in any query. A call about which nobody asks any more is stopped by its flag
(`model.progress`). Ctrl-C sets the flags of all calls at once, by a handler chained before the one in place.

Limits: an interrupt that comes while a statement is planned is lost, as DuckDB forgets it when it starts to run.
Cost: two threads a call, a question every 50 ms.
"""

from __future__ import annotations

import secrets
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import duckdb
import pyarrow as pa

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import Interrupted, new_flag, stopped_by, tick

_POLL = 0.05  # seconds
_PATIENCE = 200
"""Rounds of `_POLL` without a question about any call of its statement after which a call counts as abandoned."""

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
    """How often Ctrl-C was pressed; of an interrupt that comes while Python runs a finalizer, nothing else tells."""
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


@dataclass
class _Job:
    """A kernel that runs on a thread of its own, for a statement that may wait for its calls one after the other."""

    statement: object
    ended: threading.Event = field(default_factory=threading.Event)
    fetched: threading.Event = field(default_factory=threading.Event)
    answer: pa.Array | None = None
    error: BaseException | None = None


_jobs: dict[int, _Job] = {}
_questions: Counter[object] = Counter()
"""How often each statement that has calls asked about one of them."""


def start(work: Callable[[], pa.Array], statement: object = None) -> int:
    """Run `work` on a thread of its own for a statement; return the number by which SQL asks about it."""
    number = 1 + secrets.randbits(62)  # nobody guesses the number of another one's call
    job = _Job(object() if statement is None else statement)
    _jobs[number] = job
    begun = threading.Event()

    def run() -> None:
        with watching() as flag:
            threading.Thread(target=_watch, args=(number, job, flag), name="anon watch", daemon=True).start()
            begun.set()
            try:
                job.answer = work()
            except BaseException as error:
                job.error = error
            finally:
                job.ended.set()

    threading.Thread(target=run, name="anon call", daemon=True).start()
    begun.wait()
    return number


def is_done(number: int) -> bool:
    """Whether a call has ended; waits a moment for it."""
    job = _jobs.get(number)
    if job is None:
        raise Interrupted("interrupted")
    _questions[job.statement] += 1
    return job.ended.wait(_POLL)


def result(number: int) -> pa.Array:
    """What a call that has ended returned; it is handed over once.

    Raises:
        BaseException: what it raised.
    """
    job = _jobs.pop(number, None)
    if job is None:
        raise Interrupted("interrupted")
    job.fetched.set()
    if job.error is not None:
        raise job.error
    return job.answer


def _watch(number: int, job: _Job, flag: IntArray) -> None:
    """Stop and forget a call about which nobody asks any more."""
    idle, seen = 0, 0
    while idle < _PATIENCE and not job.fetched.wait(_POLL):
        idle = idle + 1 if _questions[job.statement] == seen else 0
        seen = _questions[job.statement]
    if not job.fetched.is_set():
        flag[0] = 1
        _jobs.pop(number, None)
    if all(other.statement != job.statement for other in list(_jobs.values())):
        _questions.pop(job.statement, None)


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
    """Let an interrupt end the call, not only the statement it met: a caller that survives errors ends as well.

    Raises:
        Interrupted: the call was stopped before the block, or a statement inside it was.
    """
    tick()
    try:
        yield
    except duckdb.InterruptException as error:
        raise Interrupted("interrupted") from error
    except (duckdb.Error, RuntimeError):
        tick()
        raise
