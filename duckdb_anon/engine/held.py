"""What Python holds between the calls that one statement makes of it, by number.

A statement that fails or is left half read leaves what it holds behind; it goes when its connection holds something
for another statement. Cost: none.
"""

from __future__ import annotations

import secrets
import threading
from typing import Any

Statement = tuple[int, int, int]
"""Number of the database instance, of the connection in it, and of the statement."""

_held: dict[int, tuple[Statement, Any]] = {}
_lock = threading.RLock()


def hold(statement: Statement, thing: object) -> int:
    """Hold something for the calls of `statement`; return its number."""
    with _lock:
        for number, (owner, _) in list(_held.items()):
            if owner[:2] == statement[:2] and owner != statement:
                del _held[number]
        number = 1 + secrets.randbits(62)  # SQL names what it wants by it: nobody guesses what another one holds
        _held[number] = statement, thing
        return number


def held(number: int) -> Any:
    """What is held by `number`."""
    with _lock:
        return _held[number][1]


def released(number: int) -> tuple[Statement, Any]:
    """Hold it no longer; return whose it was, and the thing."""
    with _lock:
        return _held.pop(number)
