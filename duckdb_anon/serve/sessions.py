"""What the front keeps of sessions: whose each is, when it was used last, and who may begin another statement.

A session keeps its place in the front for as long as its client likes; rows that the worker stores for it are dropped
once it is idle. Nothing here is read from the worker, so it holds for whatever the worker does.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from duckdb_anon.serve.messages import Message
from duckdb_anon.serve.tokens import Client


class Refusal(Exception):
    """The request is answered with a line of text: it is not passed on, or came to nothing.

    Clients print such a line with status 200 alone; other statuses are for what is no request of theirs.
    """

    def __init__(self, line: str, status: int = 200) -> None:
        super().__init__(line)
        self.line, self.status = line, status


@dataclass(eq=False)
class Session:
    """A client that has shown a token."""

    client: Client
    hello: Message  # with which it did, without the token
    generation: int  # of the worker that knows it
    number: bytes  # which it has there
    requests: int = 0  # that are answered now
    used: float = field(default_factory=time.monotonic)
    was_used: bool = False
    has_rows: bool = False  # which the worker may store for it

    def idle_for(self) -> float:
        """Seconds since it was used."""
        return 0.0 if self.requests else time.monotonic() - self.used

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While a request is answered."""
        self.requests += 1
        self.was_used = self.has_rows = True
        try:
            yield
        finally:
            self.requests -= 1
            self.used = time.monotonic()


class Sessions(dict[bytes, Session]):
    """The sessions of an endpoint, by the number that clients know."""

    def __init__(self, most: int, idle: float) -> None:
        """Allow each token `most` sessions unless its limits say otherwise; they are idle after `idle` seconds."""
        super().__init__()
        self._most, self._idle = most, idle

    def make_room(self, client: Client) -> Session | None:
        """Take a session of a client that has all that are allowed: one never used, else the one idle for longest."""
        most = client.sessions or self._most
        mine = {number: one for number, one in self.items() if one.client.name == client.name}
        if len(mine) < most:
            return None
        number = max(mine, key=lambda one: (not mine[one].was_used, mine[one].idle_for()))
        if mine[number].was_used and mine[number].idle_for() < self._idle:
            raise Refusal(f"{most} sessions are open with this token; close one, or wait {self._idle:g} s")
        return self.pop(number)

    def idle(self) -> list[Session]:
        """Sessions that have become idle since the last call: their rows are not needed."""
        found = [one for one in self.values() if one.has_rows and one.idle_for() >= self._idle]
        for one in found:
            one.has_rows = False
        return found


class Places:
    """How many requests the worker answers at once, of all clients and of each."""

    def __init__(self, most: int) -> None:
        """Allow `most` of all clients together."""
        self._most = most
        self._running: Counter[str] = Counter()
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def place(self, client: Client, patience: float) -> AsyncIterator[None]:
        """Wait for a place, for `patience` seconds at most, and keep it."""
        name, most = client.name, client.statements or self._most
        try:
            async with asyncio.timeout(patience), self._freed:
                await self._freed.wait_for(lambda: self._running[name] < most and self._running.total() < self._most)
                self._running[name] += 1
        except TimeoutError as error:
            mine, every = self._running[name], self._running.total()
            raise Refusal(
                f"{every} statements run here, {mine} of them with this token; ask again in a moment"
            ) from error
        try:
            yield
        finally:
            self._running[name] -= 1
            async with self._freed:
                self._freed.notify_all()
