"""Copy what may be shown into a file of its own: isolation comes before filtering.

Published are the base tables commented `anon: release`, row by row into a new file, so that no page of the
original's file is carried along. Views are refused: one over a randomizing function draws afresh at each read,
and readers could average the noise away. For each original named, an empty table with the columns that a
release shows stands in for it, so that queries over the original can be rewritten without it.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.model.errors import AnonError, listed, nearest
from duckdb_anon.model.shapes import SOURCE

_RELEASE = re.compile(r"\banon:\s*release\b")
_SHAPE = "anon: columns of an original, without its rows"
_SOURCE = "_anon_source"


@dataclass(frozen=True)
class Published:
    """What a call of `publish` wrote.

    Attributes:
        releases: table name to number of rows.
        originals: names of the empty tables that stand for originals.
    """

    releases: dict[str, int] = field(default_factory=dict)
    originals: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Table:
    schema: str
    name: str
    comment: str

    @property
    def sql(self) -> str:
        return f"{_SOURCE}.{ident(self.schema)}.{ident(self.name)}"


def is_release(comment: str | None) -> bool:
    """Tell whether a table's comment declares it a release.

    >>> is_release('2026 extract, anon: release'), is_release(None)
    (True, False)
    """
    return bool(comment and _RELEASE.search(comment))


def is_shape(comment: str | None) -> bool:
    """Tell whether a table stands for an original without its rows."""
    return comment == _SHAPE


def publish(database: str, target: str, originals: Sequence[str] = (), replace: bool = False) -> Published:
    """Copy every release of `database` into the new file `target`.

    Args:
        database: DuckDB file with the releases; it is opened read-only.
        target: file to write; it appears only once it is complete.
        originals: tables whose column names and types analysts need to have queries rewritten.
        replace: whether an existing file may be replaced.

    Raises:
        AnonError: when nothing is declared a release, when a declared one must not be published, or when the
            target exists.
    """
    goal = Path(target)
    if goal.exists() and not replace:
        raise AnonError(f"publish: {target} exists; give another file, or --replace")
    if not Path(database).exists():
        raise AnonError(f"publish: there is no database {database}")
    draft = goal.with_name(f"{goal.name}.{secrets.token_hex(4)}.part")
    con = duckdb.connect(str(draft))
    try:
        con.execute("set python_enable_replacements = false")
        con.execute(f"attach {literal(database)} as {_SOURCE} (read_only)")
        releases = _releases(con)
        rows = {table.name: _copy(con, table) for table in releases}
        for name in originals:
            _copy_shape(con, name, releases)
        con.execute(f"detach {_SOURCE}")
        con.execute("checkpoint")
        con.close()
        os.replace(draft, goal)
    finally:
        con.close()
        draft.unlink(missing_ok=True)
        Path(f"{draft}.wal").unlink(missing_ok=True)
    return Published(rows, tuple(originals))


def _releases(con: duckdb.DuckDBPyConnection) -> list[_Table]:
    views = [
        name
        for name, comment in con.execute(
            "select view_name, comment from duckdb_views() where database_name = ? and not internal", [_SOURCE]
        ).fetchall()
        if is_release(comment)
    ]
    if views:
        raise AnonError(
            f"publish: {listed(views)} is a view commented 'anon: release'. A view is worked out anew at each read, "
            "and readers could average its noise away; make it a table (CREATE TABLE ... AS FROM ...) and comment that"
        )
    found = [_Table(*row) for row in _tables(con) if is_release(row[2])]
    if not found:
        raise AnonError(
            "publish: no table is declared a release; COMMENT ON TABLE my_release IS 'anon: release' declares one"
        )
    names = [table.name.lower() for table in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise AnonError(f"publish: two releases are called {listed(twice)}; all go into one schema, so rename one")
    for table in found:
        internal = [column for column in _columns(con, table) if SOURCE.stands_for(column)]
        if internal:
            raise AnonError(
                f"publish: {table.name} has the column {listed(internal)}, which ties rows to the original's; it is "
                "for your own checks. Make the release without row_id, or drop the column"
            )
    return found


def _copy(con: duckdb.DuckDBPyConnection, table: _Table) -> int:
    target = f"main.{ident(table.name)}"
    con.execute(f"create table {target} as from {table.sql}")
    con.execute(f"comment on table {target} is {literal(table.comment)}")
    for column, (_, comment) in _columns(con, table).items():
        if comment:
            con.execute(f"comment on column {target}.{ident(column)} is {literal(comment)}")
    return int(_scalar(con, f"select count(*) from {target}"))


def _copy_shape(con: duckdb.DuckDBPyConnection, name: str, releases: Sequence[_Table]) -> None:
    """Create an empty table with the original's columns that some release shows; an enum's values stay behind."""
    tables = {row[1].lower(): _Table(*row) for row in _tables(con)}
    table = tables.get(name.lower())
    if table is None:
        raise AnonError(f"publish: --original {name} is not a table{nearest(name, tables)}")
    if is_release(table.comment):
        raise AnonError(f"publish: --original {name} is a release itself")
    shown = {field.lower() for release in releases for field in _shown(con, release)}
    columns = [
        f"{ident(column)} {'varchar' if kind.startswith('ENUM(') else kind}"
        for column, (kind, _) in _columns(con, table).items()
        if column.lower() in shown
    ]
    if not columns:
        raise AnonError(f"publish: no release shows a column of {name}; is it their original?")
    target = f"main.{ident(table.name)}"
    con.execute(f"create table {target} ({', '.join(columns)})")
    con.execute(f"comment on table {target} is {literal(_SHAPE)}")


def _shown(con: duckdb.DuckDBPyConnection, release: _Table) -> list[str]:
    """Columns of a release, and the fields of its STRUCT columns (slices hold attributes)."""
    relation = con.sql(f"from {release.sql}")
    names = list(relation.columns)
    for kind in relation.types:
        if kind.id == "struct":
            names += [name for name, _ in kind.children]
    return names


def _tables(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    return con.execute(
        "select schema_name, table_name, comment from duckdb_tables() "
        "where database_name = ? and not internal and not temporary order by all",
        [_SOURCE],
    ).fetchall()


def _columns(con: duckdb.DuckDBPyConnection, table: _Table) -> dict[str, tuple[str, str | None]]:
    """Column name to type and comment, in table order."""
    rows = con.execute(
        "select column_name, data_type, comment from duckdb_columns() "
        "where database_name = ? and schema_name = ? and table_name = ? order by column_index",
        [_SOURCE, table.schema, table.name],
    ).fetchall()
    return {name: (kind, comment) for name, kind, comment in rows}


def _scalar(con: duckdb.DuckDBPyConnection, query: str) -> str:
    return str(con.execute(query).fetchall()[0][0])


def main(arguments: Sequence[str]) -> int:
    """`duckdb-anon publish`."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon publish",
        description="Copy the tables commented 'anon: release' into a file of their own, fit to be served or sent.",
    )
    parser.add_argument("database", help="DuckDB file with the releases (opened read-only)")
    parser.add_argument("target", help="file to write")
    parser.add_argument(
        "--original", action="append", default=[], metavar="TABLE",
        help="also write TABLE's column names and types (no rows), so that analysts can rewrite_query over it",
    )  # fmt: skip
    parser.add_argument("--replace", action="store_true", help="replace the file if it exists")
    given = parser.parse_args(arguments)
    done = publish(given.database, given.target, given.original, given.replace)
    for name, rows in done.releases.items():
        sys.stdout.write(f"{name}: {rows} rows\n")
    for name in done.originals:
        sys.stdout.write(f"{name}: column names and types, no rows\n")
    return 0
