"""The front alone, before a worker that speaks Quack's framing and can be made to go, hang or answer."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the serve extra is not installed")

from duckdb_anon.serve import messages, tokens
from duckdb_anon.serve.limits import ServingLimits
from duckdb_anon.serve.messages import Message
from duckdb_anon.serve.proxy import Front
from duckdb_anon.serve.tokens import OneToken

TOKEN = "a-token-for-the-test-only"
LIMITS = ServingLimits(seconds=0.5, statement=10_000, connections=8, patience=1.0, grace=0.0)


@dataclass
class FakeWorker:
    """Answers hello with a session's number, statements with themselves; 'hang' and 'die' as they say."""

    generation: int
    token: bytes
    port: int = 0
    asked: list[Message] = field(default_factory=list)
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
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])  # type: ignore[index]
        message = Message.read(await reader.readexactly(length))
        self.asked.append(message)
        text = message.text if message.kind == messages.STATEMENT else b""
        if message.kind == messages.HELLO:
            said = self._greeting(message)
        elif message.session not in self.sessions:
            said = messages.error("unknown session")
        elif b"forbidden" in text:
            said = messages.error("not allowed!")
        elif self._cannot_judge(text):
            said = messages.error("Authorization failed")
        elif b"large" in text and self.unjudged:
            self.unjudged -= 1
            writer.write(b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\nEXCEPTION_WHAT: std::bad_alloc\r\n\r\n")
            return
        elif b"hang" in text:
            await asyncio.sleep(30)
            said = b""
        elif b"die" in text and self.dies:
            self.dies -= 1
            return
        else:
            said = b"answer to " + text
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(said) + said)
        await writer.drain()

    def _greeting(self, hello: Message) -> bytes:
        token, _, client = hello.text.partition(b" ")
        if token != self.token or b'"name"' not in client or self._cannot_judge(hello.body):
            return messages.error("Authentication failed")
        number = b"%032X" % (1000 * self.generation + len(self.asked))
        self.sessions.add(number)
        return Message(messages.GREETING, number).encode()

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
        self.told: list[tuple[str, bytes]] = []
        self.role = "analyst"

    @property
    def current(self) -> FakeWorker:
        return self.workers[-1]

    async def worker(self, patience: float) -> FakeWorker:
        return self.current

    def tell(self, generation: int, do: str, session: bytes) -> None:
        self.told.append((do, session))

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

    async def hello(self, token: str = TOKEN, version: bytes = b"v1") -> bytes:
        _, body = await self.ask(hello(token, version))
        return Message.read(body).session

    async def run(self, session: bytes, sql: bytes) -> tuple[int, bytes]:
        return await self.ask(statement(session, sql))


def hello(token: str, version: bytes = b"v1") -> bytes:
    rest = b"\x02\x00" + bytes([len(version)]) + version + b"\xff\xff"
    return Message(messages.HELLO, body=rest).with_text(token.encode()).encode()


def statement(session: bytes, sql: bytes) -> bytes:
    return Message(messages.STATEMENT, session).with_text(sql).encode()


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
async def house(limits: ServingLimits = LIMITS, admitted: Any = None) -> AsyncIterator[House]:
    supervisor = FakeSupervisor()
    supervisor.workers.append(await FakeWorker(1, b"x" * len(TOKEN)).serve())
    front = Front(supervisor, admitted or OneToken(TOKEN), limits)  # type: ignore[arg-type]
    listening = await front.listen("127.0.0.1", 0)
    try:
        yield House(supervisor, listening.sockets[0].getsockname()[1])
    finally:
        listening.close()
        await front.close()
        for worker in supervisor.workers:
            assert worker.server is not None
            worker.server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.05)


def run(story: Callable[[House], Awaitable[None]], limits: ServingLimits = LIMITS, admitted: Any = None) -> None:
    async def placed() -> None:
        async with house(limits, admitted) as place:
            await story(place)

    asyncio.run(placed())


