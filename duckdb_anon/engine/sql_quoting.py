"""SQL text of names, values and calls of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from duckdb_anon.model.quoting import ident as ident
from duckdb_anon.model.quoting import literal as literal

CALLER = "caller: current_connection_id(), instance: _anon_instance()"
"""Fields of a call: its connection and database."""
STATEMENT = "statement: current_query_id()"
"""Field of a call: the statement for which Python stores rows between the calls."""


def idents(names: Iterable[str]) -> str:
    """Quote several names, comma separated."""
    return ", ".join(ident(n) for n in names)


def planned(function: str, arguments: Mapping[str, str]) -> str:
    """SQL of the text that a call is planned as; what the planner objects to is raised."""
    given = ", ".join(f"{name}: {sql}" for name, sql in arguments.items()) or "none: NULL"
    schema = "database: current_database(), schema: current_schema()"
    call = f"{{function: '{function}', {CALLER}, {schema}, arguments: {{{given}}}}}"
    return f"list_transform([_anon_plan({call})], lambda _s: case when _s[1] = '!' then error(_s[2:]) else _s end)[1]"
