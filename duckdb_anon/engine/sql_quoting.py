"""SQL text of names, values and calls of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from duckdb_anon.model.errors import AnonError
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


_OPENING = "create or replace temp macro "


def sql_folder() -> Path:
    """Folder of the pure-SQL files: inside the installed package, or sql/ of a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if folder.is_dir():
            return folder
    raise AnonError(f"load: the folder sql/ is missing from the package {package.name}. Reinstall duckdb-anon")


@cache
def _macros() -> tuple[tuple[str, str], ...]:
    """(name, statement) of each macro of every file, in order. One begins where a line does."""
    found = []
    for file in sorted(sql_folder().glob("*.sql")):
        _, *statements = f"\n{file.read_text(encoding='utf-8')}".split(f"\n{_OPENING}")
        found += [(text[: text.index("(")], _OPENING + text[: text.rindex(";")]) for text in statements]
    return tuple(found)


def macro_statements(wrapped: set[str]) -> Iterator[tuple[str, str]]:
    """Statements that create every macro; those in `wrapped` get the name `_anon_NAME`."""
    for name, sql in _macros():
        yield name, sql.replace(f"{_OPENING}{name}(", f"{_OPENING}_anon_{name}(", 1) if name in wrapped else sql
