"""Statements of analysts in the worker: each can be ended alone, and rows that a client does not fetch can be dropped.

Quack 1.5 has no function that interrupts a statement, closes a session or drops a result. So the authorization callback
runs a statement itself, on a connection of its own that can be interrupted, stores its rows in an in-memory database of
their own and returns the SQL that reads them. A session has one statement or one result at a time, as in Quack. Memory
of a database that is detached is free; that of a table that is dropped is only once all older transactions have ended.

When memory is short, the client with the most statements and results loses its oldest one, and the statement that
failed is run again. Cost: one copy of the rows of each answer; statements that read a table as it is are not copied.
"""

from __future__ import annotations

import http.client
import itertools
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import duckdb

from duckdb_anon.serve import messages
from duckdb_anon.serve.guard import Refused
from duckdb_anon.serve.limits import NO_MEMORY
from duckdb_anon.serve.messages import Message

FLUSH = "select 'the rows of the statement before are dropped'"
"""Statement by which the worker makes Quack drop the result of a session."""
_YIELDED = "ended, since memory was short and no client had more statements and results; ask again in a moment"
_CANCELLED = "ended, since the client is gone"
_FEW = 10_000  # rows that take no memory worth dropping them for
_BEAT = 0.1  # seconds between looks at the time statements have taken
_TRIES = 3  # runs of a statement for which other statements make room
_ROOM = 2.0  # seconds that an interrupted statement may take to give its memory back
_POST = 5.0  # seconds for a message to Quack


@dataclass(eq=False)
class _Statement:
    """A statement that runs, or whose rows are stored."""

    session: str
    client: str
    since: float
    cursor: duckdb.DuckDBPyConnection | None  # what it runs on; None once its rows are stored
    database: str  # where they are stored
    rows: int = 0
    why: str | None = None  # it was interrupted

    def interrupt(self, why: str) -> None:
        """Interrupt it if it runs."""
        cursor = self.cursor
        if cursor is not None:
            self.why = self.why or why
            with suppress(duckdb.Error):  # it has ended meanwhile
                cursor.interrupt()


class Statements:
    """Statements of the sessions of one endpoint."""

    def __init__(self, con: duckdb.DuckDBPyConnection, seconds: float) -> None:
        """Run statements on cursors of `con`, each for `seconds` at most; 0 for as long as it takes."""
        self._con, self._seconds = con, seconds
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._statements: set[_Statement] = set()
        self._unused: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._address = ""

    def watch(self, address: str) -> None:
        """End statements that take too long from now on; Quack listens at `address`."""
        self._address = address
        threading.Thread(target=self._watch, daemon=True).start()

    def run(self, session: str, client: str, sql: str) -> str:
        """Run a statement of a client's session and return the SQL of its rows; Refused where it was ended."""
        since = time.monotonic()
        for _ in range(_TRIES):
            mine, cursor = self._begin(session, client, since)
            try:
                cursor.execute(f"attach ':memory:' as {mine.database}")
                (written,) = cursor.execute(f"create table {mine.database}.rows as {sql}").fetchall()
                mine.rows = written[0]
                self._end(mine, stored=True)
                return f"from {mine.database}.rows"
            except duckdb.InterruptException as error:
                raise Refused(mine.why or _CANCELLED) from error
            except (duckdb.OutOfMemoryException, MemoryError) as error:
                short = error
            finally:
                self._end(mine, stored=False)
            if not self._make_room(mine):
                break
        raise Refused(NO_MEMORY) if isinstance(short, MemoryError) else short

    @contextmanager
    def watched(self, session: str, client: str, cursor: duckdb.DuckDBPyConnection, since: float) -> Iterator[None]:
        """While a statement of a session runs on a cursor of another database; Refused where it was ended."""
        mine = _Statement(session, client, since, cursor, "")
        with self._lock:
            self._statements.add(mine)
        try:
            yield
        except duckdb.InterruptException as error:
            raise Refused(mine.why or _CANCELLED) from error
        finally:
            mine.cursor = None
            with self._lock:
                self._statements.discard(mine)

    def cancel(self, session: str) -> None:
        """Interrupt what runs in a session."""
        for one in self._of(session):
            one.interrupt(_CANCELLED)

    def drop(self, session: str) -> None:
        """Drop the rows of a session unless a statement runs; Quack says that the result is closed if it is asked."""
        found = self._of(session)
        if all(one.cursor is None for one in found):
            self._post(Message(messages.STATEMENT, session.encode()).with_text(FLUSH.encode()))
            self._forget(found)

    def close(self, session: str) -> None:
        """End a session."""
        self.cancel(session)
        self.drop(session)
        self._post(Message(messages.GOODBYE, session.encode()))

    def _of(self, session: str) -> list[_Statement]:
        with self._lock:
            return [one for one in self._statements if one.session == session]

    def _begin(self, session: str, client: str, since: float) -> tuple[_Statement, duckdb.DuckDBPyConnection]:
        """A new statement of a session, which drops the rows of the one before."""
        self._forget([one for one in self._of(session) if one.cursor is None])
        with self._lock:
            cursor = self._con.cursor()
            mine = _Statement(session, client, since, cursor, f"result{next(self._numbers)}")
            self._statements.add(mine)
        return mine, cursor

    def _end(self, mine: _Statement, stored: bool) -> None:
        """End the running of a statement; it stays as long as its rows are stored."""
        cursor, mine.cursor = mine.cursor, None
        if cursor is not None:
            cursor.close()
            if not stored:
                self._forget([mine])

    def _forget(self, stored: list[_Statement]) -> None:
        """Drop stored rows; a result that Quack still reads keeps their memory until it ends."""
        with self._lock:
            self._statements.difference_update(stored)
        for one in stored:
            self._unused.put(one.database)
        self._sweep()

    def _sweep(self) -> None:
        """Detach databases of rows that nobody needs; one for which memory is short is left for later."""
        for _ in range(self._unused.qsize()):
            with suppress(queue.Empty):
                database = self._unused.get_nowait()
                try:
                    with self._con.cursor() as cursor:
                        cursor.execute(f"detach database if exists {database}")
                except (duckdb.Error, MemoryError):
                    self._unused.put(database)

    def _make_room(self, mine: _Statement) -> bool:
        """End what another session runs or has stored; whether there was something that yields to `mine`."""
        with self._lock:
            others = [one for one in self._statements if one.session != mine.session]
        others = [one for one in others if one.cursor is not None or one.rows > _FEW]
        count = Counter(one.client for one in [mine, *others])
        yielding = [one for one in others if (count[one.client], -one.since) > (count[mine.client], -mine.since)]
        if not yielding:
            return False
        first = max(yielding, key=lambda one: (count[one.client], one.cursor is None, -one.since))
        first.interrupt(_YIELDED)
        deadline = time.monotonic() + _ROOM
        while first.cursor is not None and time.monotonic() < deadline:
            time.sleep(_BEAT)
        self.drop(first.session)
        return True

    def _watch(self) -> None:
        while True:
            time.sleep(_BEAT)
            self._sweep()
            with self._lock:
                late = [one for one in self._statements if time.monotonic() - one.since > self._seconds > 0]
            for one in late:
                one.interrupt(f"the query took more than {self._seconds:g} s and was ended")

    def _post(self, message: Message) -> None:
        """Send Quack a message of a session."""
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(self._address, timeout=_POST)
            connection.request("POST", "/quack", message.encode())
            connection.getresponse().read()
            connection.close()
