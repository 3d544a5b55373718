"""The front alone, before a worker that speaks Quack's framing and can be made to go, hang or answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

pytest.importorskip("h11", reason="the serve extra is not installed")

from duckdb_anon.serve.limits import ServingLimits
from duckdb_anon.serve.proxy import Front

TOKEN = "a-token-for-the-test-only"
ERROR = b"\x01\x00d" + b"\xff" * 4 + b"\x01\x00"
LIMITS = ServingLimits(seconds=0.5, statement=10_000, connections=8, patience=1.0)


@dataclass
class FakeWorker:
    """Answers hello with a session's number, statements with themselves; 'hang' and 'die' as they say."""

    generation: int
    token: bytes
    port: int = 0
    asked: list[bytes] = field(default_factory=list)
    sessions: set[bytes] = field(default_factory=set)
    dies: int = 0
    ended: bool = False
    unjudged: int = 0
    server: asyncio.Server | None = None

    def has_ended(self) -> bool:
        return self.ended

    async def serve(self) -> FakeWorker:
        self.server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._say(reader, writer)
        finally:
            writer.close()

    async def _say(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        body = await reader.readexactly(length)
        self.asked.append(body)
        if body.startswith(b"hello"):
            if self.token in body and not self._cannot_judge(body):
                number = b"%032X" % (1000 * self.generation + len(self.asked))
                self.sessions.add(number)
                said = b"\x00 " + number + b" welcome"
            else:
                said = ERROR + b"\x15Authentication failed" + b"\xff\xff"
        elif body[:32] not in self.sessions:
            said = b"unknown session"
        elif b"forbidden" in body:
            said = ERROR + b"\x0cnot allowed!" + b"\xff\xff"
        elif self._cannot_judge(body):
            said = ERROR + b"\x14Authorization failed" + b"\xff\xff"
        elif b"large" in body and self.unjudged:
            self.unjudged -= 1
            writer.write(b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\nEXCEPTION_WHAT: std::bad_alloc\r\n\r\n")
            return
        elif b"hang" in body:
            await asyncio.sleep(30)
            said = b""
        elif b"die" in body and self.dies:
            self.dies -= 1
            return
        else:
            said = b"answer to " + body[32:]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(said) + said)
        await writer.drain()

    def _cannot_judge(self, body: bytes) -> bool:
        if b"needs memory" not in body or not self.unjudged:
            return False
        self.unjudged -= 1
        return True


class FakeSupervisor:
    """Hands out the worker it was given last."""

    def __init__(self) -> None:
        self.workers: list[FakeWorker] = []
        self.replaced: list[str] = []

    @property
    def current(self) -> FakeWorker:
        return self.workers[-1]

    async def worker(self, patience: float) -> FakeWorker:
        return self.current

    def replace(self, worker: FakeWorker, reason: str) -> None:
        self.replaced.append(reason)


@dataclass
class House:
    """A front that listens, and what stands behind it."""

    supervisor: FakeSupervisor
    port: int

    async def ask(self, body: bytes) -> tuple[int, bytes]:
        return await self.send(b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    async def send(self, request: bytes) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await asyncio.wait_for(_all_of(reader), 10)
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, body

    async def hello(self) -> bytes:
        _, body = await self.ask(b"hello " + TOKEN.encode())
        return body[2:34]


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends, in order or not."""
    found = b""
    try:
        while data := await reader.read(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


@asynccontextmanager
async def house(limits: ServingLimits = LIMITS) -> AsyncIterator[House]:
    supervisor = FakeSupervisor()
    supervisor.workers.append(await FakeWorker(1, b"x" * len(TOKEN)).serve())
    listening = await Front(supervisor, TOKEN, limits).listen("127.0.0.1", 0)  # type: ignore[arg-type]
    try:
        yield House(supervisor, listening.sockets[0].getsockname()[1])
    finally:
        listening.close()
        for worker in supervisor.workers:
            assert worker.server is not None
            worker.server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.05)


def run(story: Callable[[House], Awaitable[None]], limits: ServingLimits = LIMITS) -> None:
    async def told() -> None:
        async with house(limits) as place:
            await story(place)

    asyncio.run(told())


def test_known_client_is_answered_and_the_worker_never_sees_the_token_it_could_listen_with() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        assert await place.ask(number + b"select 1") == (200, b"answer to select 1")
        greeted = [body for body in place.supervisor.current.asked if body.startswith(b"hello")]
        assert greeted[-1] == b"hello " + b"x" * len(TOKEN)

    run(story)


@pytest.mark.parametrize(
    "body", [b"hello wrong-token", b"0" * 32 + b"select 1", b"select 1", b"x" * 5000 + TOKEN.encode()]
)
def test_stranger_is_refused_and_nothing_is_passed_on(body: bytes) -> None:
    async def story(place: House) -> None:
        status, _ = await place.ask(body)
        assert status == 401
        assert place.supervisor.current.asked == []

    run(story)


def test_body_that_is_too_large_is_refused_before_it_is_sent() -> None:
    async def story(place: House) -> None:
        status, said = await place.send(b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000000\r\n\r\n")
        assert status == 413 and b"10000 are allowed" in said

    run(story)


def test_strangers_large_body_is_not_read_to_its_end() -> None:
    async def story(place: House) -> None:
        head = b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
        status, _ = await place.send(head + b"y" * 4096)  # the rest never comes, and is not waited for
        assert status == 401

    run(story, replace(LIMITS, patience=30.0))


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_other_kinds_of_requests_are_refused(request_: bytes) -> None:
    async def story(place: House) -> None:
        assert (await place.send(request_))[0] == 411

    run(story)


@pytest.mark.parametrize("noise", [b"\x16\x03\x01\x02\x00 no http \r\n\r\n", b"POST " + b"a" * 40_000])
def test_noise_ends_the_connection(noise: bytes) -> None:
    async def story(place: House) -> None:
        assert (await place.send(noise))[0] == 0

    run(story)


def test_silent_connections_make_room_for_those_who_speak() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        silent = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(40)]
        for _, writer in silent:
            writer.write(b"POST /quack HTTP/1.1\r\n")
        await asyncio.sleep(0.05)
        assert await place.ask(number + b"select 1") == (200, b"answer to select 1")
        for _, writer in silent:
            writer.transport.abort()

    run(story, replace(LIMITS, patience=60.0))


def test_silent_connection_is_let_go_in_time() -> None:
    async def story(place: House) -> None:
        assert await place.send(b"POST /quack HTTP/1.1\r\n") == (0, b"")

    run(story, replace(LIMITS, patience=0.2))


def test_statement_that_takes_too_long_ends_the_worker_and_is_told_so_in_its_own_protocol() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        status, said = await place.ask(number + b"hang")
        line = b"the query took more than 0.5 s and was ended"
        assert (status, said) == (200, ERROR + bytes([len(line)]) + line + b"\xff\xff")
        assert place.supervisor.replaced == ["a query ran for more than 0.5 s"]

    run(story)


def test_session_is_introduced_to_the_next_worker() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        second = await FakeWorker(2, b"y" * len(TOKEN)).serve()
        place.supervisor.workers.append(second)
        assert await place.ask(number + b"select 1") == (200, b"answer to select 1")
        assert await place.ask(number + b"select 2") == (200, b"answer to select 2")
        assert [body.startswith(b"hello") for body in second.asked] == [True, False, False]
        assert number not in second.sessions

    run(story)


@pytest.mark.parametrize(
    ("dies", "ended", "answer"),
    [(1, True, b"answer to die"), (2, True, b"started again"), (2, False, b"short of memory")],
)
def test_statement_that_had_barely_begun_is_asked_again_once(dies: int, ended: bool, answer: bytes) -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        place.supervisor.current.dies, place.supervisor.current.ended = dies, ended
        _, said = await place.ask(number + b"die")
        assert answer in said

    run(story)


def test_limits_are_those_of_the_request_not_of_its_parts() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        assert await place.ask(number + b"z" * 9000) == (200, b"answer to " + b"z" * 9000)
        assert (await place.ask(number + b"z" * 9990))[0] == 413

    run(story)


def test_sessions_survive_in_any_number_up_to_their_bound(monkeypatch: Any) -> None:
    monkeypatch.setattr("duckdb_anon.serve.proxy._SESSIONS", 3)

    async def story(place: House) -> None:
        numbers = [await place.hello() for _ in range(4)]
        assert (await place.ask(numbers[0] + b"select 1"))[0] == 401
        assert (await place.ask(numbers[3] + b"select 1"))[0] == 200

    run(story)


def test_statement_and_hello_that_a_worker_short_of_memory_cannot_judge_are_asked_again() -> None:
    async def story(place: House) -> None:
        worker = place.supervisor.current
        await place.hello()
        worker.unjudged = 2
        _, said = await place.ask(b"hello needs memory " + TOKEN.encode())
        number = said[2:34]
        assert number in worker.sessions
        worker.unjudged = 3
        assert await place.ask(number + b"needs memory") == (200, b"answer to needs memory")

    run(story)


def test_statement_that_is_never_judged_is_not_called_refused() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        place.supervisor.current.unjudged = 1000
        status, said = await place.ask(number + b"needs memory")
        assert status == 200 and b"short of memory; ask again" in said

    run(story)


def test_failed_allocation_of_the_server_is_named_and_not_asked_again() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        place.supervisor.current.unjudged = 1
        status, said = await place.ask(number + b"large")
        assert status == 200 and b"short of memory; ask again" in said
        assert await place.ask(number + b"large") == (200, b"answer to large")

    run(story)


def test_refused_statement_is_asked_once() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        before = len(place.supervisor.current.asked)
        status, said = await place.ask(number + b"forbidden")
        assert (status, said) == (200, ERROR + b"\x0cnot allowed!" + b"\xff\xff")
        assert len(place.supervisor.current.asked) == before + 1

    run(story)


def test_answer_that_holds_the_words_of_a_refusal_is_an_answer() -> None:
    async def story(place: House) -> None:
        number = await place.hello()
        statement = b"\x14Authorization failed"
        assert await place.ask(number + statement) == (200, b"answer to " + statement)

    run(story)
