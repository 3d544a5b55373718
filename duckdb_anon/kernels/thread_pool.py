"""Running compiled functions: on several threads where the call may use them, and so that it can be stopped.

A compiled function holds no GIL, but the thread that waits for it runs no Python: no signal handler, no poll. So the
work is done on threads of its own, while the caller's thread polls `tick`; when that raises, a flag is set, which
compiled functions look at, and the error goes on once they have returned.

How many threads a call may use is DuckDB's setting `threads`, which the engine says with `allowed`. Nothing that is
released depends on it: a piece of work writes where no other one does.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import tick

_POLL = 0.05  # seconds
_idle: dict[tuple[int, int], list[ThreadPoolExecutor]] = {}
"""Pools that nobody uses just now, by process (a forked one has no threads of its parent) and size. They are kept:
where all processors work a new thread waits for its turn, longer than a small piece of work takes."""
_lock = threading.Lock()
_MANY = 1 << 16
_allowed: contextvars.ContextVar[int | None] = contextvars.ContextVar("threads", default=None)
Work = TypeVar("Work")
Item = TypeVar("Item")
Done = TypeVar("Done")
Result = TypeVar("Result")


@contextmanager
def allowed(threads: int | None) -> Iterator[None]:
    """Let kernels use that many threads until the block ends; None: as many as there are processors."""
    token = _allowed.set(threads)
    try:
        yield
    finally:
        _allowed.reset(token)


def threads() -> int:
    """Return how many threads a kernel may use, 1 or more.

    >>> with allowed(3):
    ...     threads()
    3
    """
    return max(1, _allowed.get() or os.cpu_count() or 1)


def run_queue(
    first: Iterable[Work], do: Callable[[Work, IntArray], Iterable[Work]], tick: Callable[[], None] | None = None
) -> None:
    """Do all pieces of work and what comes out of them.

    `first`: the pieces to begin with; `do`: does one piece; gets it and the flag (shape (1,), not 0 once the work is to
    stop), and returns the pieces that are left of it. Called on several threads at once.

    >>> done = []
    >>> def halve(size, flag):
    ...     done.append(size)
    ...     return [size // 2, size - size // 2] if size > 1 else []
    >>> run_queue([4], halve)
    >>> sorted(done)
    [1, 1, 1, 1, 2, 2, 4]
    """
    flag = np.zeros(1, dtype=np.int64)
    with _pool(threads()) as pool:
        running: set[Future[Iterable[Work]]] = {pool.submit(do, piece, flag) for piece in first}
        try:
            while running:
                if tick is not None:
                    tick()
                done, running = wait(running, _POLL, FIRST_COMPLETED)
                for future in done:
                    running |= {pool.submit(do, piece, flag) for piece in future.result()}
        except BaseException:
            flag[0] = 1
            _ended(running)
            raise


def parallel_map(do: Callable[[Item], Done], items: Iterable[Item]) -> list[Done]:
    """Do something with each item, on as many threads as there may be; results in the order of the items.

    What `do` waits for must hold no GIL, as arrow, numpy and compiled functions on large arrays do not. It ticks by
    itself, and what it raises is raised here.

    `do`: called on several threads at once, each time in a copy of this thread's context; `items`: what to do it with.

    >>> with allowed(2):
    ...     parallel_map(len, ["a", "bc", ""])
    [1, 2, 0]
    """
    waiting = list(items)
    many = min(threads(), len(waiting))
    if many < 2:
        return [do(item) for item in waiting]
    with _pool(many) as pool:
        futures = [pool.submit(contextvars.copy_context().run, do, item) for item in waiting]
        try:
            return [future.result() for future in futures]
        except BaseException:
            _ended(futures)
            raise


def parallel_blocks(do: Callable[[int, int], None], rows: int) -> None:
    """Do something with blocks of rows that stand together, one on each thread; with few rows at once.

    So that threads write apart from one another where they fill an array whose rows are shorter than a cache line.

    >>> with allowed(2):
    ...     parallel_blocks(lambda low, high: print(low, high), 5)
    0 5
    """
    size = -(-rows // threads()) if rows >= _MANY else max(1, rows)
    parallel_map(lambda low: do(low, min(low + size, rows)), range(0, rows, size))


@contextmanager
def _pool(size: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads for the length of the block, which leaves nothing running in it."""
    key = os.getpid(), size
    with _lock:
        idle = _idle.setdefault(key, [])
        pool = idle.pop() if idle else ThreadPoolExecutor(size, thread_name_prefix="kernel")
    try:
        yield pool
    finally:
        with _lock:
            idle.append(pool)


def _ended(futures: Iterable[Future[Any]]) -> None:
    """Wait for what has begun; the rest does not begin."""
    wait([future for future in futures if not future.cancel()])


def run_detached(work: Callable[[], Result]) -> Result:
    """Do what nothing can stop (a library's fit), so that the call can be stopped all the same.

    The work is done on a thread of its own. Where `tick` raises while it is awaited the thread is left to itself: it
    ends when the library returns, and nobody sees what comes of it. So do no more in one call than can be wasted.

    `work`: is called once; takes part in nothing that others write. Returns what `work` returns.

    >>> run_detached(lambda: sum(range(4)))
    6
    """
    answer: Future[Result] = Future()

    def do() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=do, name="kernel", daemon=True).start()
    while not wait([answer], _POLL).done:
        tick()
    return answer.result()
