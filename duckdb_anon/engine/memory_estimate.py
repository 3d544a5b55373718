"""A call that will not fit in memory is refused before it starts, with the command that will work.

The estimate is rows times columns, compared with DuckDB's own `memory_limit`; long texts are not part of it. Rows are
estimated by DuckDB's planner first, and counted only where that estimate is too large. Cost: one EXPLAIN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import duckdb

from duckdb_anon.engine.arrow import MOST_ROWS
from duckdb_anon.engine.catalog.catalog import Catalog, Relation
from duckdb_anon.engine.records.call_text import will_run
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.function_specs import Method, Roles
from duckdb_anon.model.quoting import literal

ROW_BYTES, VALUE_BYTES = 120, 50
"""What a row and a coded value in it take: DuckDB's copy, the coded column, the kernel's copies, the released row."""
_FILTER = 5  # DuckDB's planner guesses that a filter keeps one row in five
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def needed(rows: int, columns: int) -> int:
    """Bytes that one call takes, for its coded columns.

    >>> needed(1_000_000, 8)
    520000000
    """
    return rows * (ROW_BYTES + VALUE_BYTES * columns)


def rows_within(memory: int, columns: int) -> int:
    """Rows of one call that takes at most so many bytes."""
    return memory // needed(1, columns)


def require_fit(
    entry: Method, catalog: Catalog, relation: Relation, roles: Roles, arguments: Mapping[str, Any]
) -> None:
    """Refuse a call whose table would not fit."""
    if not will_run() or not relation.visible:
        return
    columns = len(roles.coded)
    limit = size_of(catalog.cursor.execute("select current_setting('memory_limit')").fetchall()[0][0])
    most = min(rows_within(limit, columns), MOST_ROWS)
    if _FILTER * _estimated_rows(catalog.cursor, relation) <= most:
        return
    rows = int(catalog.cursor.execute(f"select count(*) from {relation.sql}").fetchall()[0][0])
    if rows <= most:
        return
    size = needed(rows, columns)
    why = f"takes about {written(size)} in one call, and memory_limit is {written(limit)}"
    if size <= limit:
        why = f"is more than the {MOST_ROWS:,} that one call can number"
    remedy = _remedy(entry, catalog, limit, arguments)
    raise RequirementError(f"{entry.name}: {relation.given} has {rows:,} rows, which {why}. {remedy}")


def _remedy(entry: Method, catalog: Catalog, limit: int, arguments: Mapping[str, Any]) -> str:
    if entry.parts is None:
        return (
            f"{entry.name} decides for the table as a whole, so it cannot be worked in parts. Raise memory_limit, or "
            "call it on fewer rows or columns"
        )
    memory = written(max(400_000_000, limit * 3 // 4)).replace(" ", "")
    given = [literal(arguments["tbl"])]
    given += [f"{name} := {literal(v)}" for name, v in arguments.items() if name != "tbl" and v is not None]
    call = f"{entry.name}({', '.join(given)})"
    api = f"duckdb_anon.release(con, 'NAME', \"{call}\", memory='{memory}')"
    file = _file(catalog)
    command = f'duckdb-anon release {file} NAME "{call}" --memory {memory}, or in Python ' if file else ""
    return f"Work in parts: {command}{api}"


def _file(catalog: Catalog) -> str:
    query = "select path from duckdb_databases() where database_name = ?"
    found = catalog.cursor.execute(query, [catalog.database]).fetchall()
    return str(found[0][0] or "") if found else ""


def _estimated_rows(cursor: duckdb.DuckDBPyConnection, relation: Relation) -> int:
    """Rows as DuckDB's planner estimates them; 0 where it does not."""
    try:
        text = cursor.execute(f"explain (format json) from {relation.sql}").fetchall()[0][1]
        found = json.loads(text)[0].get("extra_info", {}).get("Estimated Cardinality", "0")
    except (duckdb.Error, ValueError, LookupError):
        return 0
    return int("".join(filter(str.isdigit, str(found))) or 0)


def size_of(text: str | int, where: str = "release: memory :=") -> int:
    """Read an amount of memory, as parameters and options name it.

    >>> size_of("2GB"), size_of("1.5 GiB"), size_of("512m")
    (2000000000, 1610612736, 512000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?|)(?:B|BYTES?)?\s*", str(text).upper())
    size = 0 if found is None else int(float(found[1]) * _UNITS[found[2]])
    if size < 1:
        raise ParameterError(
            f"{where} {text!r} is not an amount of memory. Write it as '512MB', '2 GiB' or '2G'".lstrip()
        )
    return size


def written(size: float) -> str:
    """An amount of memory as text.

    >>> written(2_340_000_000), written(81_000_000)
    ('2.3 GB', '81 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"
