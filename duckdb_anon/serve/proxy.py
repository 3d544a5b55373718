"""What clients reach of an endpoint: a bounded HTTP proxy in front of the worker that holds the database.

A request shows in its header who sends it: a session, or in a hello the token. Nothing else is read of a request until
that is valid, and connections that have not shown it are closed in time, the oldest first when places are short.
Messages of the kinds that reading needs are passed on, and only whole ones; any other is refused and written down.
The proxy opens no database, so it keeps running when a worker ends; a session that the next worker does not know is
introduced to it, and a statement that had barely begun is sent again. The worker gets its own token and the client's
name in place of the client's token.
HTTP and TLS are aiohttp's.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import aiohttp
from aiohttp import web

from duckdb_anon.serve import messages
from duckdb_anon.serve.audit import Audit, Request, fingerprint
from duckdb_anon.serve.limits import LOOPBACK, NO_MEMORY, ServingLimits
from duckdb_anon.serve.messages import MalformedError, Message
from duckdb_anon.serve.supervisor import Supervisor, Worker
from duckdb_anon.serve.tokens import Client, FailedTries, OneToken, TokenFile


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


_T = TypeVar("_T")
_INTRODUCTION = 4 << 10  # bytes of a body in which the token or the session must be complete
_CHUNK = 64 << 10
_BARELY = 1.0  # a statement whose worker went within this many seconds did not make it go, as a rule
_NOTICED = 0.3  # seconds within which the supervisor knows that a worker has ended
_RESTART = 20.0  # seconds to wait for the next worker; the client's own patience is 30
_AGAIN = "the session has ended; connect again"
_TYPE = "application/vnd.duckdb"
_EVENTS = {messages.STATEMENT: "statement", messages.FETCH: "fetch", messages.APPEND: "insert"}
_VERIFYING = 2  # tokens that are hashed at once
# Seconds before a statement or hello is sent again that a worker short of memory could not read.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


class _Gone(Exception):
    """The worker closed the connection before it answered: it ended, or had no memory to read the request."""


@dataclass(frozen=True)
class _Answer:
    """A worker's answer, of which the first piece has been read."""

    response: aiohttp.ClientResponse
    first: bytes

    async def piece(self) -> bytes:
        """The next piece; empty at the end."""
        with _as_gone():
            return bytes(await self.response.content.readany())

    @property
    def message(self) -> Message:
        """What it says; a message of no kind where the first piece has no header."""
        try:
            return Message.read(self.first)
        except MalformedError:
            return Message(messages.NONE)


