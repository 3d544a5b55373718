"""Objects that Python keeps between the calls that one SQL statement makes of it, by number.

A statement that fails or is read in part leaves its objects behind; they are dropped when the same connection stores
something for its next statement.
"""

from __future__ import annotations

import secrets
import threading
from typing import Any

Statement = tuple[int, int, int]
"""Number of the database instance, of the connection in it, and of the statement."""

_stored: dict[int, tuple[Statement, Any]] = {}
_lock = threading.RLock()


def put(statement: Statement, value: object) -> int:
    """Store an object for the calls of `statement`; return its number."""
    with _lock:
        for number, (owner, _) in list(_stored.items()):
            if owner[:2] == statement[:2] and owner != statement:
                del _stored[number]
        number = 1 + secrets.randbits(62)  # SQL names an object by its number, which other statements must not guess
        _stored[number] = statement, value
        return number


def get(number: int) -> Any:
    """The object stored under `number`."""
    with _lock:
        return _stored[number][1]


def pop(number: int) -> Any:
    """Remove the object stored under `number` and return it."""
    with _lock:
        return _stored.pop(number)[1]
