"""What passes between a running kernel and whoever waits for it: how far it has come, and that it is to stop.

Kernels report their phase with `say` and stop at a `tick`. The engine opens
a call with `running` and `stopped_by` its flag, which it sets when the user interrupts the call. Shells show `latest`.

A compiled function cannot raise and holds no GIL, so it gets the flag itself (`stop_flag()`) as an argument and looks
at it at least once in some ten million steps; where it is set it returns early, and the `tick` that follows raises. Its
loop must store into some array, or the compiler may read the flag once only. A kernel that starts threads takes the
flag before it starts them.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import AnonError


class Interrupted(AnonError):
    """The user stopped a running call."""


@dataclass(frozen=True)
class Progress:
    """What runs, in which phase it is, and the share of the phase that is done (0 to 1, None: unknown)."""

    function: str
    phase: str
    share: float | None = None


# One note of each block under way, in the order they began; blocks of several threads may end in any order. For
# display alone: the last to begin is displayed.
_notes: list[list[Progress]] = []
_flag: contextvars.ContextVar[IntArray] = contextvars.ContextVar("stop")


def new_flag() -> IntArray:
    """Return a flag that is not set: shape (1,), 0 to go on, 1 to stop."""
    return np.zeros(1, dtype=np.int64)


@contextmanager
def running(function: str) -> Iterator[None]:
    """Note that `function` runs until the block ends, inside the one that was running, if any."""
    note = [Progress(function if not _notes else f"{_notes[-1][0].function}, {function}", "reading")]
    _notes.append(note)
    try:
        yield
    finally:
        _notes[:] = [other for other in _notes if other is not note]


@contextmanager
def stopped_by(flag: IntArray) -> Iterator[None]:
    """Let `tick` and `stop_flag` look at `flag` on this thread until the block ends."""
    token = _flag.set(flag)
    try:
        yield
    finally:
        _flag.reset(token)


def say(phase: str, share: float | None = None) -> None:
    """Note the phase and its share done; nothing happens outside `running`. Ticks.

    >>> with running('muco'):
    ...     say('groups', 0.5)
    ...     latest()
    Progress(function='muco', phase='groups', share=0.5)
    """
    tick()
    if _notes:
        _notes[-1][0] = Progress(_notes[-1][0].function, phase, share)


def latest() -> Progress | None:
    """The last note, None while nothing runs."""
    return _notes[-1][0] if _notes else None


def stop_flag() -> IntArray:
    """The flag of the call that runs on this thread, shape (1,): not 0 once it is to stop; stays 0 outside a call."""
    flag = _flag.get(None)
    return new_flag() if flag is None else flag


def tick() -> None:
    """Go on, or not: called once a level, batch or round.

    >>> flag = new_flag()
    >>> with stopped_by(flag):
    ...     tick()
    ...     flag[0] = 1
    ...     try:
    ...         tick()
    ...     except Interrupted as stopped:
    ...         print(stopped)
    interrupted
    """
    flag = _flag.get(None)
    if flag is not None and flag[0] != 0:
        raise Interrupted("interrupted")
