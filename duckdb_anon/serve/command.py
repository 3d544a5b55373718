"""`duckdb-anon serve`: start an endpoint and stay until the process is told to end.

Quack offers no way to end one client's query. An analyst's endpoint holds nothing but a file opened read-only, so
one with a query that runs for too long is replaced as a whole: the process becomes a new one, with the same
arguments, process id, address and token.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.server import Analyst, Curator, Limits, listen

_TOKEN_VARIABLE = "DUCKDB_ANON_TOKEN"  # noqa: S105 - the name of a variable, not a token
_LEAST_TOKEN = 16
_BEAT = 0.5  # seconds
_HERE = ("localhost", "127.0.0.1", "[::1]")


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM."""
    given = _parser().parse_args(arguments)
    host = given.listen.rsplit(":", 1)[0]
    if host not in _HERE and not given.anywhere:
        raise AnonError(f"serve: {host} may be reached from other machines; add --anywhere if that is meant")
    token = _token(given.token_file)
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    # From here on the process ends in order: a curator's file must be left clean.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    limits = Limits(given.memory, given.threads, given.timeout)
    served = Curator(given.database) if given.role == "curator" else Analyst(given.database, limits)
    try:
        uri = listen(served, given.listen, token.text, given.anywhere)
        sys.stdout.write(f"{given.role} endpoint at {uri}\n{token.shown}")
        sys.stdout.write(f"FROM quack_query('{uri}', $$FROM anon_functions()$$, token := '...');\n")
        sys.stdout.flush()
        while not ended.wait(_BEAT):
            if isinstance(served, Analyst) and served.overrun():
                sys.stderr.write(f"a query ran for more than {given.timeout:g} s; ending it and starting again\n")
                _start_again(token.text)
    finally:
        served.close()
    return 0


def _start_again(token: str) -> NoReturn:
    """Become a new process with the same command line; what runs in this one ends here."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _TOKEN_VARIABLE: token})  # noqa: S606 - itself


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds


def _threads(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duckdb-anon serve", description="Serve a database over Quack to stock DuckDB shells."
    )
    parser.add_argument("database", help="a published file (analyst) or the database itself (curator)")
    parser.add_argument(
        "--role", choices=("analyst", "curator"), default="analyst",
        help="analyst: releases only, read-only, guarded; curator: everything (default: analyst)",
    )  # fmt: skip
    parser.add_argument("--listen", default="localhost:9494", metavar="HOST:PORT", help="default: localhost:9494")
    parser.add_argument("--anywhere", action="store_true", help="allow an address other machines can reach")
    analyst = parser.add_argument_group("limits for analysts")
    analyst.add_argument(
        "--timeout", type=_seconds, default=Limits.seconds, metavar="SECONDS",
        help="a query that runs for longer is ended, and with it whatever else runs on the endpoint, which is there "
        f"again within seconds; 0: no limit (default: {Limits.seconds:g})",
    )  # fmt: skip
    analyst.add_argument(
        "--memory", default=Limits.memory, metavar="SIZE",
        help=f"memory of all queries together; nothing is spilled to disk (default: {Limits.memory})",
    )  # fmt: skip
    analyst.add_argument("--threads", type=_threads, metavar="N", help="threads of all queries (default: every core)")
    parser.add_argument(
        "--token-file", metavar="FILE",
        help=f"file with the token clients must present (default: ${_TOKEN_VARIABLE}, else a new one, shown once)",
    )  # fmt: skip
    return parser


class _Token:
    """The token, and what is said about it on the screen."""

    def __init__(self, text: str, shown: str = "") -> None:
        if len(text) < _LEAST_TOKEN:
            raise AnonError(f"serve: the token has fewer than {_LEAST_TOKEN} characters")
        self.text, self.shown = text, shown


def _token(file: str | None) -> _Token:
    if file is not None:
        try:
            return _Token(Path(file).read_text(encoding="utf-8").strip())
        except OSError as error:
            raise AnonError(f"serve: {file}: {error.strerror}") from error
    given = os.environ.get(_TOKEN_VARIABLE)
    if given is not None:
        return _Token(given)
    made = secrets.token_urlsafe(24)
    return _Token(made, f"token: {made}\n")
