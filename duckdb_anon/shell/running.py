"""Runs a statement in a thread of its own: Ctrl-C always stops it, and a line on stderr shows its progress.

DuckDB returns control to Python only at some points of some calls; a main thread that only waits is always there for
the signal, stops the kernels and DuckDB, and draws the progress. Nothing is drawn where stderr is no terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO, TypeVar, cast

import duckdb

from duckdb_anon.engine.interrupts import in_thread, install, pressed, stop_running
from duckdb_anon.model import progress

Answer = TypeVar("Answer")
_PATIENCE = 1.0  # seconds before anything is drawn
CLEAR = "\r\x1b[K"


class Meter:
    """Draws on `err` while a statement runs and wipes what it drew."""

    def __init__(self, con: duckdb.DuckDBPyConnection, err: TextIO) -> None:
        """Take over from DuckDB's own bar, which writes into redirected output."""
        con.execute("set enable_progress_bar = true; set enable_progress_bar_print = false")
        self.con, self.err = con, err
        self.visible = err.isatty()
        self.started = 0.0
        self.drawn = self.over = False
        self._lock = threading.Lock()  # a result is written by another thread than the one that draws

    def watch(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which uses the connection, with a progress line; Ctrl-C ends it."""
        self.started, self.over = time.monotonic(), False
        try:
            return run_stoppable(self.con, work, self.beat)
        finally:
            self.stop()

    def beat(self) -> None:
        """Draw, once the statement has run for a while."""
        seconds = time.monotonic() - self.started
        if not self.visible or seconds < _PATIENCE:
            return
        with self._lock:
            if not self.over:
                self.err.write(f"{CLEAR}{self._text()} {seconds:.0f} s")
                self.err.flush()
                self.drawn = True

    def stop(self) -> None:
        """The statement has ended, or its result begins to be written."""
        with self._lock:
            self.over = True
            if self.drawn:
                self.err.write(CLEAR)
                self.err.flush()
                self.drawn = False

    def making_room(self, out: TextIO) -> TextIO:
        """`out` itself, or where it is the terminal drawn upon, one that wipes before the first text is written."""
        return cast(TextIO, _AfterWiping(out, self)) if self.visible and out.isatty() else out

    def _text(self) -> str:
        now = progress.latest()
        if now is not None:
            share = "" if now.share is None else f" {now.share:.0%}"
            return f"{now.function}: {now.phase}{share},"
        percent = self.con.query_progress()
        return f"{percent:.0f}%," if 0 <= percent <= 100 else "running,"


class _AfterWiping:
    """A terminal on which a meter wipes its line before something else is written."""

    def __init__(self, out: TextIO, meter: Meter) -> None:
        self.out, self.meter = out, meter
        self.flush = out.flush

    def write(self, text: str) -> int:
        self.meter.stop()
        return self.out.write(text)


def run_stoppable(con: duckdb.DuckDBPyConnection, work: Callable[[], Answer], beat: Callable[[], None]) -> Answer:
    """Run `work`, which uses `con`, to its end; call `beat` meanwhile. Ctrl-C stops the kernels and DuckDB."""
    install()  # a line reader replaces that handler by its own
    before = pressed()
    stopped: list[bool] = []

    def stop() -> None:
        stopped.append(True)
        stop_running()
        con.interrupt()

    def wait() -> None:
        if stopped or pressed() > before:
            stop()
        else:
            beat()

    try:
        return in_thread(work, wait, stop)
    finally:
        if stopped:
            raise KeyboardInterrupt


def run_with_progress(con: duckdb.DuckDBPyConnection, work: Callable[[], Answer]) -> Answer:
    """Run a command's `work` to its end, with a progress line, and close the connection; Ctrl-C stops it."""
    with con:
        return Meter(con, sys.stderr).watch(work)
