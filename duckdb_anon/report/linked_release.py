"""Check releases: they link rows of a release to rows of the original, for measures of linkage.

A published release has no row_id. Its description records its call, which is repeated with row_id in a temporary
database in memory: another random draw of the same method. Without a recorded call there is no check release, and the
page says what is missing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from duckdb_anon.engine.catalog.catalog import described, write_comments
from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import without_code
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats import SOURCE


@dataclass(frozen=True)
class Check:
    """The table that is measured in a release's place."""

    table: str  # its name
    source: str  # its column of row numbers; '' where it has none
    note: str  # how it came about, or why there is none


class Checks:
    """Check releases of one original, in a database in memory."""

    def __init__(self, con: duckdb.DuckDBPyConnection, original: str, database: str) -> None:
        """Put tables into a database of their own."""
        self.con, self.original, self.database = con, original, database
        self.of: dict[str, Check] = {}

    def add(self, name: str) -> None:
        """Make the check release of `name`, or say why there is none, unless it is there."""
        if name in self.of:
            return
        columns = [c for (c,) in self.con.execute(f"select column_name from (describe {name})").fetchall()]
        row_ids = [column for column in columns if SOURCE.stands_for(fold(column))]
        if row_ids:
            note = f"the release itself; it has the column {SOURCE.word} and must not be published with it"
            self.of[name] = Check(name, row_ids[0], note)
            return
        table = f"{self.database}.main.{ident(f'check{len(self.of)}')}"
        description = read_description(comments(self.con, name)[0])
        if description is None or not description.method:
            self.of[name] = Check(
                name, "",
                f"none: how often records are re-identified is not measured, because the release does not record its "
                "call. Write it with duckdb-anon release or anon_release, or name a table made with "
                f"{SOURCE.word} := true",
            )  # fmt: skip
            return
        given = "".join(f", {key} := {literal(value)}" for key, value in description.parameters.items())
        call = f"{description.method}({literal(self.original)}{given}, {SOURCE.word} := true)"
        try:
            with stoppable():
                self.con.execute(f"create table {table} as from {call}")
        except duckdb.Error as error:
            self.of[name] = Check(name, "", f"none: repeating its call failed: {without_code(error)}")
            return
        self._comment_as(name, table)
        note = f"made again by {call}: another random draw of the method, not the release itself"
        self.of[name] = Check(table, SOURCE.word, note)

    def group(self, check: Check, column: str, value: str) -> tuple[str, str]:
        """The rows of one subgroup, and a check release that gives row numbers to nobody else."""
        # the attacker still sees every released row; those of others match no target, as fake rows do
        people, release = f"{self.database}.main.people", f"{self.database}.main.release"
        inside = f"{ident(column)}::varchar = {literal(value)}"
        numbered = f"(select *, row_number() over () - 1 as _anon_rn from {self.original})"
        self.con.execute(
            f"create or replace table {people} as select * exclude (_anon_rn) from {numbered} where {inside} "
            "order by _anon_rn"
        )
        self.con.execute(
            f"create or replace table {release} as select r.* replace (g.n as {ident(check.source)}) "
            f"from {check.table} r left join (select _anon_rn, row_number() over (order by _anon_rn) - 1 as n "
            f"from {numbered} where {inside}) g on r.{ident(check.source)} = g._anon_rn"
        )
        self._comment_as(self.original, people)
        self._comment_as(check.table, release)
        return people, release

    def _comment_as(self, source: str, target: str) -> None:
        """Give a copy what its model says of itself."""
        table, columns = comments(self.con, source)
        write_comments(self.con, target, table or None, columns)


@contextmanager
def check_releases(con: duckdb.DuckDBPyConnection, original: str) -> Iterator[Checks]:
    """A place for check releases, which is gone at the end."""
    database = f"anon_checks_{secrets.token_hex(6)}"
    con.execute(f"attach ':memory:' as {database} (read_write)")
    try:
        yield Checks(con, original, database)
    finally:
        con.execute(f"detach {database}")


def comments(con: duckdb.DuckDBPyConnection, name: str) -> tuple[str, Mapping[str, str]]:
    """The comment of a table, '' for none, and those of its columns by name."""
    columns = described(con, name)[1]
    return columns.pop("", ""), columns
