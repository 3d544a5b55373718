"""Runs a statement beside the main thread, so that Ctrl-C always reaches someone who can stop it.

DuckDB hands control back to Python only at some points of some calls; a thread that does nothing but wait is
always there for the signal, stops the kernels and DuckDB, and has time to show how far the work has come.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import duckdb

from duckdb_anon.engine.interrupts import install, pressed, stop_running
from duckdb_anon.shell.progress_bar import Meter

_BEAT = 0.1  # seconds


def run_stoppable(con: duckdb.DuckDBPyConnection, work: Callable[[], None], beat: Callable[[], None]) -> None:
    """Run `work`, which uses `con`, to its end; call `beat` every tenth of a second meanwhile.

    Args:
        con: the connection that is interrupted.
        work: what is run.
        beat: called while it runs.

    Raises:
        KeyboardInterrupt: when the user stopped it; by then it has ended.
        BaseException: whatever `work` raised.
    """
    raised: list[BaseException] = []
    finished = threading.Event()

    def job() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)
        finally:
            finished.set()

    install()  # a line reader puts handlers of its own in the place of that
    before = pressed()
    thread = threading.Thread(target=job, name="statement", daemon=True)
    thread.start()
    stopped = False
    while not finished.is_set():
        try:
            while not finished.wait(_BEAT):
                stopped = stopped or pressed() > before
                if stopped:
                    _stop(con)
                else:
                    beat()
        except KeyboardInterrupt:
            stopped = True
            _stop(con)
    thread.join()
    if stopped:
        raise KeyboardInterrupt
    if raised:
        raise raised[0]


def run_with_progress(con: duckdb.DuckDBPyConnection, work: Callable[[], None]) -> None:
    """Run a command's `work` to its end: progress is shown on a terminal, and Ctrl-C stops it.

    Raises:
        KeyboardInterrupt: when the user stopped it; by then it has ended.
        BaseException: whatever `work` raised.
    """
    meter = Meter(con, sys.stderr)
    meter.start()
    try:
        run_stoppable(con, work, meter.beat)
    finally:
        meter.stop()


def _stop(con: duckdb.DuckDBPyConnection) -> None:
    stop_running()
    con.interrupt()
