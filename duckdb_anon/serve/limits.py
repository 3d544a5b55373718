"""What clients of an endpoint may use of the machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServingLimits:
    """What analysts may use of the machine, all of them together unless said otherwise.

    Attributes:
        memory: bytes that the serving process may take beyond what it starts with, by DuckDB's accounting and by the
            operating system's; nothing is spilled to disk.
        threads: None leaves it to DuckDB.
        seconds: how long one statement may take, planning included; 0 for as long as it takes.
        statement: largest request in bytes; a statement's text is part of it.
        connections: how many clients may be connected at once.
        idle: seconds after which rows that a client does not fetch are dropped.
        at_once: how many statements run at once; others wait their turn.
        patience: seconds a client has to say who it is and what it wants, and to take each piece of its answer.
        sessions: how many one token may have open.
        answer: seconds a client has to take a page of an answer.
        grace: seconds after `seconds` in which a statement must have been ended; then the worker is.
    """

    memory: int = 2_000_000_000
    threads: int | None = None
    seconds: float = 60.0
    statement: int = 256_000
    connections: int = 256
    idle: float = 60.0
    at_once: int = 16
    patience: float = 10.0
    sessions: int = 100
    answer: float = 30.0
    grace: float = 10.0
