"""What is wrong with the arguments of a call that DuckDB's binder refused.

Functions are macros, and DuckDB checks the names and the number of a macro's arguments before anything of this package
runs: it lists all parameters and advises type casts. A table that the planner cannot see may be a temporary one, a CTE
or a DataFrame, so that it is DuckDB's binder, too, that finds out whether there is one. The outer rooms, which hold the
statement, put `explained` in place of these messages; on a plain Python connection DuckDB's own stand, which show the
call: a function around `execute` would hide the caller's DataFrames from DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import duckdb

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.errors import listed, nearest
from duckdb_anon.registry import ENTRIES

_REFUSED = re.compile(r"Macro \"?(\w+)\"?\(\) does not support the supplied arguments")
_MISSING = re.compile(r'Table with name "?(.+?)"? does not exist(?:.*\nDid you mean "([^"]+)")?')
_NO_ROWS = re.compile(r"Table Function with name \"?(\w+)\"? does not exist")
_INTERNAL = ("pg_", "duckdb_", "information_schema", "sqlite_", "pragma_")
_NAMED = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>\w+))\s*(?::=|=>)')
_SCALAR = {entry.name for entry in ENTRIES if getattr(entry, "scalar", False)}
_PARAMETERS = {entry.name: [p.name for p in parameters_of(entry)] for entry in ENTRIES}


def explained(message: str, statement: str) -> str:
    """Say what is wrong with a call's arguments, where a message of DuckDB's binder does not.

    Args:
        message: text of the error.
        statement: the SQL that raised it.

    Returns:
        The message, or one in its place that names the argument and the nearest parameter.

    Example:
        >>> refused = "Binder Error: Macro muco() does not support the supplied arguments. ..."
        >>> explained(refused, "from muco('people', delte := 0.2)").split("; ")[0]
        "muco: there is no parameter 'delte' (did you mean 'delta'?)"
    """
    missing = _MISSING.search(message)
    if missing is not None:
        return _without_table(missing[1], missing[2] or "", statement) or message
    no_rows = _NO_ROWS.search(message)
    if no_rows is not None and no_rows[1].lower() in _SCALAR:
        name = no_rows[1].lower()
        return f"{name}: it gives one value and no rows, so it stands in SELECT: SELECT {name}(...)"
    refused = _REFUSED.search(message)
    known = _PARAMETERS.get(refused.group(1).lower(), []) if refused else []
    if refused is None or not known:
        return message
    function = refused.group(1).lower()
    for arguments in _calls(statement, function):
        wrong = _wrong(arguments, known)
        if wrong:
            return f"{function}: {wrong}; it takes {listed(known, len(known))}"
    return message


def _without_table(table: str, near: str, statement: str) -> str:
    """Say which function's table is missing, or ''; `near` is the name DuckDB proposes."""
    masked, text = _masked(statement), statement.encode()
    function = ""
    for call in re.finditer(rb'(?<!\w)"?(\w+)"?\s*\(', masked):
        name = call[1].decode(errors="replace").lower()
        if name in _PARAMETERS and table.lower().encode() in text[call.start() :].lower():
            function = name
    if not function:
        return ""
    proposed = near.rsplit(".", 1)[-1]
    hint = f" (did you mean '{near}'?)" if near and not proposed.startswith(_INTERNAL) else ""
    return (
        f"{function}: there is no table '{table}'{hint}; give the name of a table or view, a file such as "
        "'people.parquet', or '(SELECT ...)'"
    )


def _wrong(arguments: Sequence[str], known: Sequence[str]) -> str:
    """What the arguments of one call violate, or ''."""
    names = [_name(argument) for argument in arguments]
    given = [name for name in names if name is not None]
    for name in given:
        if name not in known:
            return f"there is no parameter '{name}'{nearest(name, known)}"
    by_place = known[: names.count(None)]
    if names.count(None) > len(known):
        return f"there are {len(known)} parameters, and {names.count(None)} arguments without a name"
    twice = [name for name in given if name in by_place]
    if twice:
        return f"'{twice[0]}' is given twice, once by its place"
    if None in names[len(by_place) :]:
        return "arguments without a name come first"
    return ""


def _name(argument: str) -> str | None:
    found = _NAMED.match(argument)
    if found is None:
        return None
    return (found["plain"] or found["quoted"].replace('""', '"')).lower()


def _calls(statement: str, function: str) -> Iterator[list[str]]:
    """Arguments of each call of `function` as text, with the letters of constants and comments masked."""
    text = _masked(statement).decode()
    for call in re.finditer(rf'(?<!\w)"?{function}"?\s*\(', text, re.IGNORECASE):
        arguments, depth = [""], 0
        for letter in text[call.end() :]:
            if letter in ")]}" and depth == 0:
                break
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "," and depth == 0:
                arguments.append("")
            else:
                arguments[-1] += letter
        yield arguments if any(a.strip() for a in arguments) else []


def _masked(statement: str) -> bytes:
    """The statement with each letter of a text constant or a comment replaced by a space or an x."""
    text = statement.encode()  # DuckDB counts bytes
    tokens = duckdb.tokenize(statement)
    ends = [start for start, _ in tokens[1:]] + [len(text)]
    parts, done = [], 0
    for (start, kind), end in zip(tokens, ends, strict=True):
        parts.append(text[done:start])
        piece, done = text[start:end], end
        if kind == duckdb.token_type.comment:
            piece = b" " * len(piece)
        elif kind == duckdb.token_type.string_const:
            piece = b"x" * len(piece)
        parts.append(piece)
    return b"".join(parts)
