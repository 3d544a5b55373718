"""The one family of errors users see.

Every message names the function, the bad value, what is allowed, the nearest match and what to do.
Messages speak of columns, parameters and counts; they never quote a value of the data.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class AnonError(Exception):
    """Root of all errors raised on purpose by duckdb_anon."""


class ParameterError(AnonError):
    """A parameter is missing, of the wrong type or out of range."""


class ColumnError(AnonError):
    """A column does not exist, has no role, or has two."""


class RequirementError(AnonError):
    """The table cannot meet the privacy requirement asked for; the message says what it can meet."""


class RewriteError(AnonError):
    """A query contains something that cannot be estimated from the release."""


def unexpected(function: str, error: Exception) -> str:
    """Message for an error nobody foresaw: where it happened, never what it said, which may hold data."""
    places = traceback.extract_tb(error.__traceback__)
    trail = " < ".join(f"{p.filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{p.lineno}" for p in places[:-5:-1])
    return f"{function}: internal error ({type(error).__name__} at {trail}); nothing was written. Please report it"


def of_function(function: str, error: Exception) -> str:
    """Message of an error, with the function's name first, which what lies below it does not know.

    >>> of_function('muco', AnonError('the table is empty')), of_function('muco', AnonError('muco: no rows'))
    ('muco: the table is empty', 'muco: no rows')
    """
    text = str(error).removeprefix("Invalid Input Error: ")
    return text if re.match(r"\w+: ", text) else f"{function}: {text}"


_planned: ContextVar[str] = ContextVar("planned", default="")


@contextmanager
def planning(function: str) -> Iterator[None]:
    """Let errors that generated SQL raises when it runs begin with `function`, until the block ends."""
    token = _planned.set(function)
    try:
        yield
    finally:
        _planned.reset(token)


def when_run(text: str) -> str:
    """Message of an error that SQL planned now may raise later."""
    return f"{_planned.get()}: {text}" if _planned.get() else text


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest of `known`, or the empty string.

    >>> nearest('agee', ['age', 'sex'])
    " (did you mean 'age'?)"
    """
    folded = {k.lower(): k for k in known}
    close = difflib.get_close_matches(str(word).lower(), list(folded), n=1, cutoff=0.5)
    return f" (did you mean '{folded[close[0]]}'?)" if close else ""


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Join `names` for a message, cutting long lists.

    >>> listed(['a', 'b'])
    'a, b'
    """
    names = list(names)
    text = ", ".join(names[:limit])
    return text + (f", ... ({len(names)} in all)" if len(names) > limit else "")