class Front:
    """The proxy of one endpoint."""

    def __init__(
        self, supervisor: Supervisor, tokens: OneToken | TokenFile, limits: ServingLimits, audit: Audit | None = None
    ) -> None:
        """Relay to the supervisor's worker what clients with `tokens` send, within `limits`."""
        self._supervisor, self._tokens, self._limits = supervisor, tokens, limits
        self._audit = audit or Audit()
        self._kinds = messages.WRITING if supervisor.role == "curator" else messages.READING
        self._sessions = Sessions(limits.sessions, limits.idle)
        self._strangers: OrderedDict[web.RequestHandler, None] = OrderedDict()
        self._places, self._closing = Places(limits.at_once), asyncio.Event()
        self._verifying = asyncio.Semaphore(_VERIFYING)
        self._failed = FailedTries()

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        """Accept clients at an address from now on."""
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=None)
        self._worker = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        self._dropping = asyncio.create_task(self._drop_idle())  # kept, or it would be collected
        server = web.Server(
            self._handle, access_log=None, auto_decompress=False, lingering_time=0, read_bufsize=_CHUNK,
            handler_cancellation=True, keepalive_timeout=self._limits.patience,
        )  # fmt: skip
        return await asyncio.get_running_loop().create_server(
            lambda: self._accepted(server), host, port, ssl=tls, backlog=self._limits.connections,
            ssl_handshake_timeout=self._limits.patience if tls else None,
        )  # fmt: skip

    async def close(self) -> None:
        """Close connections to the worker."""
        self._closing.set()
        await self._worker.close()

    async def _drop_idle(self) -> None:
        """Have the worker drop rows that nobody fetches."""
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), min(1.0, self._limits.idle / 4))
            for one in self._sessions.idle():
                self._supervisor.tell(one.generation, "drop", one.number)

    def _accepted(self, server: web.Server) -> web.RequestHandler:
        """A new connection, which is closed unless a request on it shows in time who sends it."""
        connection = server()
        self._strangers[connection] = None
        asyncio.get_running_loop().call_later(self._limits.patience, self._let_go, connection)
        if len(server.connections) >= self._limits.connections:
            # one whose TLS handshake is under way has no transport; the handshake has a limit of its own
            oldest = next((stranger for stranger in self._strangers if stranger.transport is not None), None)
            if oldest is not None:
                self._let_go(oldest)
        return connection

    def _let_go(self, connection: web.RequestHandler) -> None:
        if connection in self._strangers:
            del self._strangers[connection]
            if connection.transport is not None:
                connection.transport.abort()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request, one answer, after which the connection is closed."""
        try:
            message, client = await self._read(request)
            if message.kind != messages.HELLO:
                return await self._run(request, message, client)
            answer = await self._patiently(client, lambda worker: self._greeted(worker, client, message))
            self._audit.write("connected", token=client.name, address=request.remote)
            response = web.Response(body=answer, content_type=_TYPE)
        except Refusal as refused:
            response = web.Response(status=refused.status, body=messages.error(refused.line), content_type=_TYPE)
        except MalformedError:
            response = web.Response(status=400, text="not a request of Quack\n")
        except (TimeoutError, aiohttp.ClientError, web.RequestPayloadError) as error:
            raise ConnectionAbortedError from error  # a client that went, or was too slow
        response.force_close()
        return response

    async def _run(self, request: web.BaseRequest, message: Message, client: Client) -> web.StreamResponse:
        """Answer a request of a session, and write it down."""
        session = self._sessions.get(message.session)
        if session is None:  # closed while the request was read
            raise Refusal(_AGAIN)
        number = fingerprint("", message.session.decode())[:12]
        event = _EVENTS.get(message.kind, "")
        text = message.text.decode(errors="replace") if message.kind == messages.STATEMENT else ""
        noted = Request(event, {"token": client.name, "address": request.remote, "session": number}, text)
        try:
            with session.in_use():
                answer = await self._patiently(client, lambda worker: self._judged(worker, session, message, noted))
                try:
                    return await self._pass_on(request, answer, noted)
                finally:
                    answer.response.close()
                    if message.kind == messages.GOODBYE:
                        self._close(self._sessions.pop(message.session, None))
        except Refusal as refused:
            noted.facts["reason"] = refused.line
            raise
        finally:
            if noted.event:
                await self._audit.end(noted)

    async def _pass_on(self, request: web.BaseRequest, answer: _Answer, noted: Request) -> web.StreamResponse:
        """Send an answer to the client, piece by piece; a client that does not take one in time is let go."""
        response = web.StreamResponse(headers={"content-type": _TYPE})
        response.content_length = answer.response.content_length
        response.force_close()
        piece = answer.first
        end = "failed" if answer.message.kind == messages.ERROR else "answered"
        try:
            async with asyncio.timeout(self._limits.patience):
                await response.prepare(request)
            async with asyncio.timeout(self._limits.answer):
                while piece:
                    await response.write(piece)
                    piece = await answer.piece()
            if noted.outcome == "ended":
                noted.outcome = end
        except (TimeoutError, _Gone) as error:
            if request.transport is not None:
                request.transport.abort()  # half an answer is out: the client must see it end early
            raise ConnectionAbortedError from error
        return response

    async def _read(self, request: web.BaseRequest) -> tuple[Message, Client]:
        """A message of a client that has shown who it is."""
        length = request.content_length
        if request.method != "POST" or length is None:
            raise Refusal("a POST with a Content-Length is what is answered here", 411)
        if length > self._limits.statement:
            raise Refusal(f"the request has {length} bytes, {self._limits.statement} are allowed", 413)
        async with asyncio.timeout(self._limits.patience):
            body = bytearray()
            while len(body) < min(length, _INTRODUCTION) and not request.content.at_eof():
                body += await request.content.read(_INTRODUCTION - len(body))
            client = await self._known(request, bytes(body), length)
            self._strangers.pop(request.protocol, None)
            body += await request.content.read()
        message = Message.read(bytes(body))
        if not message.is_whole:
            raise self._not_passed_on(request, client, message, "a message that is cut off or has more after it")
        return message, client

    def _not_passed_on(self, request: web.BaseRequest, client: Client, message: Message, what: str) -> Refusal:
        """The refusal of a message, which is written down."""
        line = f"{what} is not answered here"
        facts = {"kind": message.kind, "outcome": "refused", "reason": line}
        self._audit.write("message", token=client.name, address=request.remote, **facts)
        return Refusal(line)

    def _close(self, session: Session | None) -> None:
        """Have the worker drop all that it keeps of a session that has ended."""
        if session is not None:
            self._supervisor.tell(session.generation, "close", session.number)

    async def _known(self, request: web.BaseRequest, start: bytes, length: int) -> Client:
        """Who sends a request that begins so; refuse it unless it shows a valid session or token."""
        message = Message.read(start)
        session = self._sessions.get(message.session)
        if session is not None and message.kind != messages.HELLO:
            if not self._tokens.current(session.client):
                self._close(self._sessions.pop(message.session))
                self._audit.write("failed token", token=session.client.name, address=request.remote)
                raise Refusal("the token was revoked or has expired; ask for another")
            if message.kind not in self._kinds:
                raise self._not_passed_on(request, session.client, message, f"a message of kind {message.kind}")
            return session.client
        if message.kind != messages.HELLO or length > _INTRODUCTION:
            raise Refusal(_AGAIN)
        return await self._admitted(message.text, request.remote or "")

    async def _admitted(self, token: bytes, address: str) -> Client:
        """Who sends a token; the more wrong ones an address has sent, the longer it waits."""
        client = self._tokens.cached(token)
        if client is None:
            await asyncio.sleep(self._failed.wait(address))
            async with self._verifying:
                client = await asyncio.to_thread(self._tokens.client, token)
        if client is None:
            self._failed.add(address)
            self._audit.write("failed token", token=self._tokens.name(token), address=address)
            raise Refusal("wrong token, or one that was revoked or has expired")
        return client

    async def _patiently(self, client: Client, ask: Callable[[Worker], Awaitable[_T]]) -> _T:
        """The worker's answer; asked once more when the worker went before the request can have had a part in it."""
        for again in (False, True):
            started = time.monotonic()
            async with self._places.place(client, self._limits.seconds or self._limits.patience):
                try:
                    worker = await self._supervisor.worker(_RESTART)
                except TimeoutError as error:
                    raise Refusal("the endpoint is being started again; ask again in a moment") from error
                with contextlib.suppress(_Gone):
                    return await ask(worker)
            await asyncio.sleep(_NOTICED)
            if again or time.monotonic() - started > _BARELY:
                break
        raise Refusal(
            "the endpoint was started again while this was asked; ask again" if worker.has_ended() else NO_MEMORY
        )

    async def _greeted(self, worker: Worker, client: Client, hello: Message) -> bytes:
        """The worker's answer to a hello; the session that it gives is remembered."""
        kept = hello.with_text(b"")
        self._close(self._sessions.make_room(client))
        greeting = await self._introduced(worker, client, kept)
        self._sessions[greeting.session] = Session(client, kept, worker.generation, greeting.session)
        return greeting.encode()

    async def _introduced(self, worker: Worker, client: Client, hello: Message) -> Message:
        """The worker's answer to a hello with its own token and the client's name in place of the client's token."""
        introduced = hello.with_text(worker.token + b" " + client.as_json().encode()).encode()
        for pause in _PAUSES:
            answer = await self._ask(worker, introduced)
            while piece := await answer.piece():
                answer = replace(answer, first=answer.first + piece)
            greeting = answer.message
            if greeting.kind == messages.GREETING:
                return greeting
            if greeting.kind == messages.ERROR and not greeting.says(messages.NOT_ADMITTED):
                raise Refusal(greeting.text.decode(errors="replace"))  # another version of Quack
            await asyncio.sleep(pause)  # its own token cannot be wrong: it had no memory to compare it
        raise Refusal(NO_MEMORY)

    async def _judged(self, worker: Worker, session: Session, message: Message, noted: Request) -> _Answer:
        """The worker's answer to a request of a session; one that it had no memory to read is sent again."""
        if session.generation != worker.generation:
            session.number = (await self._introduced(worker, session.client, session.hello)).session
            session.generation = worker.generation
        if noted.event == "statement":
            noted.key = fingerprint(session.number.decode(), noted.statement)
            self._audit.begin(noted)
        started = time.monotonic()
        for pause in _PAUSES:
            if time.monotonic() - started > self._limits.patience:
                break
            try:
                answer = await self._ask(worker, replace(message, session=session.number).encode())
            except asyncio.CancelledError:  # the client is gone
                self._supervisor.tell(session.generation, "cancel", session.number)
                raise
            # the worker's HTTP server reports a failed allocation outside of Quack's messages
            is_memory_error = answer.response.headers.get("EXCEPTION_WHAT") == "std::bad_alloc"
            if not is_memory_error and not answer.message.says(messages.NOT_READ):
                return answer
            answer.response.close()
            if is_memory_error:
                break
            await asyncio.sleep(pause)
        raise Refusal(NO_MEMORY)

    async def _ask(self, worker: Worker, body: bytes) -> _Answer:
        """The beginning of the worker's answer. A statement that the worker does not end in time ends the worker."""
        limit = self._limits.seconds + self._limits.grace if self._limits.seconds else None
        try:
            async with asyncio.timeout(limit):
                with _as_gone():
                    url = f"http://{LOOPBACK}:{worker.port}/quack"
                    response = await self._worker.post(url, data=body, headers={"content-type": _TYPE})
                    first = await response.content.readany()
        except TimeoutError as error:
            self._supervisor.replace(worker, f"a query ran for more than {self._limits.seconds:g} s")
            raise Refusal(f"the query took more than {self._limits.seconds:g} s and was ended") from error
        return _Answer(response, first)


@contextlib.contextmanager
def _as_gone() -> Iterator[None]:
    try:
        yield
    except (OSError, aiohttp.ClientError) as error:
        raise _Gone from error
