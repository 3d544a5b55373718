"""The interactive loop, whatever reads the lines: prompt, run, survive errors and Ctrl-C."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb

from duckdb_anon import __version__
from duckdb_anon.shell.dot_commands import Quit, StopScript
from duckdb_anon.shell.session import Session

READY, MORE = "anon> ", "  ... "


def interact(session: Session, name: str) -> None:
    """Read and run lines until the user leaves."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a script has it of what it starts beside itself
        signal.signal(signal.SIGINT, signal.default_int_handler)
    read = _reader(session)
    session.out.write(
        f"duckdb-anon {__version__}, DuckDB {duckdb.__version__}, {name}. Type .help for help, Ctrl-D to leave.\n"
    )
    while True:
        try:
            line = read(MORE if session.pending.strip() else READY)
        except EOFError:
            session.out.write("\n")
            return
        except KeyboardInterrupt:
            session.pending = ""
            continue
        try:
            session.feed(line)
        except Quit:
            return
        except KeyboardInterrupt:
            session.pending = ""
            sys.stderr.write("\ninterrupted\n")
        except StopScript:
            session.pending = ""


def _reader(session: Session) -> Callable[[str], str]:
    """The best line reader there is: with completion and colours when the shell extra is installed."""
    if find_spec("prompt_toolkit") and find_spec("pygments"):
        from duckdb_anon.shell.prompt import prompt_reader

        return prompt_reader(session, history_file())
    return _plain_reader()


def _plain_reader() -> Callable[[str], str]:
    """Python's `input`, with line editing where the platform has it."""
    if find_spec("readline"):
        importlib.import_module("readline")  # from then on `input` edits lines

    def read(prompt: str) -> str:
        try:
            return input(prompt)
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            raise

    return read


def history_file() -> Path:
    """File of earlier statements, in the user's home folder; it is created for its owner alone."""
    return Path.home() / ".duckdb_anon_history"
