"""What clients reach of an endpoint: a small bounded relay before the worker that holds the database.

A request says who sends it in its first bytes: the token when a client says hello, the number of its session
afterwards. Until these are seen nothing else of it is read; whoever does not show them in time is let go, first
come first when places are short. A known client's request is bounded in size and time. The relay holds no
database, so nothing that happens to the worker is felt here: a client whose session a new worker does not know is
introduced to it again, and a statement that had barely begun is asked again.

Framing is h11's; of Quack's own messages only the places of the token and of the session's number are known.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import h11

from duckdb_anon.serve import messages
from duckdb_anon.serve.limits import ServingLimits
from duckdb_anon.serve.supervisor import Supervisor, Worker

_HEAD = 16 << 10  # bytes of a request's head
_INTRODUCTION = 4 << 10  # bytes of a body in which the token or the session's number must show
_CHUNK = 64 << 10
_SESSIONS = 10_000
_BARELY = 1.0  # a statement whose worker went within this many seconds did not make it go, as a rule
_NOTICED = 0.3  # seconds within which the supervisor knows that a worker has ended
_NO_MEMORY = "the endpoint is short of memory; ask again in a moment, or something shorter"
_KEPT = (b"content-type", b"content-length", b"keep-alive", b"access-control-allow-origin", messages.EXCEPTION)
# Seconds before a statement or hello is asked again that a worker short of memory could not judge.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


class _Refused(Exception):
    """The request is answered with a status and a line of text: it is not passed on, or came to nothing."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status, self.line = status, line


