"""`duckdb-anon serve`: start an endpoint and run until SIGINT or SIGTERM; `token`: write the file of its tokens.

This process is the proxy: it opens no database and relays requests of authenticated clients, within limits. The
database is opened by a worker process, which is terminated and restarted when a statement exceeds its time or memory;
address, token and sessions of the clients stay the same.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import secrets
import signal
import socket
import ssl
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from duckdb_anon.answering.original_names import Answering
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve import tokens
from duckdb_anon.serve.audit import Audit
from duckdb_anon.serve.limits import ServingLimits, bytes_of
from duckdb_anon.serve.supervisor import Supervisor
from duckdb_anon.serve.tokens import ClientLimits, OneToken, TokenFile

if TYPE_CHECKING:
    from duckdb_anon.serve.proxy import Front

_TOKEN_VARIABLE = "DUCKDB_ANON_TOKEN"  # noqa: S105 - the name of a variable, not a token
_HERE = ("localhost", "127.0.0.1", "[::1]")
_ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 - names of addresses, where nothing listens unless asked to
_CURATORS_STATEMENT = 64 << 20  # bytes; the curator is not limited otherwise


def main(given: Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    host, _ = _address(given)
    if host not in _HERE and not given.anywhere:
        raise AnonError(f"serve: {host} can be reached from other machines. Add --anywhere if this is intended")
    limits = ServingLimits(
        given.memory, given.threads, given.timeout, bytes_of("--statement", given.statement), given.connections,
        idle=given.idle,
    )  # fmt: skip
    limits.memory_bytes  # noqa: B018 - an amount that makes no sense is named before anything starts
    if given.role == "curator":
        limits = replace(limits, seconds=0.0, statement=_CURATORS_STATEMENT)
    if not Path(given.database).exists():
        raise AnonError(f"serve: there is no file {given.database}")
    answer = Answering.of(given.answer).releases if given.answer else {}
    if answer and given.role == "curator":
        raise AnonError("serve: --answer is for analysts; a curator's endpoint holds the original")
    admitted, token_lines = _tokens(given)
    supervisor = Supervisor(given.role, given.database, limits, answer)
    try:
        asyncio.run(_serve(supervisor, given, admitted, token_lines))
    except OSError as error:
        raise AnonError(f"serve: cannot listen at {given.listen}: {error.strerror}") from error
    return 0


async def _serve(supervisor: Supervisor, given: Namespace, admitted: OneToken | TokenFile, token_lines: str) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    # From here on the process ends in order: a curator's file must be left clean.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    audit, tls = Audit(given.audit), _tls(given)
    supervisor.report = audit.report
    front: Front | None = None
    try:
        await supervisor.start()
        host, port = _address(given)
        # What is wrong with the file is said before what is missing on the machine.
        front = _front()(supervisor, admitted, supervisor.limits, audit)
        server = await front.listen(host.strip("[]"), port, tls)
        sys.stdout.write(_greeting(supervisor, given, token_lines))
        sys.stdout.flush()
        await ended.wait()
        server.close()
    finally:
        if front is not None:
            await front.close()
        await supervisor.close()
        audit.close()


def _address(given: Namespace) -> tuple[str, int]:
    host, _, port = given.listen.rpartition(":")
    if not host or not port.isdecimal():
        raise AnonError(f"serve: --listen {given.listen} is not HOST:PORT. Write it as localhost:9494")
    return host, int(port)


def _greeting(supervisor: Supervisor, given: Namespace, token_lines: str) -> str:
    """What is printed once clients can connect, with a statement that connects from where they are."""
    host, port = _address(given)
    reached = socket.gethostname() if host in _ANY_ADDRESS else host
    uri = f"quack:{reached}:{port}"
    example = "SHOW TABLES" if supervisor.answer else "FROM anon_functions()"
    # Quack's client takes HTTPS for granted for every host but this one
    encrypted = given.tls_cert is not None
    option = "" if encrypted != (host in _HERE) else f", disable_ssl := {'false' if encrypted else 'true'}"
    if not encrypted and host not in _HERE:
        sys.stderr.write(
            "serve: tokens and answers cross the network unencrypted. Give --tls-cert and --tls-key, or listen on "
            "localhost behind a proxy that does TLS\n"
        )
    return (
        f"{supervisor.role} endpoint at {uri}\n{token_lines}"
        f"FROM quack_query('{uri}', $${example}$$, token := '...'{option});\n"
    )


def _tls(given: Namespace) -> ssl.SSLContext | None:
    """What TLS needs.

    Raises:
        AnonError: one of certificate and key is missing, cannot be read, or is readable by other users.
    """
    if given.tls_cert is None and given.tls_key is None:
        return None
    if given.tls_cert is None or given.tls_key is None:
        raise AnonError("serve: TLS needs both --tls-cert and --tls-key")
    tokens.require_private(Path(given.tls_key))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(given.tls_cert, given.tls_key, lambda: "")
    except (OSError, ValueError) as error:
        raise AnonError(
            f"serve: --tls-cert {given.tls_cert}, --tls-key {given.tls_key}: {error.args[-1]}. They must be PEM files "
            "that belong together, the key without a password"
        ) from error
    return context


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
        help="a query that takes longer, planning included, is ended; 0: no limit "
        f"(default: {ServingLimits.seconds:g})",
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
    analyst.add_argument(
        "--idle", type=_seconds, default=ServingLimits.idle, metavar="SECONDS",
        help=f"rows that a client does not fetch for so long are dropped (default: {ServingLimits.idle:g})",
    )  # fmt: skip
    analyst.add_argument("--threads", type=_threads, metavar="N", help="threads of all queries (default: every core)")
    parser.add_argument(
        "--connections", type=_threads, default=ServingLimits.connections, metavar="N",
        help=f"clients connected at once; idle ones are disconnected first (default: {ServingLimits.connections})",
    )  # fmt: skip
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--token-file", metavar="FILE",
        help=f"file with one token for all clients (default: ${_TOKEN_VARIABLE}, else a new one, printed once)",
    )  # fmt: skip
    who.add_argument(
        "--tokens", metavar="FILE", help="one token per person or group, from a file that `duckdb-anon token` writes"
    )
    parser.add_argument(
        "--audit", metavar="FILE", help="log connections, statements and failed tokens as JSON lines; rotated at 16 MB"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate (PEM): clients connect with TLS")
    parser.add_argument("--tls-key", metavar="FILE", help="key of the certificate (PEM), readable by its owner alone")


def add_token_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon token`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="make a token and print it; the file keeps a hash of it")
    revoke = actions.add_parser("revoke", help="remove a token; servers refuse it from the next request on")
    listing = actions.add_parser("list", help="list names, expiry, tables and limits")
    for action in (add, revoke, listing):
        action.add_argument("file", help="the file of tokens that serve --tokens reads")
    for action in (add, revoke):
        action.add_argument("name", help="name of the person or group, as the audit log has it")
    add.add_argument(
        "--expires", type=dt.date.fromisoformat, metavar="YYYY-MM-DD", help="last day of the token, in UTC"
    )
    add.add_argument("--tables", metavar="NAME,NAME", help="tables that it may read (default: all)")
    add.add_argument(
        "--sessions", type=_threads, metavar="N", help=f"sessions open at once (default: {ServingLimits.sessions})"
    )
    add.add_argument(
        "--statements",
        type=_threads,
        metavar="N",
        help=f"statements that run at once (default: {ServingLimits.at_once})",
    )


def token(given: Namespace) -> int:
    """Add, list or revoke tokens."""
    path = Path(given.file)
    if given.action == "add":
        tables = None if given.tables is None else [name.strip() for name in given.tables.split(",")]
        limits = ClientLimits(given.sessions, given.statements)
        sys.stdout.write(f"{tokens.add(path, given.name, given.expires, tables, limits)}\n")
    elif given.action == "revoke":
        tokens.revoke(path, given.name)
    else:
        for client, expires in tokens.listed(path):
            until = f"until {expires}" if expires else "no expiry"
            limits = client.limits
            sys.stdout.write(
                f"{client.name}: {until}; tables {'all' if client.tables is None else ', '.join(client.tables)}; "
                f"sessions {limits.sessions or ServingLimits.sessions}, "
                f"statements {limits.statements or ServingLimits.at_once}\n"
            )
    return 0


def _tokens(given: Namespace) -> tuple[OneToken | TokenFile, str]:
    """Who is admitted, and the line printed about a new token."""
    if given.tokens is not None:
        return TokenFile(given.tokens), ""
    if given.token_file is not None:
        path = Path(given.token_file)
        tokens.require_private(path)
        return OneToken(path.read_text(encoding="utf-8").strip()), ""
    text = os.environ.get(_TOKEN_VARIABLE)
    if text is not None:
        return OneToken(text), ""
    made = secrets.token_urlsafe(24)
    return OneToken(made), f"token: {made}\n"