def told(**limits: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of a story that happens in a house with other limits."""

    def tell(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def test(**given: Any) -> None:
            run(lambda place: story(place, **given), replace(LIMITS, **limits))

        _, *others = inspect.signature(story).parameters.values()
        test.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
        return test

    return tell


@told()
async def test_known_client_is_answered_and_the_worker_never_sees_the_clients_token(place: House) -> None:
    number = await place.hello()
    assert await place.run(number, b"select 1") == (200, b"answer to select 1")
    token, _, client = place.supervisor.current.asked[0].text.partition(b" ")
    assert token == b"x" * len(TOKEN) and b'"name": "token"' in client
    assert not any(TOKEN.encode() in message.encode() for message in place.supervisor.current.asked)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (hello("wrong-token"), 200), (hello(TOKEN + "x"), 200), (statement(b"0" * 32, b"select 1"), 200),
        (statement(b"", b"select 1"), 200), (hello(TOKEN, b"v" * 100) + b"x" * 5000, 200), (b"select 1", 400),
        (b"x" * 5000 + TOKEN.encode(), 400), (b"\x01\x00\x01\x02\x00\xff\xff\xff\xff\xff", 400),
    ],
)  # fmt: skip
@told()
async def test_stranger_is_refused_and_nothing_is_passed_on(place: House, body: bytes, status: int) -> None:
    answered, said = await place.ask(body)
    assert answered == status and (status == 400 or Message.read(said).kind == messages.ERROR)
    assert place.supervisor.current.asked == []


@told()
async def test_body_that_is_too_large_is_refused_before_it_is_sent(place: House) -> None:
    status, said = await place.send(b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000000\r\n\r\n")
    assert status == 413 and b"10000 are allowed" in said
    number = await place.hello()
    assert await place.run(number, b"z" * 9000) == (200, b"answer to " + b"z" * 9000)
    assert (await place.run(number, b"z" * 9990))[0] == 413


@told(patience=30.0)
async def test_strangers_large_body_is_not_read_to_its_end(place: House) -> None:
    head = b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
    # the rest never comes, and is not waited for
    _, said = await place.send(head + statement(b"0" * 32, b"y" * 9000)[:4096])
    assert Message.read(said).text == b"the session has ended; connect again"


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
@told()
async def test_other_kinds_of_requests_are_refused(place: House, request_: bytes) -> None:
    assert (await place.send(request_))[0] == 411


@pytest.mark.parametrize("noise", [b"\x16\x03\x01\x02\x00 no http \r\n\r\n", b"POST " + b"a" * 40_000])
@told()
async def test_noise_ends_the_connection(place: House, noise: bytes) -> None:
    assert (await place.send(noise))[0] in (0, 400)


@told(patience=60.0)
async def test_silent_connections_make_room_for_those_who_speak(place: House) -> None:
    number = await place.hello()
    silent = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(40)]
    for _, writer in silent:
        writer.write(b"POST /quack HTTP/1.1\r\n")
    await asyncio.sleep(0.05)
    assert await place.run(number, b"select 1") == (200, b"answer to select 1")
    for _, writer in silent:
        writer.transport.abort()


@told(patience=0.2)
async def test_silent_connection_is_let_go_in_time(place: House) -> None:
    assert await place.send(b"POST /quack HTTP/1.1\r\n") == (0, b"")


@told()
async def test_statement_that_takes_too_long_ends_the_worker_and_is_told_so_in_its_own_protocol(place: House) -> None:
    number = await place.hello()
    status, said = await place.run(number, b"hang")
    assert (status, said) == (200, messages.error("the query took more than 0.5 s and was ended"))
    assert place.supervisor.replaced == ["a query ran for more than 0.5 s"]


@told()
async def test_session_is_introduced_to_the_next_worker(place: House) -> None:
    number = await place.hello()
    second = await FakeWorker(2, b"y" * len(TOKEN)).serve()
    place.supervisor.workers.append(second)
    assert await place.run(number, b"select 1") == (200, b"answer to select 1")
    assert await place.run(number, b"select 2") == (200, b"answer to select 2")
    assert [message.kind == messages.HELLO for message in second.asked] == [True, False, False]
    assert number not in second.sessions


@pytest.mark.parametrize(
    ("dies", "ended", "answer"),
    [(1, True, b"answer to die"), (2, True, b"started again"), (2, False, b"short of memory")],
)
@told()
async def test_statement_that_had_barely_begun_is_asked_again_once(
    place: House, dies: int, ended: bool, answer: bytes
) -> None:
    number = await place.hello()
    place.supervisor.current.dies, place.supervisor.current.ended = dies, ended
    _, said = await place.run(number, b"die")
    assert answer in said


@told(sessions=3, idle=0.2)
async def test_token_with_as_many_sessions_as_allowed_loses_the_idlest_one_or_is_told_so(place: House) -> None:
    numbers = [await place.hello() for _ in range(4)][1:]  # the first is closed, nothing was ever sent to it
    for number in numbers:
        await place.run(number, b"select 1")
    _, said = await place.ask(hello(TOKEN))
    assert b"3 sessions are open" in said
    await asyncio.sleep(0.2)
    await place.run(numbers[0], b"select 1")
    await place.hello()
    assert ("close", numbers[1]) in place.supervisor.told
    answers = [(await place.run(number, b"select 1"))[1] for number in numbers]
    assert [b"the session has ended" in answer for answer in answers] == [False, True, False]


@told(idle=0.1)
async def test_rows_that_are_not_fetched_are_dropped_once(place: House) -> None:
    number = await place.hello()
    await place.run(number, b"select 1")
    await asyncio.sleep(0.5)
    assert place.supervisor.told.count(("drop", number)) == 1
    assert await place.run(number, b"select 2") == (200, b"answer to select 2")


async def _hang(place: House, number: bytes) -> asyncio.StreamWriter:
    """A connection whose statement is not answered yet."""
    _, writer = await asyncio.open_connection("127.0.0.1", place.port)
    body = statement(number, b"hang")
    writer.write(b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await asyncio.sleep(0.2)
    return writer


@told(seconds=30.0)
async def test_statement_of_a_client_that_goes_is_cancelled(place: House) -> None:
    number = await place.hello()
    writer = await _hang(place, number)
    writer.transport.abort()
    await asyncio.sleep(0.2)
    assert ("cancel", number) in place.supervisor.told


@told(at_once=1, seconds=0.0, patience=0.3)
async def test_clients_that_wait_for_a_place_are_told_so(place: House) -> None:
    numbers = [await place.hello() for _ in range(2)]
    writer = await _hang(place, numbers[0])
    _, said = await place.run(numbers[1], b"select 1")
    assert b"1 statements run here" in said
    writer.transport.abort()
    await asyncio.sleep(0.2)
    assert await place.run(numbers[1], b"select 1") == (200, b"answer to select 1")


@told()
async def test_statement_and_hello_that_a_worker_short_of_memory_cannot_judge_are_asked_again(place: House) -> None:
    worker = place.supervisor.current
    await place.hello()
    worker.unjudged = 2
    number = await place.hello(version=b"needs memory")
    assert number in worker.sessions
    worker.unjudged = 3
    assert await place.run(number, b"needs memory") == (200, b"answer to needs memory")


@pytest.mark.parametrize(("unjudged", "text"), [(1000, b"needs memory"), (1, b"large")])
@told()
async def test_statement_that_there_is_no_memory_for_is_not_called_refused(
    place: House, unjudged: int, text: bytes
) -> None:
    number = await place.hello()
    place.supervisor.current.unjudged = unjudged
    status, said = await place.run(number, text)
    assert status == 200 and b"short of memory; ask again" in said
    place.supervisor.current.unjudged = 0
    assert await place.run(number, text) == (200, b"answer to " + text)


@told()
async def test_refused_statement_is_asked_once(place: House) -> None:
    number = await place.hello()
    before = len(place.supervisor.current.asked)
    status, said = await place.run(number, b"forbidden")
    assert (status, said) == (200, messages.error("not allowed!"))
    assert len(place.supervisor.current.asked) == before + 1


@told()
async def test_answer_that_holds_the_words_of_a_refusal_is_an_answer(place: House) -> None:
    number = await place.hello()
    text = messages.error("Authorization failed") * 2
    assert await place.run(number, text) == (200, b"answer to " + text)


def test_revoked_client_is_refused_at_the_next_request_and_failed_tries_wait(monkeypatch: Any, tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    alice, bob = (tokens.add(path, name) for name in ("alice", "bob"))
    waited: list[float] = []

    async def story(place: House) -> None:
        sessions = [await place.hello(alice), await place.hello(bob)]
        assert [await place.run(one, b"select 1") for one in sessions] == [(200, b"answer to select 1")] * 2
        tokens.revoke(path, "alice")
        _, said = await place.run(sessions[0], b"select 1")
        assert Message.read(said).text == b"the token was revoked or has expired; ask for another"
        assert await place.run(sessions[1], b"select 1") == (200, b"answer to select 1")
        wait = asyncio.sleep
        monkeypatch.setattr("duckdb_anon.serve.proxy.asyncio.sleep", lambda seconds: waited.append(seconds) or wait(0))
        for _ in range(4):
            _, said = await place.ask(hello(alice))
            assert Message.read(said).text.startswith(b"wrong token")
        assert waited == [0.0, 0.25, 0.5, 1.0]
        assert await place.hello(bob)  # whose token was right before
        monkeypatch.undo()

    run(story, replace(LIMITS, patience=20.0), tokens.TokenFile(str(path)))


def test_token_with_as_many_sessions_as_its_limit_loses_the_one_that_was_never_used(tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    alice = tokens.add(path, "alice", sessions=2)
    bob = tokens.add(path, "bob")

    async def story(place: House) -> None:
        other, first, second = await place.hello(bob), await place.hello(alice), await place.hello(alice)
        await place.run(first, b"select 1")
        third = await place.hello(alice)
        assert place.supervisor.told == [("close", second)]
        _, said = await place.run(second, b"select 1")
        assert Message.read(said).text == b"the session has ended; connect again"
        for number in (other, first, third):
            assert await place.run(number, b"select 1") == (200, b"answer to select 1")

    run(story, replace(LIMITS, patience=20.0), tokens.TokenFile(str(path)))


def test_token_runs_as_many_statements_at_once_as_it_may(tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    alice = tokens.add(path, "alice", statements=1)
    bob = tokens.add(path, "bob")

    async def story(place: House) -> None:
        mine, other = await place.hello(alice), await place.hello(bob)
        hanging = asyncio.create_task(place.run(mine, b"hang"))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(place.run(mine, b"select 2"))
        assert await place.run(other, b"select 1") == (200, b"answer to select 1")
        assert not waiting.done()
        await hanging
        assert await waiting == (200, b"answer to select 2")

    run(story, replace(LIMITS, patience=20.0), tokens.TokenFile(str(path)))


ASKED = {
    messages.STATEMENT: Message(messages.STATEMENT).with_text(b"select 1").body,
    messages.FETCH: b"\x01\x00" + b"\xff" * 9 + b"\x01" + b"\xab\x7f" + messages.END,
    messages.GOODBYE: messages.END,
}
"""Bodies of what a client who reads sends in a session."""


@told()
async def test_kinds_that_reading_needs_are_passed_on_whole_and_nothing_else(place: House) -> None:
    worker, number = place.supervisor.current, await place.hello()
    before = len(worker.asked)
    bodies = (b"", b"x", *ASKED.values())
    for kind in (*range(130), 255, *(256 + kind for kind in ASKED), 1 << 40):
        for body in bodies:
            if kind != messages.HELLO and body != ASKED.get(kind):
                _, said = await place.ask(Message(kind, number, body=body).encode())
                assert b"is not answered here" in Message.read(said).text, (kind, body)
    for kind, body in ASKED.items():
        whole = Message(kind, number, body=body).encode()
        for end in range(len(whole)):
            status, said = await place.ask(whole[:end])
            assert status == 400 or Message.read(said).kind == messages.ERROR
        _, said = await place.ask(whole + Message(messages.APPEND, number).encode())
        assert b"is not answered here" in Message.read(said).text
    assert len(worker.asked) == before
    for kind, body in ASKED.items():
        await place.ask(Message(kind, number, body=body).encode())
    assert [message.kind for message in worker.asked[before:]] == list(ASKED)
    # the rows of a session that has said goodbye are dropped at once
    assert place.supervisor.told == [("close", number)]