class _Gone(Exception):
    """The worker closed the connection before it answered: it ended, or had no memory to read the request."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker


@dataclass
class _Session:
    """A client that has shown the token.

    Attributes:
        hello: the request with which it did, target and body.
        generation: which worker knows it.
        number: the number that worker gave it.
    """

    hello: _Request
    generation: int
    number: bytes


@dataclass(frozen=True)
class _Request:
    target: bytes
    content_type: bytes
    body: bytes


class Front:
    """The relay of one endpoint."""

    def __init__(self, supervisor: Supervisor, token: str, limits: ServingLimits) -> None:
        """Relay to the supervisor's worker what those who know `token` send, within `limits`.

        Args:
            supervisor: keeps the workers.
            token: what clients must send.
            limits: what they may use.
        """
        self._supervisor, self._token, self._limits = supervisor, token.encode(), limits
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()
        self._strangers: OrderedDict[asyncio.StreamWriter, None] = OrderedDict()
        self._connected = 0
        self._running = asyncio.Semaphore(limits.at_once)
        self._frame: tuple[bytes, bytes] | None = None

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Accept clients at an address from now on."""
        return await asyncio.start_server(self._client, host, port, limit=_CHUNK, backlog=self._limits.connections)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request, one answer."""
        self._connected += 1
        self._strangers[writer] = None
        if self._connected > self._limits.connections:
            # somebody who has not said yet who she is makes room, the one who has been silent for longest
            longest, _ = self._strangers.popitem(last=False)
            longest.transport.abort()
        try:
            await self._converse(reader, writer)
        except (OSError, h11.ProtocolError, TimeoutError):
            pass  # a client that went, was too slow, or does not speak the protocol
        finally:
            self._connected -= 1
            self._strangers.pop(writer, None)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        known = False
        try:
            request = await self._read(http, reader, writer)
            known = True
            async with contextlib.aclosing(self._answered(request)) as answer:
                async for event in answer:
                    await self._send(http, writer, event)
        except _Refused as refused:
            if http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                raise ConnectionAbortedError from refused  # half an answer is out: the client must see it end early
            status, kind, text = refused.status, b"text/plain", f"{refused.line}\n".encode()
            if known and self._frame is not None:
                line = refused.line.encode()[: messages.LONGEST_LINE]
                status, kind = 200, b"application/vnd.duckdb"
                text = self._frame[0] + bytes([len(line)]) + line + self._frame[1]
            head = [(b"content-type", kind), (b"content-length", b"%d" % len(text)), (b"connection", b"close")]
            for event in (h11.Response(status_code=status, headers=head), h11.Data(data=text), h11.EndOfMessage()):
                await self._send(http, writer, event)

    async def _send(self, http: h11.Connection, writer: asyncio.StreamWriter, event: h11.Event) -> None:
        data = http.send(event)
        if data:
            writer.write(data)
            async with asyncio.timeout(self._limits.patience):
                await writer.drain()

    async def _read(self, http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Request:
        """A request of a client that has shown who it is."""
        async with asyncio.timeout(self._limits.patience):
            head = await _next(http, reader)
            if not isinstance(head, h11.Request):
                raise _Refused(400, "not a request")
            given = dict(head.headers)
            length = given.get(b"content-length", b"")
            if head.method != b"POST" or not length or b"transfer-encoding" in given:
                raise _Refused(411, "a POST with a Content-Length is what is answered here")
            if len(length) > 15 or int(length) > self._limits.statement:
                raise _Refused(413, f"the request has {length.decode()} bytes, {self._limits.statement} are allowed")
            body = bytearray()
            while len(body) < min(int(length), _INTRODUCTION):
                body += await _data(http, reader)
            self._know(bytes(body[:_INTRODUCTION]), int(length))
            self._strangers.pop(writer, None)
            while len(body) < int(length):
                body += await _data(http, reader)
        return _Request(head.target, given.get(b"content-type", b"application/octet-stream"), bytes(body))

    def _know(self, start: bytes, length: int) -> None:
        """Refuse a request that shows neither the token nor a session's number in its first bytes."""
        if self._session_in(start) is None and not (length <= _INTRODUCTION and self._token_in(start) is not None):
            raise _Refused(401, "wrong token, or a session that has ended; connect again")

    def _session_in(self, start: bytes) -> bytes | None:
        found = messages.SESSION.search(start[:128])
        return found[0] if found and found[0] in self._sessions else None

    def _token_in(self, start: bytes) -> int | None:
        """Where the token stands; every place is compared, in the same time."""
        size = len(self._token)
        places = [k for k in range(len(start) - size + 1) if hmac.compare_digest(start[k : k + size], self._token)]
        return places[0] if places else None

    async def _answered(self, request: _Request) -> AsyncGenerator[h11.Event, None]:
        """The worker's answer, event by event."""
        for again in (False, True):
            started = time.monotonic()
            try:
                async with self._running:
                    async for event in self._relayed(request):
                        yield event
                return
            except _Gone as gone:
                await asyncio.sleep(_NOTICED)
                if again or time.monotonic() - started > _BARELY:
                    if not gone.worker.has_ended():
                        raise _Refused(503, _NO_MEMORY) from gone
                    break
        raise _Refused(503, "the endpoint was started again while this was asked; ask again")

    async def _relayed(self, request: _Request) -> AsyncGenerator[h11.Event, None]:
        try:
            worker = await self._supervisor.worker(self._limits.patience)
        except TimeoutError as error:
            raise _Refused(503, "the endpoint is being started again; ask again in a moment") from error
        number = self._session_in(request.body[:_INTRODUCTION])
        if number is None:
            if self._frame is None:
                # once an endpoint: what the worker says to a token that is not its own shows how to say no
                self._frame = messages.frame_of([event async for event in self._exchange(worker, request)])
            answer = await self._greeted(worker, request)
            self._remember(request, worker, answer)
        else:
            session = self._sessions[number]
            self._sessions.move_to_end(number)
            if session.generation != worker.generation:
                await self._introduce(session, worker)
            passed = _Request(request.target, request.content_type, request.body.replace(number, session.number, 1))
            async for event in self._judged(worker, passed):
                yield event
            return
        for event in answer:
            yield event

    def _introduced(self, hello: _Request, worker: Worker) -> _Request:
        """A hello with the worker's own token in place of the clients'."""
        place = self._token_in(hello.body)
        if place is None:
            raise _Refused(401, "the session has ended; connect again")
        body = hello.body[:place] + worker.token + hello.body[place + len(worker.token) :]
        return _Request(hello.target, hello.content_type, body)

    def _remember(self, hello: _Request, worker: Worker, answer: list[h11.Event]) -> None:
        found = messages.session_given(answer)
        if found is not None:
            self._sessions[found] = _Session(hello, worker.generation, found)
            while len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)

    async def _introduce(self, session: _Session, worker: Worker) -> None:
        """Say a client's hello again, to a worker that does not know it."""
        found = messages.session_given(await self._greeted(worker, session.hello))
        if found is None:
            raise _Refused(401, "the session has ended; connect again")
        session.number, session.generation = found, worker.generation

    async def _greeted(self, worker: Worker, hello: _Request) -> list[h11.Event]:
        """The worker's answer to a hello with its own token, which cannot be wrong."""
        request = self._introduced(hello, worker)
        for pause in _PAUSES:
            answer = [event async for event in self._exchange(worker, request)]
            if messages.WRONG not in messages.body_of(answer) and not messages.is_memory_error(answer[0]):
                return answer
            await asyncio.sleep(pause)
        raise _Refused(503, _NO_MEMORY)

    async def _judged(self, worker: Worker, request: _Request) -> AsyncGenerator[h11.Event, None]:
        """The worker's answer to a statement; one that it had no memory to read is sent again."""
        started = time.monotonic()
        for pause in _PAUSES:
            if time.monotonic() - started > self._limits.patience:
                break
            async with contextlib.aclosing(self._exchange(worker, request)) as events:
                held = [await anext(events)]
                if messages.length_of(held[0]) <= messages.SHORT:
                    held += [event async for event in events]
                if messages.is_memory_error(held[0]):
                    break
                if not messages.is_unread(held, self._frame):
                    for event in held:
                        yield event
                    async for event in events:
                        yield event
                    return
            await asyncio.sleep(pause)
        raise _Refused(503, _NO_MEMORY)

    async def _exchange(self, worker: Worker, request: _Request) -> AsyncGenerator[h11.Event, None]:
        """Send a request to the worker; its answer, event by event. A statement that takes too long ends the worker.

        Raises:
            _Gone: when the worker went before its answer began.
        """
        limit = self._limits.seconds or None
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", worker.port)
            http = h11.Connection(h11.CLIENT)
            headers = [
                (b"host", b"localhost"), (b"content-type", request.content_type),
                (b"content-length", b"%d" % len(request.body)), (b"connection", b"close"),
            ]  # fmt: skip
            asked: tuple[h11.Event, ...] = (
                h11.Request(method=b"POST", target=request.target, headers=headers),
                h11.Data(data=request.body),
                h11.EndOfMessage(),
            )
            for event in asked:
                writer.write(http.send(event) or b"")
            async with asyncio.timeout(limit):
                head = await _next(http, reader)
                if not isinstance(head, h11.Response):
                    raise _Gone(worker)
            kept = [(name, value) for name, value in head.headers if name in _KEPT]
            yield h11.Response(status_code=head.status_code, headers=[*kept, (b"connection", b"close")])
            while True:
                async with asyncio.timeout(limit):
                    event = await _next(http, reader)
                yield event
                if isinstance(event, h11.EndOfMessage):
                    return
        except TimeoutError as error:
            self._supervisor.replace(worker, f"a query ran for more than {self._limits.seconds:g} s")
            raise _Refused(504, f"the query took more than {self._limits.seconds:g} s and was ended") from error
        except (OSError, h11.ProtocolError) as error:
            raise _Gone(worker) from error
        finally:
            if writer is not None:
                writer.transport.abort()


async def _next(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    """The next event of a connection."""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.Event):
            return event
        else:
            raise ConnectionResetError


async def _data(http: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    event = await _next(http, reader)
    if not isinstance(event, h11.Data):
        raise ConnectionResetError
    return bytes(event.data)
