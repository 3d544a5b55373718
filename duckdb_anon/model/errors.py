"""The one family of errors users see.

Every message names the function, the bad value, what is allowed, the nearest match and what to do. Messages speak of
columns, parameters and counts; they never quote a value of the data. Each error has a `code`, a short name of its cause
that does not change with the wording; SQL shows it in brackets at the end of the message.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class AnonError(Exception):
    """Root of all errors raised on purpose by duckdb_anon.

    Attributes:
        code: what is wrong, as a short name in lower case with hyphens.
    """

    code = "refused"

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message)
        if code:
            self.code = code


class AnonWarning(UserWarning):
    """A call is answered, and its answer says less than it seems."""


class ParameterError(AnonError):
    """A parameter is missing, of the wrong type or out of range."""

    code = "bad-argument"


class ColumnError(AnonError):
    """A column does not exist, has no role, or has two."""

    code = "bad-column"


class RequirementError(AnonError):
    """The table cannot meet the required guarantee; the message gives what it can meet."""

    code = "requirement-not-met"


class RewriteError(AnonError):
    """A query contains something that cannot be estimated from the release."""

    code = "cannot-estimate"


def unexpected(function: str, error: Exception) -> str:
    """Message for an unforeseen error: where it happened, never its own message, which may contain data."""
    places = traceback.extract_tb(error.__traceback__)
    trail = " < ".join(f"{p.filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{p.lineno}" for p in places[:-5:-1])
    text = f"{function}: internal error ({type(error).__name__} at {trail}); nothing was written. Please report it"
    return with_code(text, "internal-error")


_DUCKDB = ("duckdb", "_duckdb")
_OF_NAMES = {
    "BinderException", "CatalogException", "ConnectionException", "DependencyException", "HTTPException",
    "InterruptException", "IOException", "NotImplementedException", "OutOfMemoryException", "ParserException",
    "PermissionException", "SyntaxException", "TransactionException",
}  # fmt: skip
"""DuckDB's errors that speak of tables, columns, types and files; others may quote values."""
_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:,\s*)?)*\)")
_OURS = re.compile(r"Invalid Input Error: \w[\w .]*: .* \[[a-z]+(?:-[a-z]+)*\]", re.DOTALL)


_NEWER_FILE = re.compile(r"IO Error: .*database file with (?:storage )?version number (\d+)")


def of_newer_file(error: Exception, file: str = "the file") -> str:
    """What to do about an error of DuckDB that says that a newer DuckDB wrote a file; '' for any other error."""
    found = _NEWER_FILE.match(str(error))
    if found is None or type(error).__module__.partition(".")[0] not in _DUCKDB:
        return ""
    return with_code(
        f"{file} has the storage version {found[1]} of a newer DuckDB, which this one does not read. Upgrade this "
        "DuckDB, or convert the file with the newer one: ATTACH 'FILE' AS old (READ_ONLY); ATTACH 'CONVERTED' AS new "
        "(STORAGE_VERSION 'v1.5.0'); COPY FROM DATABASE old TO new",
        "newer-file",
    )


def may_quote_values(error: Exception) -> bool:
    """Whether an error is DuckDB's and its message may quote values, as that of a cast that fails does.

    Kinds that speak of names only do not, nor do messages of this package, which end with a code.
    """
    kind = type(error)
    if kind.__module__.partition(".")[0] not in _DUCKDB or kind.__name__ in _OF_NAMES:
        return False
    return not (kind.__name__ == "InvalidInputException" and _OURS.fullmatch(str(error).split("\n\n", 1)[0]))


def without_values(error: Exception) -> str:
    """The message of an error; of DuckDB's that may quote values, what kind it is and how to see it."""
    if not may_quote_values(error):
        return of_newer_file(error) or _ENUM.sub("ENUM", str(error))
    return with_code(
        f"values could not be read or written ({type(error).__name__}); DuckDB's message is left out, as it may quote "
        "them. Run the query of the table or view alone in DuckDB to see it",
        "unreadable-values",
    )


def one_line(error: Exception) -> str:
    """`without_values` in one line, without the position in the statement, for other messages."""
    text = without_values(error).split("\nLINE ", 1)[0]
    return " ".join(text.split()).removeprefix("Invalid Input Error: ")


def cause_of(error: Exception) -> Exception | None:
    """What an error may be raised from: tracebacks print the message of what it is raised from, too."""
    return None if may_quote_values(error) else error


def of_function(function: str, error: Exception) -> str:
    """Message of an error, with the function's name first, which what lies below it does not know, and its code last.

    >>> of_function('muco', AnonError('the table is empty')), of_function('muco', ColumnError('muco: no rows'))
    ('muco: the table is empty [refused]', 'muco: no rows [bad-column]')
    """
    is_ours = isinstance(error, AnonError)
    text = str(error).removeprefix("Invalid Input Error: ") if is_ours else one_line(error)
    named = text if re.match(r"\w+: ", text) else f"{function}: {text}"
    return with_code(named, error.code if isinstance(error, AnonError) else "query-failed")


def reported(function: str, error: Exception) -> str:
    """Message of any error for a user; a traceback would show paths, and the message of others may show data."""
    is_known = isinstance(error, AnonError) or type(error).__module__.partition(".")[0] in _DUCKDB
    return of_function(function, error) if is_known else unexpected(function, error)


def with_code(message: str, code: str) -> str:
    """A message that ends with a code; the code it has, where it has one."""
    return message if _CODE.search(message) else f"{message} [{code}]"


def code_of(message: str) -> str:
    """The code at the end of the first line of a message; '' where there is none.

    >>> code_of("Invalid Input Error: muco: the table is empty [refused]")
    'refused'
    """
    found = _CODE.search(message.partition("\n")[0])
    return found[1] if found else ""


def without_code(error: Exception) -> str:
    """`one_line` without a code, for notes."""
    return _CODE.sub("", one_line(error))


_CODE = re.compile(r" \[([a-z]+(?:-[a-z]+)*)\]$")
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
    return with_code(f"{_planned.get()}: {text}" if _planned.get() else text, RewriteError.code)


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
