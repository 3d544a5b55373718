"""A line on stderr that says how far a long statement has come; nothing where stderr is no terminal."""

from __future__ import annotations

import time
from typing import TextIO

import duckdb

from duckdb_anon.model import progress

_PATIENCE = 1.0  # seconds before anything is drawn
_CLEAR = "\r\x1b[K"


class Meter:
    """Draws on `err` while a statement runs and wipes what it drew."""

    def __init__(self, con: duckdb.DuckDBPyConnection, err: TextIO) -> None:
        """Take over from DuckDB's own bar, which writes into redirected output."""
        con.execute("set enable_progress_bar = true; set enable_progress_bar_print = false")
        self.con, self.err = con, err
        self.shown = err.isatty()
        self.started = 0.0
        self.drawn = False

    def start(self) -> None:
        """A statement begins."""
        self.started = time.monotonic()

    def beat(self) -> None:
        """Draw, once the statement has run for a while."""
        seconds = time.monotonic() - self.started
        if not self.shown or seconds < _PATIENCE:
            return
        self.err.write(f"{_CLEAR}{self._text()} {seconds:.0f} s")
        self.err.flush()
        self.drawn = True

    def stop(self) -> None:
        """The statement has ended."""
        if self.drawn:
            self.err.write(_CLEAR)
            self.err.flush()
            self.drawn = False

    def _text(self) -> str:
        now = progress.latest()
        if now is not None:
            share = "" if now.share is None else f" {now.share:.0%}"
            return f"{now.function}: {now.phase}{share},"
        percent = self.con.query_progress()
        return f"{percent:.0f}%," if 0 <= percent <= 100 else "running,"
