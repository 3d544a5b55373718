"""What the planner can see: tables, columns, types and comments, through a cursor of the user's database.

A cursor sees committed objects only. Temporary tables, CTEs, DataFrames and uncommitted tables are found when the
planned SQL runs; for those the caller names the columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from duckdb_anon.engine.arrow import batches
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, ColumnError, ParameterError, cause_of, listed, nearest, one_line
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import unquoted
from duckdb_anon.model.release_comment import COLUMN_KEY, KEY, field_comments

PART = r'(?:"(?:[^"]|"")+"|[^\s".()]+)'
QUALIFIED = re.compile(rf"{PART}(?:\.{PART}){{0,2}}")


def names_of(sql: str) -> list[str]:
    """The parts of a table's name, folded."""
    return [fold(unquoted(part)) for part in re.findall(PART, sql)]


_WRITTEN = r'(?:"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_]*)'
_WRITTEN_NAME = re.compile(rf"{_WRITTEN}(?:\.{_WRITTEN}){{0,2}}")


def table_sql(name: str) -> str:
    """A table's name as SQL writes it: parts as they are, anything else as one quoted name.

    >>> table_sql("main.r1"), table_sql("first wave")
    ('main.r1', '"first wave"')
    """
    return name if _WRITTEN_NAME.fullmatch(name) else ident(name)


_FILE = re.compile(r"(.*[/\\].*|.*\.(csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx)(\.(gz|zst))?)$", re.IGNORECASE)


Place = tuple[str, str, str, str]
"""Database, schema, name and kind ('table' or 'view')."""


@dataclass(frozen=True)
class Relation:
    """A `table` argument resolved: what stands after FROM, and what is known of its columns."""

    given: str  # the argument as the user wrote it
    sql: str  # text that can follow FROM, without a name of its own: a name, a file, or (SELECT ...)
    columns: dict[str, str]  # column name to type, in table order; empty when the planner cannot see the relation
    comments: dict[str, str]  # column name to comment
    hint: str = ""  # the error for a user when a column of an invisible relation is needed
    comment: str = ""  # the comment of the table itself
    place: Place | None = None  # where a table or view of the catalog is

    @property
    def is_table(self) -> bool:
        """Whether it is a table of the catalog, which has comments of its own, and no view, file or SELECT."""
        return self.place is not None and self.place[3] == "table"

    @property
    def rows(self) -> str:
        """What follows FROM where a call runs: columns that are gone by then are NULL, and `planned_tables` says so."""
        return self.sql if self.place is None else with_columns(self.sql, self.columns)

    @property
    def visible(self) -> bool:
        """Whether names and types of the columns are known while planning."""
        return bool(self.columns)


def with_columns(sql: str, columns: Iterable[str]) -> str:
    """What follows FROM for a table with some columns; those that it does not have are NULL."""
    nulls = ", ".join(f"null as {ident(name)}" for name in columns)
    return f"(from {sql} union all by name select {nulls} where false)"


def use_schema(cursor: duckdb.DuckDBPyConnection, database: str, schema: str) -> None:
    """Bring a cursor to the caller's default database and schema, with no DataFrame of ours in scope."""
    with suppress(duckdb.Error):  # a server has locked its configuration, this setting included
        cursor.execute("set python_enable_replacements = false")
    if database not in ("temp", "system"):
        cursor.execute(f"use {ident(database)}.{ident(schema)}")


