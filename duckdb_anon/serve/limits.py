"""What clients of an endpoint may use of the machine, and how the operating system enforces it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from duckdb_anon.model.errors import AnonError

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
# What a query may take beyond DuckDB's own accounting before the system says no: threads, the answer on its way out.
SLACK = 128 << 20


@dataclass(frozen=True)
class ServingLimits:
    """What analysts may use of the machine, all of them together unless said otherwise.

    Attributes:
        memory: as DuckDB writes it, '2GB': what the serving process may take beyond what it starts with, by DuckDB's
            accounting and by the operating system's; nothing is spilled to disk.
        threads: None leaves it to DuckDB.
        seconds: how long one statement may take, planning included; 0 for as long as it takes.
        statement: largest request in bytes; a statement's text is part of it.
        connections: how many clients may be connected at once.
        at_once: how many statements run at once; others wait their turn.
        patience: seconds a client has to say who it is and what it wants, and to take each piece of its answer.
        idle: seconds after which rows that a client does not fetch are dropped.
        sessions: how many one token may have open.
        answer: seconds a client has to take a page of an answer.
        grace: seconds after `seconds` in which a statement must have been ended; then the worker is.
    """

    memory: str = "2GB"
    threads: int | None = None
    seconds: float = 60.0
    statement: int = 256 << 10
    connections: int = 256
    at_once: int = 16
    patience: float = 10.0
    idle: float = 60.0
    sessions: int = 100
    answer: float = 30.0
    grace: float = 10.0

    @property
    def memory_bytes(self) -> int:
        """`memory` in bytes."""
        return bytes_of("--memory", self.memory)


def bytes_of(option: str, size: str) -> int:
    """Bytes of a size as DuckDB writes it.

    >>> bytes_of("--memory", "80MB"), bytes_of("--memory", "1.5 GiB")
    (80000000, 1610612736)

    Args:
        option: what to call it in messages.
        size: a number and a unit, KB, MB, GB, TB or KiB, MiB, GiB, TiB.

    Raises:
        AnonError: when it is no size above zero.
    """
    found = _SIZE.fullmatch(size)
    amount = 0.0 if found is None else float(found[1]) * (1024 if found[3] else 1000) ** _POWER[found[2].lower()]
    if amount < 1:
        raise AnonError(f"serve: {option} {size} is no amount of memory; write it as 500MB")
    return int(amount)


def bound_this_process(memory: int) -> bool:
    """Let this process take `memory` bytes more than it holds now; what asks for more is refused by the system.

    Private data is what counts (RLIMIT_DATA, which Linux applies to heaps and anonymous maps alike): an
    allocation of any size fails at once, whoever makes it, DuckDB's accounting or not.

    Returns:
        Whether the system enforces it; elsewhere than on Linux it does not, and only DuckDB's accounting is left.
    """
    in_use = _status("VmData")
    if in_use is None:
        return False
    import resource

    most = in_use + memory + SLACK
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    return True


def _status(name: str) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) * 1024 if values else None
