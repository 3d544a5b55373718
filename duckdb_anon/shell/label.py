"""`.label TABLE`: suggest a role for each column, ask for confirmation, and write the comments at the end.

Nothing is written before all columns are confirmed. In a script the suggestions are printed and nothing is written: a
suggestion must not become a label unread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

import duckdb

from duckdb_anon.engine.column_roles import ROLES, role_of
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import nearest
from duckdb_anon.report.anon_profile import label_statement
from duckdb_anon.shell.render import wrapped

_HELP = f"Enter: accept; a role ({', '.join(ROLES)}); s: skip this column; q: quit, nothing is written.\n"


def label(con: duckdb.DuckDBPyConnection, table: str, out: TextIO, ask: Callable[[str], str] | None) -> list[str]:
    """Label a table; return the statements that were run."""
    proposed = con.execute(f"select statement, reason from label_statements({literal(table)})").fetchall()
    if not proposed:
        out.write(f"{table}: every column has a role already\n")
        return []
    if ask is None:
        wrapped([(statement, f"-- {reason}") for statement, reason in proposed], out)
        out.write("-- nothing was written: read these statements and run the correct ones\n")
        return []
    columns = con.execute(
        f"select column_name, looks_like, role, reason, comment from anon_profile({literal(table)}) "
    ).fetchall()
    out.write(_HELP)
    statements = []
    for name, looks_like, role, reason, comment in columns:
        if role is None or role_of(comment):
            continue
        answer = _answer(ask, f"{name}{f', {looks_like}' if looks_like else ''}: {role}? ({reason}) ", role, out)
        if answer is None:
            out.write("nothing was written\n")
            return []
        if answer:
            statements.append(label_statement(table, name, answer, comment or ""))
    for statement in statements:
        con.execute(statement)
    out.write("".join(f"{statement}\n" for statement in statements))
    return statements


def _answer(ask: Callable[[str], str], question: str, role: str, out: TextIO) -> str | None:
    """A role, '' for none, None to leave."""
    while True:
        try:
            given = ask(question).strip().lower()
        except EOFError:
            return None
        if given in ("", "y", "yes"):
            return role
        if given in ("s", "skip"):
            return ""
        if given in ("q", "quit"):
            return None
        fitting = [known for known in ROLES if known.startswith(given)]
        if len(fitting) == 1:
            return fitting[0]
        out.write(f"{given}: no role{nearest(given, ROLES)}. {_HELP}")
