"""The macros of sql/, found in a wheel or a checkout, one statement each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from duckdb_anon.model.errors import AnonError

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
