"""`duckdb-anon serve`: start an endpoint and stay until the process is told to end."""

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

from duckdb_anon.errors import AnonError
from duckdb_anon.serve.server import Analyst, Curator, listen

_TOKEN_VARIABLE = "DUCKDB_ANON_TOKEN"  # noqa: S105 - the name of a variable, not a token
_LEAST_TOKEN = 16
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
    served = Curator(given.database) if given.role == "curator" else Analyst(given.database)
    try:
        uri = listen(served, given.listen, token.text, given.anywhere)
        sys.stdout.write(f"{given.role} endpoint at {uri}\n{token.shown}")
        sys.stdout.write(f"FROM quack_query('{uri}', $$FROM anon_functions()$$, token := '...');\n")
        sys.stdout.flush()
        while not ended.wait(0.5):
            pass
    finally:
        served.close()
    return 0


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
