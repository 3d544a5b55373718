"""Ctrl-C during a long kernel.

DuckDB notices an interrupt only when a Python function returns, and may run that function on a thread of its
own, where no KeyboardInterrupt arrives. So the first call planned on the main thread chains a handler
before the one in place: it counts the signal and passes it on. Kernels call `tick()` once a level or batch.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import duckdb

from duckdb_anon.model.errors import AnonError

_POLL = 0.1  # seconds
_signals = 0
_local = threading.local()


class Interrupted(AnonError):
    """The user stopped a running call."""


def install() -> None:
    """Chain the counting handler; does nothing off the main thread or when already chained."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGINT)
    if before is None or getattr(before, "counts_for_duckdb_anon", False):
        return

    def handler(number: int, frame: FrameType | None) -> Any:
        global _signals
        _signals += 1
        if callable(before):
            return before(number, frame)
        if before == signal.SIG_DFL:
            raise KeyboardInterrupt
        return None

    handler.counts_for_duckdb_anon = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, handler)


def stop_running() -> None:
    """Make every running kernel stop at its next tick (for shells that catch the key themselves)."""
    global _signals
    _signals += 1


@contextmanager
def watching() -> Iterator[None]:
    """Count signals from here on for `tick()` on this thread."""
    _local.seen = _signals
    yield


@contextmanager
def interrupting(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """As `watching`, for a call that works on a connection of its own: a signal also stops what runs there."""
    done = threading.Event()
    seen = _signals

    def watch() -> None:
        while not done.wait(_POLL):
            if _signals != seen:
                con.interrupt()

    watcher = threading.Thread(target=watch, name="interrupts", daemon=True)
    watcher.start()
    try:
        with watching():
            yield
    finally:
        done.set()
        watcher.join()


def tick() -> None:
    """Raise `Interrupted` if a signal has come since the running call began."""
    if _signals != getattr(_local, "seen", _signals):
        raise Interrupted("interrupted")
