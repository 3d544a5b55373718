"""The input of a plan: read, cleaned, and compared with that of its last run.

`[cleaning.TABLE]` gives columns the SQL expression that cleans them, as `anon_dirt` proposes it; how many values become
NULL is told. Empty tables and much smaller ones end a nightly run: `[input] shrink = 0.2` allows a table to lose a
fifth of its rows (the default). Columns that are renamed, retyped or moved are named. `[hierarchies]` has calls that
make tables for labels, "quasi hierarchy=NAME". Cost: a count of each table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, cause_of, one_line
from duckdb_anon.model.parameters import Parameter
from duckdb_anon.model.toml_files import require_known
from duckdb_anon.outputs.policy import with_policy
from duckdb_anon.report.linked_release import comments

FIELD, FIELDS = "input", ("shrink",)
SHRINK = Parameter(
    "shrink", "largest share of its rows that a table may lose between two runs", "number", 0.2, low=0, high=1
)


_ROWS = re.compile(r".*\.(parquet|csv|tsv|json|ndjson)(\.(gz|zst))?$", re.IGNORECASE)


def is_file_of_rows(path: str) -> bool:
    """Whether a file holds the rows of one table, by its name."""
    return _ROWS.match(path) is not None


def read_table(
    con: duckdb.DuckDBPyConnection, name: str, folder: Path, source: str, cleaning: Mapping[str, str]
) -> list[str]:
    """Create a table of a plan from a file DuckDB reads, or from TABLE of a database, 'people.duckdb:people'.

    `cleaning`: expression of each column that is cleaned. Returns a line for each that has fewer values then.
    """
    made = ident(name)
    if ".duckdb:" not in source:
        con.execute(f"create table {made} as from {literal(str(folder / source))}")
    else:
        with _attached(con, folder, source, "read_only") as table:
            con.execute(f"create table {made} as from {table}")
            write_comments(con, made, None, comments(con, table)[1])
    if not cleaning:
        return []
    lost = losses(con, name, cleaning)
    kept = comments(con, made)[1]
    con.execute(f"alter table {made} rename to _anon_raw")
    con.execute(f"create table {made} as from {cleaned_sql('_anon_raw', cleaning)}; drop table _anon_raw")
    write_comments(con, made, None, {column: text for column, text in kept.items() if text})
    return [f"{name}: the cleaning of {c} makes {n} values NULL" for c, n in lost.items() if n]


def make_hierarchies(con: duckdb.DuckDBPyConnection, hierarchies: Mapping[str, str]) -> None:
    """Make the table of each hierarchy of a plan from its call, "anon_hierarchy('people', 'age')"."""
    for name, call in hierarchies.items():
        try:
            con.execute(f"create or replace table {ident(name)} as from {call}")
        except duckdb.Error as error:
            raise AnonError(f"run: hierarchies.{name}: {one_line(error)}", code="bad-argument") from cause_of(error)


@contextmanager
def _attached(con: duckdb.DuckDBPyConnection, folder: Path, source: str, mode: str) -> Iterator[str]:
    """The name of TABLE of a database while that is attached."""
    database, _, table = source.partition(".duckdb:")
    con.execute(f"attach {literal(str(folder / database) + '.duckdb')} as _source ({mode})")
    try:
        yield f"_source.main.{table}"
    finally:
        con.execute("detach _source")


def write_policy(con: duckdb.DuckDBPyConnection, folder: Path, source: str, name: str, given: Mapping[str, Any]) -> str:
    """Write labels and the policy for answers as comments of TABLE of a database; what to say of it."""
    wanted = {column: text for column, text in comments(con, ident(name))[1].items() if text}
    with _attached(con, folder, source, "read_write") as table:
        comment, labels = comments(con, table)
        policy = with_policy(comment, given)
        if policy == comment and wanted.items() <= dict(labels).items():
            return f"{source}: the policy for answers was kept"
        write_comments(con, table, policy, wanted)
    return f"{source}: the policy for answers was written"


def cleaned_sql(rows: str, cleaning: Mapping[str, str]) -> str:
    """What follows FROM: rows whose columns are cleaned."""
    # a comment at the end of an expression ends with its line
    items = ", ".join(f"({expression}\n) as {ident(column)}" for column, expression in cleaning.items())
    return f"(select * replace ({items}) from {rows})" if items else rows


def losses(con: duckdb.DuckDBPyConnection, name: str, cleaning: Mapping[str, str]) -> dict[str, int]:
    """How many values of each column its cleaning makes NULL; an expression that cannot be applied is refused."""
    known = [column for column, *_ in con.execute(f"describe {ident(name)}").fetchall()]
    require_known("run", f"cleaning.{name}", cleaning, known)
    lost = {}
    for column, expression in cleaning.items():
        count = f"select count({ident(column)}), count(*) from "
        try:
            ((values, rows),) = con.execute(count + cleaned_sql(ident(name), {column: expression})).fetchall()
        except duckdb.Error as error:
            raise AnonError(
                f"run: cleaning.{name}: the expression of {column} cannot be applied: {one_line(error)}. Correct it, "
                "or use TRY_CAST or try_strptime, which make NULL of what they cannot read",
                code="bad-argument",
            ) from cause_of(error)
        ((before, all_rows),) = con.execute(count + ident(name)).fetchall()
        if rows != all_rows:
            raise AnonError(f"run: cleaning.{name}: the expression of {column} is not one value of each row")
        lost[column] = before - values
    return lost


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
