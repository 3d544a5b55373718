"""`duckdb-anon serve`: start an endpoint and run until SIGINT or SIGTERM.

This process is the proxy: it opens no database and relays requests of authenticated clients, within limits. The
database is opened by a worker process, which is terminated and restarted when a statement exceeds its time or memory;
address, token and sessions of the clients stay the same.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from duckdb_anon.answering.original_names import Answering
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.limits import ServingLimits, bytes_of
from duckdb_anon.serve.supervisor import Supervisor

if TYPE_CHECKING:
    from duckdb_anon.serve.proxy import Front

_TOKEN_VARIABLE = "DUCKDB_ANON_TOKEN"  # noqa: S105 - the name of a variable, not a token
_LEAST_TOKEN = 16
_HERE = ("localhost", "127.0.0.1", "[::1]")
_CURATORS_STATEMENT = 64 << 20  # bytes; the curator is not limited otherwise


def main(given: Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    host, _, port = given.listen.rpartition(":")
    if not host or not port.isdecimal():
        raise AnonError(f"serve: --listen {given.listen} is not HOST:PORT. Write it as localhost:9494")
    if host not in _HERE and not given.anywhere:
        raise AnonError(f"serve: {host} can be reached from other machines. Add --anywhere if this is intended")
    limits = ServingLimits(
        given.memory, given.threads, given.timeout, bytes_of("--statement", given.statement), given.connections
    )
    limits.memory_bytes  # noqa: B018 - an amount that makes no sense is named before anything starts
    if given.role == "curator":
        limits = replace(limits, seconds=0.0, statement=_CURATORS_STATEMENT)
    if not Path(given.database).exists():
        raise AnonError(f"serve: there is no file {given.database}")
    answer = Answering.of(given.answer).releases if given.answer else {}
    if answer and given.role == "curator":
        raise AnonError("serve: --answer is for analysts; a curator's endpoint holds the original")
    token = _token(given.token_file)
    supervisor = Supervisor(given.role, given.database, limits, len(token.text.encode()), answer)
    try:
        asyncio.run(_serve(supervisor, (host, int(port)), token))
    except OSError as error:
        raise AnonError(f"serve: cannot listen at {given.listen}: {error.strerror}") from error
    return 0


async def _serve(supervisor: Supervisor, address: tuple[str, int], token: _Token) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    # From here on the process ends in order: a curator's file must be left clean.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        await supervisor.start()
        host, port = address
        # What is wrong with the file is said before what is missing on the machine.
        server = await _front()(supervisor, token.text, supervisor.limits).listen(host.strip("[]"), port)
        uri = f"quack:{host}:{port}"
        sys.stdout.write(f"{supervisor.role} endpoint at {uri}\n{token.shown}")
        example = "SHOW TABLES" if supervisor.answer else "FROM anon_functions()"
        sys.stdout.write(f"FROM quack_query('{uri}', $${example}$$, token := '...');\n")
        sys.stdout.flush()
        await ended.wait()
        server.close()
    finally:
        await supervisor.close()


def _front() -> type[Front]:
    try:
        from duckdb_anon.serve.proxy import Front
    except ModuleNotFoundError as error:
        raise AnonError(f"serve: the package {error.name} is missing: pip install 'duckdb-anon[serve]'") from error
    return Front


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds


def _threads(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon serve`."""
    parser.add_argument("database", help="a published file (analyst) or a database (curator)")
    parser.add_argument(
        "--role", choices=("analyst", "curator"), default="analyst",
        help="analyst: releases only, read-only, each statement checked; curator: everything (default: analyst)",
    )  # fmt: skip
    parser.add_argument(
        "--answer", action="append", default=[], metavar="ORIGINAL:RELEASE",
        help="answer statements that name ORIGINAL from RELEASE; clients see the columns of such originals and "
        "nothing else of the file (may be repeated)",
    )  # fmt: skip
    parser.add_argument("--listen", default="localhost:9494", metavar="HOST:PORT", help="default: localhost:9494")
    parser.add_argument("--anywhere", action="store_true", help="allow an address that other machines can reach")
    analyst = parser.add_argument_group("limits for analysts")
    analyst.add_argument(
        "--timeout", type=_seconds, default=ServingLimits.seconds, metavar="SECONDS",
        help="a query that takes longer, planning included, is terminated together with all queries of the endpoint, "
        f"which restarts within seconds; 0: no limit (default: {ServingLimits.seconds:g})",
    )  # fmt: skip
    analyst.add_argument(
        "--memory", default=ServingLimits.memory, metavar="SIZE",
        help="memory of all queries together, enforced by the operating system; nothing is spilled to disk "
        f"(default: {ServingLimits.memory})",
    )  # fmt: skip
    analyst.add_argument(
        "--statement",
        default="256KB",
        metavar="SIZE",
        help="largest request, including the text of the query (default: 256KB)",
    )
    analyst.add_argument("--threads", type=_threads, metavar="N", help="threads of all queries (default: every core)")
    parser.add_argument(
        "--connections", type=_threads, default=ServingLimits.connections, metavar="N",
        help=f"clients connected at once; idle ones are disconnected first (default: {ServingLimits.connections})",
    )  # fmt: skip
    parser.add_argument(
        "--token-file", metavar="FILE",
        help=f"file with the token of the clients (default: ${_TOKEN_VARIABLE}, else a new one, printed once)",
    )  # fmt: skip


class _Token:
    """The token, and the line printed about it."""

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
