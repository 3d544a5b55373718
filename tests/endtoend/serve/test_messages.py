"""What a client of its own sends to the endpoint: messages of every kind, other sessions' results, rows left behind."""

import http.client
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from duckdb_anon.serve import messages, tokens
from duckdb_anon.serve.messages import Message
from tests.endtoend.serve.conftest import worker_of


@dataclass
class Line:
    """A session, spoken in Quack's own messages."""

    address: str
    number: bytes = b""

    @classmethod
    def open(cls, address: str, token: str) -> "Line":
        texts = b"".join(bytes([place, 0, len(text)]) + text for place, text in ((2, b"v1.5.5"), (3, b"linux_amd64")))
        body = texts + b"\x04\x00\x01\x05\x00\x01" + messages.END
        line = cls(address)
        greeting = line.send(Message(messages.HELLO, body=body).with_text(token.encode()).encode())
        assert greeting.kind == messages.GREETING, greeting.body
        return cls(address, greeting.session)

    def send(self, data: bytes) -> Message:
        """The answer to some bytes; of no kind where they are no request."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("POST", "/quack", data)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        return Message.read(said) if answer.status == 200 else Message(messages.NONE)

    def say(self, kind: int, body: bytes) -> Message:
        return self.send(Message(kind, self.number, body=body).encode())

    def ask(self, sql: str) -> Message:
        return self.say(messages.STATEMENT, Message(messages.STATEMENT).with_text(sql.encode()).body)


@dataclass
class Served:
    """An endpoint with the tokens of two people."""

    address: str
    log: Path
    tokens: dict[str, str]
    worker: int

    def line(self, who: str) -> Line:
        return Line.open(self.address, self.tokens[who])


@pytest.fixture(scope="module")
def served(folder: Path, serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("messages")
    given = {name: tokens.add(place / "tokens", name) for name in ("alice", "bob")}
    options = ("--answer", "patients:boxes", "--memory", "300MB", "--tokens", str(place / "tokens"))
    with serve(folder / "releases.duckdb", "analyst", *options, "--audit", str(place / "audit")) as endpoint:
        yield Served(endpoint.uri.removeprefix("quack:"), place / "audit", given, worker_of(endpoint))


def result_of(answer: Message) -> bytes:
    """The body of a fetch of an answer's further rows."""
    assert answer.kind == 4, answer.text
    return b"\x01\x00" + answer.body[answer.body.rindex(b"\x05\x00") + 2 :]


def test_messages_of_every_kind_are_refused_and_noted_but_those_of_reading(served: Served) -> None:
    line = served.line("alice")
    question = "select count(*), avg(age) from patients"
    before = line.ask(question).body.rpartition(b"\x05\x00")[0]  # all but the number of the result
    inserted = b"\x01\x00\x04main\x02\x00\x08patients" + messages.END
    for kind in range(130):
        if kind not in messages.READING:
            assert line.say(kind, inserted).text.endswith(b"is not answered here"), kind
    noted = [json.loads(row) for row in served.log.read_text().splitlines()]
    kinds = [row["kind"] for row in noted if row["event"] == "message" and row["token"] == "alice"]
    assert kinds == [kind for kind in range(130) if kind not in messages.READING]
    whole = Message(messages.STATEMENT, line.number).with_text(b"select 1").encode()
    for end in range(len(whole)):
        assert line.send(whole[:end]).kind in (messages.NONE, messages.ERROR)
    assert line.send(whole + Message(messages.APPEND, line.number, body=inserted).encode()).kind == messages.ERROR
    assert line.ask(question).body.rpartition(b"\x05\x00")[0] == before


def test_result_of_a_session_is_fetched_by_no_other(served: Served) -> None:
    alice, bob = served.line("alice"), served.line("bob")
    result = result_of(alice.ask("select disease, unnest(range(20)) from patients"))
    assert bob.say(messages.FETCH, result).kind == messages.ERROR
    bob.ask("select 1")
    assert bob.say(messages.FETCH, result).kind == messages.ERROR
    assert alice.say(messages.FETCH, result).kind == 8


def test_memory_of_a_session_that_was_closed_is_free_at_once(served: Served) -> None:
    before, line = resident(served.worker), served.line("alice")
    result_of(line.ask("select disease || repeat('y', 1250), unnest(range(32)) from patients"))
    assert resident(served.worker) > before + 60
    assert line.say(messages.GOODBYE, messages.END).kind == 10
    deadline = time.monotonic() + 10  # of the 60 s after which rows are dropped that nobody fetches
    while resident(served.worker) > before + 30 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert resident(served.worker) < before + 30


def resident(process: int) -> float:
    """Megabytes of a process that are in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
