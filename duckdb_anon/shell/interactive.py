"""The interactive loop: prompt, run, survive errors and Ctrl-C."""

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

HISTORY = ".duckdb_anon_history"
"""File of earlier statements in the user's home folder."""


def interact(session: Session, name: str) -> None:
    """Read and run lines until the user leaves."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a script leaves it to processes in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    read = _reader(session)
    session.out.write(
        f"duckdb-anon {__version__}, DuckDB {duckdb.__version__}, {name}. Type .help for help, Ctrl-D to leave.\n"
    )
    while True:
        try:
            session.feed(read("  ... " if session.pending.strip() else "anon> "))
        except EOFError:
            session.out.write("\n")
            return
        except Quit:
            return
        except KeyboardInterrupt:
            session.pending = ""
            sys.stderr.write("\ninterrupted\n")
        except StopScript:
            session.pending = ""


def _reader(session: Session) -> Callable[[str], str]:
    """A reader of lines, with completion and colours when the shell extra is installed."""
    if find_spec("prompt_toolkit") and find_spec("pygments"):
        from duckdb_anon.shell.prompt import prompt_reader

        return prompt_reader(session, Path.home() / HISTORY)
    if find_spec("readline"):
        importlib.import_module("readline")  # from then on `input` edits lines
    return input
