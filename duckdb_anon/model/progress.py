"""How far a running kernel has come: kernels say it, shells that have a terminal show it.

One note for the whole process, for display alone: with several kernels at once the last to speak is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """What runs, in which phase it is, and the share of the phase that is done (0 to 1, None: unknown)."""

    function: str
    phase: str
    share: float | None = None


_latest: Progress | None = None


@contextmanager
def running(function: str) -> Iterator[None]:
    """Note that `function` runs until the block ends, inside the one that was running, if any."""
    global _latest
    outer = _latest
    _latest = Progress(function if outer is None else f"{outer.function}, {function}", "reading")
    try:
        yield
    finally:
        _latest = outer


def say(phase: str, share: float | None = None) -> None:
    """Note the phase and its share done; nothing happens outside `running`.

    >>> with running('muco'):
    ...     say('groups', 0.5)
    ...     latest()
    Progress(function='muco', phase='groups', share=0.5)
    """
    global _latest
    if _latest is not None:
        _latest = Progress(_latest.function, phase, share)


def latest() -> Progress | None:
    """The last note, None while nothing runs."""
    return _latest