@dataclass(eq=False)
class Catalog:
    """A short-lived cursor that answers the planner's questions."""

    cursor: duckdb.DuckDBPyConnection
    database: str  # the caller's default database
    schema: str
    takes: Collection[str] = ("qi", "sensitive", "keep", "categorical")  # parameters that errors may advise
    # a cursor in one transaction: comments that are read one after the other are of one moment
    snapshot: duckdb.DuckDBPyConnection | None = None
    resolved: list[Relation] = field(default_factory=list)  # every table that was looked up
    foreign_keys: list[tuple[str, str, str, str]] | None = None  # what `identifier_lineage` read of them

    @property
    def comments(self) -> duckdb.DuckDBPyConnection:
        """What to ask for comments and views."""
        return self.snapshot or self.cursor

    def settings(self) -> dict[str, int | None]:
        """DuckDB's settings that a kernel follows."""
        return {"threads": int(self.cursor.execute("select current_setting('threads')").fetchall()[0][0])}

    def relation(self, function: str, parameter: str, given: object) -> Relation:
        """Resolve a `table` argument: name, file, or SELECT in parentheses."""
        found = self._relation(function, parameter, given)
        self.resolved.append(found)
        return found

    def _relation(self, function: str, parameter: str, given: object) -> Relation:
        if not isinstance(given, str) or not given.strip():
            raise ParameterError(
                f"{function}: {parameter} := {literal(given)} is not a table. Give a table or view name, a file "
                "such as 'people.parquet', or '(SELECT ...)'"
            )
        text = given.strip()
        if text.startswith("("):
            return self._subquery(function, parameter, text)
        for sql in self._spellings(text):
            if columns := self._describe(sql):
                place: Place | None = None
                if _FILE.match(text):
                    comments = self._written_in(text)
                else:
                    place, comments = described(self.comments, sql)
                comment = comments.pop("", "")
                return Relation(given, sql, columns, _with_fields(comments), comment=comment, place=place)
        if _FILE.match(text):
            raise self._unreadable(function, parameter, text)
        return self._unseen(function, parameter, text)

    def every_nth_row(self, relation: Relation, columns: str, most: int = 200_000) -> pa.StructArray:
        """Read the SELECT list `columns` (which may use `_anon_rn`, the row number) of at most `most` rows."""
        counted = self.cursor.execute(f"select count(*) from {relation.sql}").fetchone()
        step = -(-counted[0] // most) if counted else 1
        numbered = f"(select *, row_number() over () - 1 as _anon_rn from {relation.sql})"
        try:
            rows = batches(self.cursor, f"select {columns} from {numbered} where _anon_rn % {max(step, 1)} = 0")
        except duckdb.InvalidInputException as error:
            # a condition on the columns, see `collation.guard`: its message is the user's
            raise ColumnError(one_line(error)) from cause_of(error)
        return rows.read_all().to_struct_array().combine_chunks()

    def table_names(self) -> list[str]:
        """Names of tables and views a user could mean."""
        rows = self.cursor.execute(
            "select table_name from duckdb_tables() where not internal and schema_name <> 'anon' "
            "union select view_name from duckdb_views() where not internal order by 1"
        ).fetchall()
        return [r[0] for r in rows]

    def _spellings(self, text: str) -> list[str]:
        # a name with spaces or dots may be given bare; the qualified reading comes first
        spelled = [text] if QUALIFIED.fullmatch(text) else []
        parts = [p if p.startswith('"') else ident(p) for p in re.findall(PART, text)] if spelled else []
        return [".".join(parts)] * bool(parts) + [ident(text)]

    def _describe(self, sql: str) -> dict[str, str]:
        try:
            rows = self.cursor.execute(f"describe from {sql}").fetchall()
        except duckdb.Error:
            return {}
        return {r[0]: r[1] for r in rows}

    def _written_in(self, path: str) -> dict[str, str]:
        """The metadata of Parquet files as comments by column, that of the table under ''; none where files differ."""
        if not path.lower().endswith(".parquet"):
            return {}
        try:
            rows = self.cursor.execute(
                "select distinct decode(key), decode(value) from parquet_kv_metadata(?) "
                "where starts_with(decode(key), 'anon')",
                [path],
            ).fetchall()
        except duckdb.Error:
            return {}
        if len(dict(rows)) < len(rows):
            return {}
        comments = {key.removeprefix(COLUMN_KEY): text for key, text in rows if key.startswith(COLUMN_KEY)}
        return {**comments, "": dict(rows).get(KEY, "")}

    def _subquery(self, function: str, parameter: str, text: str) -> Relation:
        try:
            statements = duckdb.extract_statements(f"from {text} as _anon_given")
            single = len(statements) == 1
        except duckdb.Error as error:
            raise ParameterError(
                f"{function}: {parameter} is not a SELECT in parentheses: {one_line(error)}"
            ) from cause_of(error)
        if not single or not text.endswith(")"):
            raise ParameterError(
                f"{function}: {parameter} is not a single SELECT in parentheses. Give one and nothing after it"
            )
        hint = "the planner cannot see the tables of this SELECT (temporary, CTE or uncommitted?)"
        return Relation(text, text, self._describe(text), {}, hint)

    def _unreadable(self, function: str, parameter: str, text: str) -> ParameterError:
        """Why a file cannot be read."""
        reason = "it has no columns"
        try:
            self.cursor.execute(f"describe from {literal(text)}")
        except duckdb.Error as error:
            reason = one_line(error)
            if "not utf-8" in str(error):
                reason += (
                    ". The file is not in UTF-8. Name its encoding, for instance "
                    f"'(FROM read_csv(''{text}'', encoding := ''latin-1''))'"
                )
        return ParameterError(f"{function}: {parameter} := '{text}' is neither a table nor a readable file: {reason}")

    def _unseen(self, function: str, parameter: str, text: str) -> Relation:
        names = self.table_names()
        if not QUALIFIED.fullmatch(text) and " " in text and text.lower().startswith(("select", "from", "with")):
            raise ParameterError(f"{function}: {parameter} is a query without parentheses. Write '({text})'")
        ways = {
            "qi": "['...']",
            "sensitive": "'...'",
            "keep": "['...']",
            "categorical": "['...'] (numbers without order)",
        }
        given = ", ".join(f"{name} := {way}" for name, way in ways.items() if name in self.takes)
        hint = (
            f"'{text}' is not a committed table{nearest(text, names)}. There are: {listed(names) or 'none'}. If it "
            "is a temporary table, a CTE, a DataFrame or not committed yet, "
            + (f"name its columns: {given}" if given else "make it a table and commit it")
        )
        return Relation(text, self._spellings(text)[0], {}, {}, hint)


def _with_fields(comments: dict[str, str]) -> dict[str, str]:
    """Comments of columns, and of the attributes that are fields of slices; a slice may have its attribute's name."""
    fields = {name: text for comment in comments.values() for name, text in field_comments(comment).items()}
    return {**comments, **fields}


def require_visible(function: str, relation: Relation) -> None:
    """Raise unless the planner can see the columns of `relation`."""
    if not relation.visible:
        raise AnonError(f"{function}: {relation.hint}")


_NAMED = """
select *, current_database(), current_schema()
from (select database_name, schema_name, table_name, 'table' as kind, '' as name, comment from duckdb_tables()
  union all select database_name, schema_name, view_name, 'view', '', comment from duckdb_views()
  union all select database_name, schema_name, table_name, 'column', column_name, comment from duckdb_columns())
where lower(table_name) = lower($1) and (kind <> 'column' or comment is not null)"""


def described(con: duckdb.DuckDBPyConnection, target: str) -> tuple[Place | None, dict[str, str]]:
    """Where a name points, and comments by column, that of the table under ''; None and {} where nothing is there.

    >>> con = duckdb.connect()
    >>> _ = con.execute("attach ':memory:' as other; create table other.t as select 1 as x")
    >>> _ = con.execute("comment on column other.t.x is 'a number'")
    >>> described(con, "t"), described(con, "other.T")
    ((None, {}), (('other', 'main', 't', 'table'), {'x': 'a number'}))
    """
    *parts, name = names_of(target) or [""]
    # lower() of SQL makes one of letters that are different for DuckDB
    found = [row for row in con.execute(_NAMED, [name]).fetchall() if fold(row[2]) == name]
    if not found:
        return None, {}
    here, schema = fold(found[0][6]), fold(found[0][7])
    namespaces: list[list[str]] = [["temp", "main"], [here, schema], [here, "main"]]  # as DuckDB looks names up
    if len(parts) == 2:
        namespaces = [parts]
    elif parts:
        namespaces = [[here, *parts], [*parts, "main"]]
    for namespace in namespaces:
        rows = [row for row in found if [fold(row[0]), fold(row[1])] == namespace]
        if rows:
            place = next(row[:4] for row in rows if row[3] != "column")
            return place, {row[4]: row[5] for row in rows if row[5]}
    return None, {}


def places(con: duckdb.DuckDBPyConnection, targets: Iterable[str]) -> list[tuple[str, ...]]:
    """Of each name that is a table or view: database, schema, table, its first column, and the name as it was given."""
    found: list[tuple[str, ...]] = []
    for target in targets:
        place = located(con, target)
        if place is not None:
            column = con.execute(
                "select column_name from duckdb_columns() where (database_name, schema_name, table_name) = (?, ?, ?) "
                "order by column_index limit 1",
                list(place[:3]),
            ).fetchall()
            found += [(*place[:3], name, target) for (name,) in column]
    return found


def located(con: duckdb.DuckDBPyConnection, target: str) -> Place | None:
    """Where a name points; None where nothing is there."""
    return described(con, target)[0]


def write_comments(
    con: duckdb.DuckDBPyConnection, target: str, comment: str | None, columns: Mapping[str, str]
) -> None:
    """Write the comments of a table and of columns."""
    if comment is not None:
        con.execute(f"comment on table {target} is {literal(comment)}")
    for column, text in columns.items():
        con.execute(f"comment on column {target}.{ident(column)} is {literal(text)}")
