"""What clients of an endpoint did: a line of JSON per connection, statement, fetch and failed token, in rotated files.

A line never holds a value of the data: no answer, and of errors only those of the guard and the planner. The text of a
statement is the client's and is written as she sent it, with the constants that she typed.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json
import logging
import os
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from duckdb_anon.model.errors import AnonError

_SIZE, _FILES = 16 << 20, 10  # bytes of a file, older files that are kept
_REPORT = 1.0  # seconds to wait for what the worker reports of a statement


def fingerprint(session: str, statement: str) -> str:
    """What the front and the worker call a statement of a session."""
    return hashlib.sha256(f"{session} {statement}".encode(errors="replace")).hexdigest()


@dataclass
class Request:
    """A statement or fetch that runs.

    Attributes:
        event: 'statement' or 'fetch'.
        facts: what is written of it.
        key: the statement's fingerprint; empty for a fetch.
        outcome: 'answered', 'refused' by the guard, 'failed' in DuckDB, or 'ended' by the server.
        rows: rows of the answer that have been sent.
        began: when it did.
        reported: set when the worker has reported.
    """

    event: str
    facts: dict[str, Any]
    key: str = ""
    outcome: str = "ended"
    rows: int = 0
    began: float = field(default_factory=time.monotonic)
    reported: asyncio.Event = field(default_factory=asyncio.Event)


class Audit:
    """The log of one endpoint; without a file nothing is written."""

    def __init__(self, file: str | None = None, size: int = _SIZE) -> None:
        """Append to `file`, which its owner alone reads.

        Raises:
            AnonError: it cannot be written.
        """
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

    def report(self, told: dict[str, Any]) -> None:
        """Take what the worker reports of a statement: 'key', 'engine', 'refused'."""
        request = self._open.get(told["key"])
        if request is not None:
            request.facts["engine"] = told["engine"]
            if told["refused"]:
                request.outcome = "refused"
                request.facts["reason"] = told["refused"]
            request.reported.set()

    async def end(self, request: Request) -> None:
        """Write the line of a statement or fetch."""
        milliseconds = round((time.monotonic() - request.began) * 1000, 1)
        if request.key and self._log is not None and request.outcome != "ended":
            try:
                await asyncio.wait_for(request.reported.wait(), _REPORT)
            except TimeoutError:
                pass  # the worker has ended
        if self._open.get(request.key) is request:
            del self._open[request.key]
        outcome = {"outcome": request.outcome, "rows": request.rows, "milliseconds": milliseconds}
        self.write(request.event, **request.facts, **outcome)


def main(given: Namespace) -> int:
    """Print what a log says, one table after the other, the oldest file first."""
    lines = list(_lines(Path(given.file)))
    if not lines:
        raise AnonError(f"audit: {given.file} has no line")
    print(f"{lines[0]['time']} to {lines[-1]['time']}: {len(lines)} lines")  # noqa: T201 - the command's result
    statements = [line for line in lines if line["event"] == "statement"]
    rows: Counter[str] = Counter()
    for line in lines:
        rows[line.get("token") or ""] += line.get("rows", 0)
    times: dict[str, list[float]] = {}
    for line in statements:
        times.setdefault(line["token"], []).append(line["milliseconds"])
    counts = Counter((line["token"], line["outcome"]) for line in statements)
    outcomes = ("answered", "refused", "failed", "ended")
    _table(
        ("token", "statements", *outcomes, "rows", "median ms", "slowest ms"),
        (
            (name, len(taken), *(counts[name, one] for one in outcomes), rows[name], sorted(taken)[len(taken) // 2],
             max(taken))
            for name, taken in sorted(times.items())
        ),
    )  # fmt: skip
    _table(("engine", "statements"), Counter(line.get("engine") or "none" for line in statements).most_common())
    _table(("refused because", "statements"), Counter(_reasons(statements)).most_common(20))
    failed = Counter(
        (line["address"], line.get("token") or "unknown") for line in lines if line["event"] == "failed token"
    )
    _table(("failed tokens from", "as", "tries"), ((*who, count) for who, count in failed.most_common(20)))
    return 0


def _reasons(statements: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (line["reason"] for line in statements if line["outcome"] in ("refused", "ended") and "reason" in line)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of the rotated files and of the current one.

    Raises:
        AnonError: there is no such file, or it is no audit log.
    """
    files = [path.with_name(f"{path.name}.{number}") for number in range(_FILES, 0, -1)]
    for file in (*(one for one in files if one.exists()), path):
        try:
            for text in file.read_text(encoding="utf-8").splitlines():
                line = json.loads(text)
                if "time" not in line or "event" not in line:
                    raise ValueError
                yield line
        except OSError as error:
            raise AnonError(f"audit: {file}: {error.strerror}") from error
        except (ValueError, TypeError) as error:
            raise AnonError(f"audit: {file} is not a log that duckdb-anon serve --audit wrote") from error


def _table(head: tuple[str, ...], rows: Iterable[Iterable[object]]) -> None:
    """Print rows below their heads, if there are any."""
    cells = [head, *(tuple(map(str, row)) for row in rows)]
    if len(cells) > 1:
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        print()  # noqa: T201
        for row in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())  # noqa: T201


def _rotate(source: str, target: str) -> None:
    os.replace(source, target)
    if not target.endswith(".1"):
        return
    _make_private(source)


def _make_private(file: str) -> None:
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
