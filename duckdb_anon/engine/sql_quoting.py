"""The one place where names and values become SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CALLER = "caller: current_connection_id(), instance: _anon_instance()"
"""Fields of a call: its connection and database."""
STATEMENT = "statement: current_query_id()"
"""Field of a call: the statement for which Python stores rows between the calls."""


def ident(name: str) -> str:
    """Quote a column or table name.

    >>> print(ident('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """Quote a value: text, number, boolean, None or a list of those.

    >>> literal("it's"), literal([1, None])
    ("'it''s'", '[1, NULL]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def idents(names: Iterable[str]) -> str:
    """Quote several names, comma separated."""
    return ", ".join(ident(n) for n in names)


def planned(function: str, arguments: Mapping[str, str]) -> str:
    """SQL of the text that a call is planned as; what the planner objects to is raised."""
    given = ", ".join(f"{name}: {sql}" for name, sql in arguments.items()) or "none: NULL"
    schema = "database: current_database(), schema: current_schema()"
    call = f"{{function: '{function}', {CALLER}, {schema}, arguments: {{{given}}}}}"
    return f"list_transform([_anon_plan({call})], lambda _s: case when _s[1] = '!' then error(_s[2:]) else _s end)[1]"
