"""What the front knows of Quack's messages: where the session's number stands, and how a worker says no."""

from __future__ import annotations

import re
from collections.abc import Iterable

import h11

SESSION = re.compile(rb"[0-9A-F]{32}")
# What a worker says to a wrong token: its frame carries the front's own messages to clients that know the token.
WRONG = b"\x15Authentication failed"
# What it says to a statement that it could not read: memory is short. It says both then, since it could not ask.
NOT_READ = b"\x14Authorization failed"
EXCEPTION = b"exception_what"  # header of its HTTP server's answer when a request ends in a C++ exception
SHORT = 1024  # bytes of an answer that may be one of these
LONGEST_LINE = 127  # what one byte of length can say


def frame_of(answer: Iterable[h11.Event]) -> tuple[bytes, bytes] | None:
    """What stands before and after the text of a worker's error; None where it is worded otherwise."""
    before, found, after = body_of(answer).partition(WRONG)
    return (before, after) if found else None


def is_unread(answer: Iterable[h11.Event], frame: tuple[bytes, bytes] | None) -> bool:
    """Whether a worker says in the frame of its errors, and in nothing that a query returned, that it read nothing."""
    return frame is not None and body_of(answer) == frame[0] + NOT_READ + frame[1]


def is_memory_error(head: h11.Event) -> bool:
    """Whether a worker's HTTP server reports a failed allocation, which it does outside of Quack's frame."""
    return isinstance(head, h11.Response) and dict(head.headers).get(EXCEPTION) == b"std::bad_alloc"


def body_of(answer: Iterable[h11.Event]) -> bytes:
    """The body of an answer."""
    return b"".join(bytes(event.data) for event in answer if isinstance(event, h11.Data))


def length_of(head: h11.Event) -> float:
    """Bytes of the body that a head announces; endless where it announces none."""
    given = dict(head.headers) if isinstance(head, h11.Response) else {}
    return float(given.get(b"content-length", b"inf"))


def session_given(answer: Iterable[h11.Event]) -> bytes | None:
    """The number a worker gave to a client that said hello."""
    found = SESSION.search(body_of(answer)[:128])
    return found[0] if found else None
