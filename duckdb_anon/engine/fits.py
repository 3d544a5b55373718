"""A call that will not fit says so before it starts, with the command that will work.

Two bounds: memory (`memory`), against DuckDB's own `memory_limit`, and the int32 offsets of the list that numbers the
released rows. Rows are estimated first, as DuckDB's planner does, and counted only where the estimate is too large.
Cost: one EXPLAIN, and for large tables with texts a look at a thousand rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.calls import argument_text
from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.memory import needed, size_of, written
from duckdb_anon.engine.quoting import ident
from duckdb_anon.engine.whole import will_run
from duckdb_anon.model.cells import Counts
from duckdb_anon.model.description import value_text
from duckdb_anon.model.entries import ColumnPlan, Method, Roles
from duckdb_anon.model.errors import RequirementError

MOST_ENTRIES = 2**31 - 1
"""Offsets of arrow's lists are int32."""

_SMALL, _SEEN = 20_000, 1000  # rows of a table whose texts are not looked at, and those that are of others
_FILTER = 5  # of so many rows DuckDB guesses that a filter lets one through


def require_fit(
    entry: Method, catalog: Catalog, relation: Relation, roles: Roles, arguments: Mapping[str, Any],
    layout: Sequence[ColumnPlan] = (),
) -> None:  # fmt: skip
    """Refuse a call that would not fit.

    Args:
        entry: the method.
        catalog: what the planner can see.
        relation: its table.
        roles: its columns by role.
        arguments: of the call, to be written again.
        layout: its released columns.

    Raises:
        RequirementError: naming the rows, the estimate, and what to do.
    """
    if not will_run() or catalog.cursor is None or not relation.visible:
        return
    columns = len(roles.qi) + len(roles.sensitive) + (roles.person is not None)
    limit = _memory_limit(catalog.cursor)
    guessed = _FILTER * _estimated_rows(catalog.cursor, relation)
    text = text_of(catalog.cursor, relation, roles) if guessed > _SMALL else 0.0
    counted = counts_in(layout)

    def taken(rows: int) -> int:
        return needed(rows, columns, text, counted)

    if taken(guessed) > limit or guessed > MOST_ENTRIES:
        rows = _rows(catalog.cursor, relation)
        if taken(rows) > limit or rows > MOST_ENTRIES:
            raise RequirementError(_told(entry, catalog, relation, rows, taken(rows), limit, arguments))


def text_of(cursor: duckdb.DuckDBPyConnection, relation: Relation, roles: Roles) -> float:
    """Bytes of text in a row, all columns with a role together, as the first rows have them.

    Args:
        cursor: on the caller's database.
        relation: the table.
        roles: its columns by role.
    """
    infos = {info.name: info for info in (*roles.qi, *roles.sensitive, *roles.keep)}
    texts = [name for name in infos if relation.columns.get(name) in ("VARCHAR", "BLOB")]
    if not texts:
        return 0.0
    size = " + ".join(f"coalesce(octet_length({ident(name)}::blob), 0)" for name in texts)
    try:
        found = cursor.execute(f"select avg({size}) from (from {relation.sql} limit {_SEEN})").fetchall()[0][0]
    except duckdb.Error:
        return 0.0  # the call itself will say what is wrong
    return float(found or 0.0)


def counts_in(layout: Sequence[ColumnPlan]) -> bool:
    """Whether a release has counts of the values of a bucket."""
    return any(plan.cells is Counts for plan in layout)


def _told(
    entry: Method, catalog: Catalog, relation: Relation, rows: int, takes: int, limit: int,
    arguments: Mapping[str, Any],
) -> str:  # fmt: skip
    why = (
        f"takes about {written(takes)} in one call, and memory_limit is {written(limit)}"
        if takes > limit
        else f"is more than the {MOST_ENTRIES:,} that one call can number"
    )
    said = f"{entry.name}: {relation.given} has {rows:,} rows, which {why}"
    if entry.parts is None:
        return (
            f"{said}. {entry.name} decides for the table as a whole, so it cannot be worked in parts; raise "
            "memory_limit, or call it on fewer rows or columns"
        )
    memory = written(max(400_000_000, limit * 3 // 4)).replace(" ", "")
    call = call_text(entry, arguments)
    file = _file(catalog)
    remedy = f'duckdb-anon release {file} NAME "{call}" --memory {memory}' if file else ""
    api = f"duckdb_anon.release(con, 'NAME', \"{call}\", memory='{memory}')"
    return f"{said}. Work in parts: " + (f"{remedy}, or in Python {api}" if remedy else api)


def call_text(entry: Method, arguments: Mapping[str, Any]) -> str:
    """A call as it was given."""
    given = [value_text(arguments["tbl"])]
    given += [f"{name} := {argument_text(v)}" for name, v in arguments.items() if name != "tbl" and v is not None]
    return f"{entry.name}({', '.join(given)})"


def _memory_limit(cursor: duckdb.DuckDBPyConnection) -> int:
    return size_of("memory_limit", cursor.execute("select current_setting('memory_limit')").fetchall()[0][0])


def _file(catalog: Catalog) -> str:
    if catalog.cursor is None:
        return ""
    found = catalog.cursor.execute(
        "select path from duckdb_databases() where database_name = ?", [catalog.database]
    ).fetchall()
    return str(found[0][0] or "") if found else ""


def _estimated_rows(cursor: duckdb.DuckDBPyConnection, relation: Relation) -> int:
    """Rows as DuckDB's planner estimates them; 0 where it does not say."""
    try:
        text = cursor.execute(f"explain (format json) from {relation.sql}").fetchall()[0][1]
        found = json.loads(text)[0].get("extra_info", {}).get("Estimated Cardinality", "0")
    except (duckdb.Error, ValueError, LookupError):
        return 0
    digits = "".join(letter for letter in str(found) if letter.isdigit())
    return int(digits or 0)


def _rows(cursor: duckdb.DuckDBPyConnection, relation: Relation) -> int:
    return int(cursor.execute(f"select count(*) from {relation.sql}").fetchall()[0][0])
