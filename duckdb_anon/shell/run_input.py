"""The input of a plan compared with that of its last run: empty tables and much smaller ones end a nightly run.

`[input] shrink = 0.2` allows a table to lose a fifth of its rows (the default). Columns that are renamed, retyped or
moved since then are named. Cost: a count of each table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.parameters import Parameter

FIELD, FIELDS = "input", ("shrink",)
SHRINK = Parameter(
    "shrink", "largest share of its rows that a table may lose between two runs", "number", 0.2, low=0, high=1
)


_ROWS = re.compile(r".*\.(parquet|csv|tsv|json|ndjson)(\.(gz|zst))?$", re.IGNORECASE)


def is_file_of_rows(path: str) -> bool:
    """Whether a file holds the rows of one table, by its name."""
    return _ROWS.match(path) is not None


def input_of(con: duckdb.DuckDBPyConnection, names: Mapping[str, Any]) -> dict[str, Any]:
    """Rows and columns of each table of a plan, as the state file keeps them."""
    found = {}
    for name in names:
        [(rows,)] = con.execute(f"select count(*) from {ident(name)}").fetchall()
        columns = [[column, kind] for column, kind, *_ in con.execute(f"describe {ident(name)}").fetchall()]
        found[name] = {"rows": rows, "columns": columns}
    return found


def too_small(now: Mapping[str, Any], before: Mapping[str, Any], shrink: float) -> list[str]:
    """A line for each table that is empty, or has lost more than a share of its rows since the last run."""
    lines = []
    for name, table in now.items():
        rows, earlier = table["rows"], before.get(name, {"rows": 0})["rows"]
        if not rows:
            lines.append(f"{name}: the input has no rows")
        elif rows < (1 - shrink) * earlier:
            lines.append(
                f"{name}: the input has {rows} rows and had {earlier} at the last run. [input] shrink = {shrink:g} "
                "allows less; set a larger share, up to 1, if they were removed on purpose"
            )
    return lines


def changed_columns(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """A line for each table whose columns are others than at the last run."""
    lines = []
    for name in now.keys() & before.keys():
        new, old = ({column: kind for column, kind in tables[name]["columns"]} for tables in (now, before))
        parts = [f"'{column}' is gone" for column in old if column not in new]
        parts += [f"'{column}' is new" for column in new if column not in old]
        both = [column for column in new if column in old]
        parts += [f"'{column}' is {new[column]}, was {old[column]}" for column in both if new[column] != old[column]]
        if both != [column for column in old if column in new]:
            parts.append("columns have another order")
        lines += [f"{name}: changed since the last run: {', '.join(parts)}"] if parts else []
    return sorted(lines)
