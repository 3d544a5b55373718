"""`duckdb-anon workbench`: serve the pages to a browser of this machine until Ctrl-C.

The address has a token, which the browser exchanges for a cookie; nothing listens where other machines reach it, and
the pages may load from and connect to this server alone.
"""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.command import HERE, address_of

_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' data: blob: {sockets}; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'"
)
Receive = Callable[[], Any]
Send = Callable[[Any], Any]


def main(given: Namespace) -> int:
    """Serve until Ctrl-C."""
    for package in ("marimo", "altair"):
        if find_spec(package) is None:
            raise AnonError(f"workbench: the package {package} is missing: pip install 'duckdb-anon[workbench]'")
    from duckdb_anon.workbench import state

    host, port = address_of("workbench", given.listen)
    if host not in HERE:
        raise AnonError(
            f"workbench: {host} can be reached from other machines, and the pages show the original. Listen on "
            "localhost, and reach it from elsewhere through a tunnel: ssh -L 2718:localhost:2718"
        )
    state.serve(state.opened(given.file, Path()))
    try:
        listening = socket.create_server((host.strip("[]"), port), family=_family(host))
    except OSError as error:
        raise AnonError(f"workbench: cannot listen at {given.listen}: {error.strerror}") from error
    token = given.token or secrets.token_urlsafe(24)
    place = f"{host}:{listening.getsockname()[1]}"
    address = f"http://{place}/?access_token={token}"
    sys.stdout.write(f"{address}\nCtrl-C ends it; the plan keeps what was done.\n")
    sys.stdout.flush()
    if not given.no_browser:
        webbrowser.open(address)
    _serve(token, place, listening)
    return 0


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if host == "[::1]" else socket.AF_INET


def _serve(token: str, place: str, listening: socket.socket) -> None:
    import marimo
    import uvicorn

    from duckdb_anon.workbench.view import HEAD

    page = str(files("duckdb_anon.workbench") / "page.py")
    app = marimo.create_asgi_app(quiet=True, token=token, html_head=HEAD).with_app(path="/", root=page).build()
    # the address has the token, so no log has addresses
    config = uvicorn.Config(
        _closed(app, place), log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listening])


def _closed(app: Any, place: str) -> Any:
    """The app, of which pages reach nothing but itself."""
    policy = _POLICY.format(sockets=f"ws://{place}")
    added = [
        (b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    ]  # fmt: skip

    async def guarded(scope: Any, receive: Receive, send: Send) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        headers = dict(scope.get("headers", ()))
        if scope["type"] in ("http", "websocket") and headers.get(b"host", b"").decode() != place:
            # a name of another server that leads here
            if scope["type"] == "http":
                await send({"type": "http.response.start", "status": 421, "headers": []})
                await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, sending)

    return guarded


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon workbench`."""
    add = parser.add_argument
    add(
        "file", nargs="?",
        help="CSV or Parquet file, or a table of a DuckDB file, people.duckdb:people (default: a sample)",
    )  # fmt: skip
    add("--listen", default="localhost:0", metavar="HOST:PORT", help="default: localhost, at a free port")
    add("--token", help="what the address ends in (default: a new one)")
    add("--no-browser", action="store_true", help="print the address and open no browser")
