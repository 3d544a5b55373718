"""Quack's messages as the front reads and writes them: kind, session, and the text that a body begins with.

Only kinds that are listed here are passed on, and only whole: what a later Quack adds is refused until it is read here.

A message is a header and a body. Both are fields in DuckDB's binary serialization: two bytes with the number of the
field, its value; 0xFFFF ends the list. Header: 1 kind, 2 session (absent in a hello), 3 number of the query at the
client. Field 1 of the bodies read here is a text: a hello's token, a statement's SQL, the words of an error.
Source: quack_message.json of the Quack extension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NONE, HELLO, GREETING, STATEMENT, FETCH, APPEND, GOODBYE, ERROR = 0, 1, 2, 3, 7, 9, 11, 100
READING = frozenset((HELLO, STATEMENT, FETCH, GOODBYE))
"""What a client sends who reads."""
WRITING = READING | {APPEND}
"""What a client sends who also inserts rows; such messages pass no authorization in Quack."""
NOT_ADMITTED = b"Authentication failed"
"""Error of a worker to a wrong token."""
NOT_READ = b"Authorization failed"
"""Error of a worker that had no memory to ask whether a statement is allowed."""
END = b"\xff\xff"
"""The end of a list of fields; a body without a field."""
_NO_QUERY = b"\x03\x00" + b"\xff" * 9 + b"\x01" + END


class MalformedError(Exception):
    """This is no message of Quack."""


@dataclass(frozen=True)
class Message:
    """A message, of which what is not read stays as it came."""

    kind: int
    session: bytes = b""  # empty for a hello
    query: bytes = _NO_QUERY  # the rest of the header
    body: bytes = END  # everything after the header

    @classmethod
    def read(cls, data: bytes) -> Message:
        """Read the header; the body may be incomplete."""
        if data[:2] != b"\x01\x00":
            raise MalformedError
        kind, place = _number(data, 2)
        session = b""
        if data[place : place + 2] == b"\x02\x00":
            session, place = _text(data, place + 2)
        rest = place
        if data[place : place + 2] == b"\x03\x00":
            _, place = _number(data, place + 2)
        if data[place : place + 2] != END:
            raise MalformedError
        return cls(kind, session, data[rest : place + 2], data[place + 2 :])

    def encode(self) -> bytes:
        """The bytes of the message."""
        session = b"\x02\x00" + _sized(self.session) if self.session else b""
        return b"\x01\x00" + _varint(self.kind) + session + self.query + self.body

    @property
    def text(self) -> bytes:
        """The text that the body begins with; empty where it is absent."""
        return _text(self.body, 2)[0] if self.body[:2] == b"\x01\x00" else b""

    @property
    def is_whole(self) -> bool:
        """Whether a message of a client who reads has the fields of its kind and nothing after them."""
        try:
            place = 0
            if self.kind == STATEMENT:
                place = _text(self.body, _field(self.body, 1))[1]
            elif self.kind == FETCH:  # the number of a result, in two halves
                place = _number(self.body, _number(self.body, _field(self.body, 1))[1])[1]
            return self.body.endswith(END) if self.kind in (HELLO, APPEND) else self.body[place:] == END
        except MalformedError:
            return False

    def says(self, text: bytes) -> bool:
        """Whether it is an error of these words; the body may be incomplete."""
        return self.kind == ERROR and self.body.startswith(b"\x01\x00" + _sized(text))

    def with_text(self, text: bytes) -> Message:
        """The same message with another text."""
        rest = self.body[_text(self.body, 2)[1] :] if self.body[:2] == b"\x01\x00" else self.body
        return replace(self, body=b"\x01\x00" + _sized(text) + rest)


def error(words: str) -> bytes:
    """A message that a client reports as an error."""
    return Message(ERROR).with_text(words.encode()).encode()


def _field(data: bytes, number: int) -> int:
    """The place after the number of the first field, which must be this."""
    if data[:2] != bytes((number, 0)):
        raise MalformedError
    return 2


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        value |= (data[place] & 0x7F) << shift
        place += 1
        if not data[place - 1] & 0x80:
            return value, place
    raise MalformedError


def _text(data: bytes, place: int) -> tuple[bytes, int]:
    size, place = _number(data, place)
    if place + size > len(data):
        raise MalformedError
    return data[place : place + size], place + size


def _sized(text: bytes) -> bytes:
    return _varint(len(text)) + text


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
