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
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from duckdb_anon.answering.original_names import Answering
from duckdb_anon.engine.memory_estimate import size_of
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve import tokens
from duckdb_anon.serve.audit import Audit
from duckdb_anon.serve.limits import LOOPBACK, ServingLimits
from duckdb_anon.serve.supervisor import Supervisor
from duckdb_anon.serve.tokens import OneToken, TokenFile

_TOKEN_VARIABLE = "DUCKDB_ANON_TOKEN"  # noqa: S105 - the name of a variable, not a token
HERE = ("localhost", LOOPBACK, "[::1]")
"""Names of this machine that no other machine reaches."""
_ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 - names of addresses, where nothing listens unless asked to
_CURATORS_STATEMENT = 64 << 20  # bytes; the curator is not limited otherwise


def main(given: Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    host, _ = address_of("serve", given.listen)
    if host not in HERE and not given.anywhere:
        raise AnonError(f"serve: {host} can be reached from other machines. Add --anywhere if this is intended")
    set_here = ("memory", "threads", "seconds", "statement", "connections", "idle")
    limits = ServingLimits(**{name: getattr(given, name) for name in set_here})
    if given.role == "curator":
        limits = replace(limits, seconds=0.0, statement=_CURATORS_STATEMENT)
    if not Path(given.database).exists():
        raise AnonError(f"serve: there is no file {given.database}")
    answering = Answering.of(given.answer, str(given.bounds)) if given.answer else Answering({})
    if given.bounds and not given.answer:
        raise AnonError("serve: --bounds belongs to --answer")
    if given.answer and given.role != "analyst":
        raise AnonError(f"serve: --answer is for analysts; a {given.role}'s endpoint holds the original")
    admitted, token_line = _tokens(given)
    supervisor = Supervisor(given.role, given.database, limits, answering)
    try:
        asyncio.run(_serve(supervisor, given, admitted, token_line))
    except OSError as error:
        raise AnonError(f"serve: cannot listen at {given.listen}: {error.strerror}") from error
    except ModuleNotFoundError as error:
        raise AnonError(f"serve: the package {error.name} is missing: pip install 'duckdb-anon[serve]'") from error
    return 0


async def _serve(supervisor: Supervisor, given: Namespace, admitted: OneToken | TokenFile, token_line: str) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    # From here on the process ends in order: a curator's file must be left clean.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    host, port = address_of("serve", given.listen)
    audit, tls, front = Audit(given.audit), _tls(given), None
    supervisor.report = audit.report
    try:
        await supervisor.start()
        # What is wrong with the file is said before what is missing on the machine.
        from duckdb_anon.serve.proxy import Front

        front = Front(supervisor, admitted, supervisor.limits, audit)
        server = await front.listen(host.strip("[]"), port, tls)
        sys.stdout.write(_greeting(supervisor, host, port, tls is not None, token_line))
        sys.stdout.flush()
        await ended.wait()
        server.close()
    finally:
        if front is not None:
            await front.close()
        await supervisor.close()
        audit.close()


def address_of(command: str, text: str) -> tuple[str, int]:
    """Host and port of a command's --listen.

    >>> address_of("serve", "[::1]:9494")
    ('[::1]', 9494)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise AnonError(f"{command}: --listen {text} is not HOST:PORT. Write it as localhost:9494")
    return host, int(port)


def _greeting(supervisor: Supervisor, host: str, port: int, encrypted: bool, token_line: str) -> str:
    """What is printed once clients can connect, with a statement that connects from where they are."""
    uri = f"quack:{socket.gethostname() if host in _ANY_ADDRESS else host}:{port}"
    example = "SHOW TABLES" if supervisor.answer or supervisor.role == "researcher" else "FROM anon_functions()"
    # Quack's client takes HTTPS for granted for every host but this one
    option = "" if encrypted != (host in HERE) else f", disable_ssl := {'false' if encrypted else 'true'}"
    if not encrypted and host not in HERE:
        sys.stderr.write(
            "serve: tokens and answers cross the network unencrypted. Give --tls-cert and --tls-key, or listen on "
            "localhost behind a proxy that does TLS\n"
        )
    return (
        f"{supervisor.role} endpoint at {uri}\n{token_line}"
        f"FROM quack_query('{uri}', $${example}$$, token := '...'{option});\n"
    )


def _tls(given: Namespace) -> ssl.SSLContext | None:
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


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds


def at_least(low: int) -> Callable[[str], int]:
    """Reader of an option's whole number that is not smaller."""

    def whole(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < low:
            raise ArgumentTypeError(f"{text} is not a whole number from {low}")
        return int(text)

    return whole


_number = at_least(1)


def size(text: str) -> int:
    """Bytes of an option's amount of memory."""
    try:
        return size_of(text, "")
    except AnonError as error:
        raise ArgumentTypeError(str(error)) from error


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon serve`."""
    add = parser.add_argument
    add("database", help="a published file (analyst) or a database (researcher, curator)")
    add(
        "--role", choices=("analyst", "researcher", "curator"), default="analyst",
        help="analyst: releases only, read-only, each statement checked; researcher: answers of safe_output from "
        "tables with a policy; curator: everything (default: analyst)",
    )  # fmt: skip
    add(
        "--answer", action="append", default=[], metavar="ORIGINAL:RELEASE",
        help="answer statements that name ORIGINAL from RELEASE; clients see the columns of such originals and "
        "nothing else of the file (may be repeated)",
    )  # fmt: skip
    add("--bounds", action="store_true", help="columns NAME_low, NAME_high and note in the answers of --answer")
    add("--listen", default="localhost:9494", metavar="HOST:PORT", help="default: localhost:9494")
    add("--anywhere", action="store_true", help="allow an address that other machines can reach")
    who = parser.add_mutually_exclusive_group().add_argument
    who(
        "--token-file", metavar="FILE", help=f"one token for all (default: ${_TOKEN_VARIABLE}, else a new one, printed)"
    )
    who("--tokens", metavar="FILE", help="one token per person or group, from a file that `duckdb-anon token` writes")
    add("--audit", metavar="FILE", help="log connections, statements and failed tokens as JSON lines; rotated at 16 MB")
    add("--tls-cert", metavar="FILE", help="certificate (PEM): clients connect with TLS")
    add("--tls-key", metavar="FILE", help="key of the certificate (PEM), readable by its owner alone")
    add = parser.add_argument_group("limits for analysts and researchers (of connections: for everybody)").add_argument
    for option, limit, kind, unit, meaning in (
        ("--timeout", "seconds", _seconds, "SECONDS", "a query that takes longer is ended; 0: no limit (default: 60)"),
        ("--memory", "memory", size, "SIZE", "memory of all queries, which the system enforces, too (default: 2GB)"),
        ("--statement", "statement", size, "SIZE", "largest request, the query's text included (default: 256KB)"),
        ("--idle", "idle", _seconds, "SECONDS", "rows that are not fetched for so long are dropped (default: 60)"),
        ("--threads", "threads", _number, "N", "threads of all queries (default: every core)"),
        ("--connections", "connections", _number, "N", "clients at once; idle ones make room (default: 256)"),
    ):
        add(option, dest=limit, type=kind, default=getattr(ServingLimits, limit), metavar=unit, help=meaning)


def add_token_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon token`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    new = actions.add_parser("add", help="make a token and print it; the file keeps a hash of it")
    revoke = actions.add_parser("revoke", help="remove a token; servers refuse it from the next request on")
    listing = actions.add_parser("list", help="list names, expiry, tables and limits")
    for action in (new, revoke, listing):
        action.add_argument("file", help="the file of tokens that serve --tokens reads")
    for action in (new, revoke):
        action.add_argument("name", help="name of the person or group, as the audit log has it")
    add = new.add_argument
    add("--expires", type=dt.date.fromisoformat, metavar="YYYY-MM-DD", help="last day of the token, in UTC")
    add("--tables", metavar="NAME,NAME", help="tables that it may read (default: all)")
    add("--sessions", type=_number, metavar="N", help=f"sessions open at once (default: {ServingLimits.sessions})")
    add("--statements", type=_number, metavar="N", help=f"statements run at once (default: {ServingLimits.at_once})")


def token(given: Namespace) -> int:
    """Add, list or revoke tokens."""
    path = Path(given.file)
    if given.action == "add":
        tables = None if given.tables is None else [name.strip() for name in given.tables.split(",")]
        made = tokens.add(path, given.name, given.expires, tables, given.sessions, given.statements)
        sys.stdout.write(f"{made}\n")
    elif given.action == "revoke":
        tokens.revoke(path, given.name)
    else:
        for client, expires in tokens.listed(path):
            sys.stdout.write(
                f"{client.name}: {f'until {expires}' if expires else 'no expiry'}; "
                f"tables {'all' if client.tables is None else ', '.join(client.tables)}; "
                f"sessions {client.sessions or ServingLimits.sessions}, "
                f"statements {client.statements or ServingLimits.at_once}\n"
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
