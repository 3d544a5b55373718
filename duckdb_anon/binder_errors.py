"""What is wrong with the arguments of a call that DuckDB's binder refused.

Functions are macros, and DuckDB checks the names and the number of a macro's arguments before anything of this package
runs: it lists all parameters and advises type casts. The outer rooms, which hold the statement, put `explained` in
place of that. It reads the statement and this package's own lists of parameters, never DuckDB's message. On a plain
Python connection DuckDB's words stand.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.errors import listed, nearest
from duckdb_anon.registry import ENTRIES

_SCALAR = {entry.name for entry in ENTRIES if getattr(entry, "scalar", False)}
_PARAMETERS = {entry.name: [p.name for p in parameters_of(entry)] for entry in ENTRIES}


def explained(message: str, statement: str) -> str:
    """Say which argument of a call in a refused statement is wrong.

    Args:
        message: text of the error.
        statement: the SQL that raised it.

    Returns:
        A message that names the argument and the nearest parameter; `message` where all arguments fit.

    Example:
        >>> explained("Binder Error: ...", "from muco('people', delte := 0.2)").split("; ")[0]
        "muco: there is no parameter 'delte' (did you mean 'delta'?)"
    """
    for call in _calls(statement):
        name = call.name.lower()
        if name in _SCALAR and isinstance(call.parent, exp.Table):
            return f"{name}: it gives one value and no rows, so it stands in SELECT: SELECT {name}(...)"
        wrong = _wrong(call.expressions, _PARAMETERS[name])
        if wrong:
            return f"{name}: {wrong}; it takes {listed(_PARAMETERS[name], len(_PARAMETERS[name]))}"
    return message


def _calls(statement: str) -> Iterator[exp.Anonymous]:
    """Calls of this package's functions, in the order of the text; none where sqlglot does not read it."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it warns of statements that it does not read
    try:
        trees = sqlglot.parse(statement, dialect="duckdb")
    except SqlglotError:
        return
    finally:
        logger.setLevel(level)
    for tree in trees:
        for call in tree.find_all(exp.Anonymous, bfs=False) if tree is not None else ():
            if call.name.lower() in _PARAMETERS:
                yield call


def _wrong(arguments: Sequence[exp.Expression], parameters: Sequence[str]) -> str:
    """What the arguments of one call violate, or ''."""
    names = [a.this.name.lower() if isinstance(a, (exp.PropertyEQ, exp.Kwarg)) else None for a in arguments]
    given = [name for name in names if name is not None]
    for name in given:
        if name not in parameters:
            return f"there is no parameter '{name}'{nearest(name, parameters)}"
    by_place = parameters[: names.count(None)]
    if names.count(None) > len(parameters):
        return f"there are {len(parameters)} parameters, and {names.count(None)} arguments without a name"
    twice = [name for name in given if name in by_place]
    if twice:
        return f"'{twice[0]}' is given twice, once by its place"
    if None in names[len(by_place) :]:
        return "arguments without a name come first"
    return ""
