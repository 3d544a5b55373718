"""What clients of an endpoint did: a line of JSON per connection, statement, fetch, refused message and failed token.

Files are rotated. A line holds no value of the data: no answer, and of errors only those of the guard and the planner.
The text of a statement is the client's and is written as sent, with the constants in it; of a long one its beginning.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json
import logging
import os
import sys
import time
from argparse import Namespace
from contextlib import suppress
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError

_SIZE, _FILES = 16 << 20, 10  # bytes of a file, older files that are kept
_LONGEST = 10_000  # characters of a statement
_COLUMNS = {
    "time": "timestamptz", "event": "varchar", "token": "varchar", "address": "varchar", "engine": "varchar",
    "outcome": "varchar", "reason": "varchar", "milliseconds": "double",
    "decision": "varchar", "cells": "bigint", "suppressed": "bigint",
}  # fmt: skip
_SUMMARIES = (
    'select min(time) as "from", max(time) as "to", count(*) as lines from log',
    """select token, count(*) filter (event = 'statement') as statements,
           count(*) filter (event = 'statement' and outcome = 'answered') as answered,
           count(*) filter (outcome = 'refused') as refused,
           count(*) filter (event = 'statement' and outcome = 'failed') as failed,
           count(*) filter (event = 'statement' and outcome = 'ended') as ended,
           median(milliseconds) filter (event = 'statement') as "median ms"
       from log where event <> 'failed token' group by token order by token""",
    "select engine, count(*) as statements from log where engine is not null group by engine order by 2 desc, 1",
    """select strftime(time, '%Y-%m') as month, decision, count(*) as outputs, sum(cells)::bigint as cells,
           sum(suppressed)::bigint as suppressed from log where decision is not null group by all order by all""",
    "select reason, count(*) as statements from log where reason is not null group by reason order by 2 desc limit 20",
    """select address, coalesce(token, 'unknown') as "as", count(*) as "failed tokens" from log
       where event = 'failed token' group by all order by 3 desc, 1 limit 20""",
)
_REPORT = 1.0  # seconds to wait for what the worker reports of a statement


def fingerprint(session: str, statement: str) -> str:
    """What the front and the worker call a statement of a session."""
    return hashlib.sha256(f"{session} {statement}".encode(errors="replace")).hexdigest()


@dataclass
class Request:
    """A statement or fetch that runs, and what is written of it."""

    event: str  # 'statement' or 'fetch'; empty for what is not written
    facts: dict[str, Any]
    statement: str = ""
    key: str = ""  # the statement's fingerprint; empty for a fetch
    outcome: str = "ended"  # by the server; else 'answered', 'refused' by the guard, or 'failed' in DuckDB
    began: float = field(default_factory=time.monotonic)
    reported: asyncio.Event = field(default_factory=asyncio.Event)


class Audit:
    """The log of one endpoint; without a file nothing is written."""

    def __init__(self, file: str | None = None, size: int = _SIZE) -> None:
        """Append to `file`, which its owner alone reads."""
        self._open: dict[str, Request] = {}
        self._log: logging.Handler | None = None
        if file is not None:
            try:
                _make_private(file)
                self._log = RotatingFileHandler(file, maxBytes=size, backupCount=_FILES, encoding="utf-8")
            except OSError as error:
                raise AnonError(f"serve: --audit {file}: {error.strerror}") from error
            self._log.rotator = _rotate

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()

    def write(self, event: str, **facts: Any) -> None:
        """Write a line."""
        if self._log is not None:
            now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": now, "event": event, **facts})
            self._log.emit(logging.LogRecord("audit", logging.INFO, "", 0, line, None, None))

    def begin(self, request: Request) -> None:
        """Wait for a report on a statement from now on."""
        if request.key:
            self._open[request.key] = request

    def report(self, facts: dict[str, Any]) -> None:
        """Take what the worker reports of a statement: 'key', 'refused', and what is written of it."""
        request = self._open.get(facts.pop("key"))
        refused = facts.pop("refused")
        if request is not None:
            request.facts |= facts
            if refused:
                request.outcome = "refused"
                request.facts["reason"] = refused
            request.reported.set()

    async def end(self, request: Request) -> None:
        """Write the line of a statement or fetch."""
        milliseconds = round((time.monotonic() - request.began) * 1000, 1)
        if request.key and self._log is not None and request.outcome != "ended":
            with suppress(TimeoutError):  # the worker has ended
                await asyncio.wait_for(request.reported.wait(), _REPORT)
        if self._open.get(request.key) is request:
            del self._open[request.key]
        outcome = {"outcome": request.outcome, "milliseconds": milliseconds}
        text = {"statement": request.statement[:_LONGEST]} if request.event == "statement" else {}
        self.write(request.event, **request.facts, **text, **outcome)


def main(given: Namespace) -> int:
    """Print what a log says, with the older files next to it."""
    path = Path(given.file)
    if not path.exists():
        raise AnonError(f"audit: there is no file {path}")
    older = [path.with_name(f"{path.name}.{number}") for number in range(1, _FILES + 1)]
    files = [str(file) for file in (*older, path) if file.exists()]
    with duckdb.connect() as con:
        log = f"read_json({literal(files)}, format = 'newline_delimited', columns = {literal(_COLUMNS)})"
        try:
            con.execute(f"create table log as from {log}")
            foreign = bool(con.sql("from log where time is null or event is null limit 1"))
        except duckdb.Error:
            foreign = True
        if foreign:
            raise AnonError(f"audit: {path} is not a log that duckdb-anon serve --audit wrote")
        for summary in _SUMMARIES:
            if found := con.sql(summary):
                sys.stdout.write(f"{found}\n")
    return 0


def _rotate(source: str, target: str) -> None:
    os.replace(source, target)
    if target.endswith(".1"):
        _make_private(source)


def _make_private(file: str) -> None:
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
