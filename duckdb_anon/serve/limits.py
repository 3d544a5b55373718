"""What clients of an endpoint may use of the machine."""

from __future__ import annotations

from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
NO_MEMORY = "the endpoint is short of memory; ask again in a moment, or something shorter"


@dataclass(frozen=True)
class ServingLimits:
    """What analysts may use of the machine, all of them together unless said otherwise."""

    # bytes that the serving process may take beyond what it starts with, by DuckDB's accounting and by the operating
    # system's; nothing is spilled to disk
    memory: int = 2_000_000_000
    threads: int | None = None  # None leaves it to DuckDB
    seconds: float = 60.0  # that one statement may take, planning included; 0 for as long as it takes
    statement: int = 256_000  # bytes of the largest request; a statement's text is part of it
    connections: int = 256  # of clients at once
    idle: float = 60.0  # seconds after which rows that a client does not fetch are dropped
    at_once: int = 16  # statements that run at once; others wait their turn
    # seconds for a client to say who it is and what it wants, and to take each piece of an answer
    patience: float = 10.0
    sessions: int = 100  # that one token may have open
    answer: float = 30.0  # seconds for a client to take a page of an answer
    grace: float = 10.0  # seconds after `seconds` in which a statement must have ended; then the worker is ended
