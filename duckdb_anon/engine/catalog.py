"""What the planner can see: tables, columns, types and comments, through a cursor of the user's database.

A cursor sees committed objects only. Temporary tables, CTEs, DataFrames and uncommitted tables are found
when the planned SQL runs; for those the caller names the columns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from duckdb_anon.engine.catalog_rows import PART, QUALIFIED, CatalogRows
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.release_comment import COLUMN_KEY, KEY, argument_text, field_comments

_FILE = re.compile(r"(.*[/\\].*|.*\.(csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx)(\.(gz|zst))?)$", re.IGNORECASE)


@dataclass(frozen=True)
class Relation:
    """A `table` argument resolved: what stands after FROM, and what is known of its columns.

    Attributes:
        given: the argument as the user wrote it.
        sql: text that can follow FROM.
        columns: column name to type, in table order; empty when the planner cannot see the relation.
        comments: column name to comment.
        hint: what to tell a user when a column of an invisible relation is needed.
        comment: the comment of the table itself.
        text: what the macros of sql/ take as their table: a name, a file, or a SELECT in parentheses.
        by_letters: whether it is certain that no column has a collation, which takes different texts for equal.
        full: what follows FROM wherever the cursor stands: of a plain table its name with database and schema.
        number: by which DuckDB knows a plain table: no other of the database instance has it; 0 of others.
    """

    given: str
    sql: str
    columns: dict[str, str]
    comments: dict[str, str]
    hint: str = ""
    text: str = ""
    comment: str = ""
    by_letters: bool = False
    full: str = ""
    number: int = 0

    @property
    def unnamed(self) -> str:
        """Text that can follow FROM and takes a name of one's own after it."""
        return self.text if self.text.startswith("(") else self.sql

    @property
    def takes_comments(self) -> bool:
        """Whether COMMENT ON can be said of it: of no file, and of no SELECT."""
        return not (self.text.startswith("(") or _FILE.match(self.given))

    @property
    def visible(self) -> bool:
        """Whether names and types of the columns are known while planning."""
        return bool(self.columns)


def place(cursor: duckdb.DuckDBPyConnection, database: str, schema: str) -> None:
    """Bring a cursor to the caller's default database and schema, with no DataFrame of ours in scope.

    Args:
        cursor: a connection of its own to the caller's database.
        database: the caller's default database.
        schema: the caller's default schema.
    """
    with suppress(duckdb.Error):  # a server has locked its configuration, this setting included
        cursor.execute("set python_enable_replacements = false")
    if database not in ("temp", "system"):
        cursor.execute(f"use {ident(database)}.{ident(schema)}")


class Catalog:
    """A short-lived cursor that answers the planner's questions."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection | None,
        database: str,
        schema: str,
        takes: Collection[str] = ("qi", "sensitive", "keep", "categorical"),
        instance: int | None = None,
    ) -> None:
        """Use `cursor` with the caller's default database and schema; None sees nothing.

        Args:
            cursor: a connection of its own to the caller's database.
            database: the caller's default database.
            schema: the caller's default schema.
            takes: parameters of the function that is planned; what errors may advise.
            instance: number of the database instance, where what was found in it may be kept.
        """
        self._unplaced, self._placed = cursor, cursor is None
        self.takes = takes
        self.database, self.schema, self.instance = database, schema, instance
        self.rows = CatalogRows(cursor, database, schema)

    @property
    def cursor(self) -> duckdb.DuckDBPyConnection | None:
        """The cursor in the caller's place, with no DataFrame of ours in scope; a plain table is found without it."""
        if not self._placed and self._unplaced is not None:
            self._placed = True
            place(self._unplaced, self.database, self.schema)
        return self._unplaced

    @property
    def sees(self) -> bool:
        """Whether there is a database to ask."""
        return self._unplaced is not None

    def cursor_for(self, relations: Iterable[Relation]) -> duckdb.DuckDBPyConnection | None:
        """A cursor that finds these relations; one that has `full` is found from anywhere, so by that it is asked.

        Args:
            relations: what is read through the cursor.
        """
        return self._unplaced if all(relation.full for relation in relations) else self.cursor

    @contextmanager
    def one_state(self, relations: Iterable[Relation]) -> Iterator[None]:
        """What is asked of these relations inside is asked of one state of the database.

        Args:
            relations: what is read.
        """
        cursor = self.cursor_for(relations)
        if cursor is None:
            yield
            return
        cursor.begin()
        try:
            yield
        finally:
            cursor.rollback()

    def settings(self) -> dict[str, int | None]:
        """DuckDB's settings that a kernel heeds."""
        found = self.cursor.execute("select current_setting('threads')").fetchone() if self.cursor else None
        return {"threads": int(found[0]) if found else None}

    def relation(self, function: str, parameter: str, given: object) -> Relation:
        """Resolve a `table` argument: name, file, or SELECT in parentheses.

        Args:
            function: SQL function, for messages.
            parameter: parameter that names the table, for messages.
            given: what the call gives for it.
        """
        if not isinstance(given, str) or not given.strip():
            raise ParameterError(
                f"{function}: {parameter} := {argument_text(given)} is not a table; give a table or view name, a file "
                "such as 'people.parquet', or '(SELECT ...)'"
            )
        text = given.strip()
        if text.startswith("("):
            return self._subquery(function, parameter, text)
        for sql in self._spellings(text):
            here = self.rows.columns_here(sql)
            columns = here or self._describe(sql)
            if columns:
                comments, comment = self._written_in(text) if _FILE.match(text) else self.rows.said(sql)
                return Relation(
                    given,
                    sql,
                    columns,
                    _with_fields(comments),
                    text=sql,
                    comment=comment,
                    by_letters=self.rows.by_letters(sql),
                    full=f"{ident(self.database)}.{ident(self.schema)}.{sql}" if here else "",
                    number=self.rows.number_of_table(sql) if here else 0,
                )
        if _FILE.match(text):
            return self._file(function, parameter, text)
        return self._unseen(function, parameter, text)

    def every_nth_row(self, relation: Relation, columns: str, most: int = 200_000) -> pa.StructArray:
        """Read the SELECT list `columns` (which may use `_anon_rn`, the row number) of at most `most` rows.

        Args:
            relation: the table.
            columns: SELECT list; may use `_anon_rn`, the row's number.
            most: largest number of rows.
        """
        if self.cursor is None:
            return pa.array([], pa.struct([]))
        counted = self.cursor.execute(f"select count(*) from {relation.sql}").fetchone()
        step = -(-counted[0] // most) if counted else 1
        numbered = f"(select *, row_number() over () - 1 as _anon_rn from {relation.sql})"
        try:
            result = self.cursor.execute(f"select {columns} from {numbered} where _anon_rn % {max(step, 1)} = 0")
        except duckdb.InvalidInputException as error:
            # a condition on the columns, see `sent`: its message is the user's
            raise ColumnError(_first_line(error).removeprefix("Invalid Input Error: ")) from error
        with warnings.catch_warnings():
            # DuckDB advises a relation instead, which is refused while a statement is being bound
            warnings.simplefilter("ignore", UserWarning)
            table: Any = result.to_arrow_table()
        return table.to_struct_array().combine_chunks()

    def table_names(self) -> list[str]:
        """Names of tables and views a user could mean."""
        if self.cursor is None:
            return []
        rows = self.cursor.execute(
            "select table_name from duckdb_tables() where not internal "
            "union select view_name from duckdb_views() where not internal order by 1"
        ).fetchall()
        return [r[0] for r in rows]

    def _spellings(self, text: str) -> list[str]:
        # a name with spaces or dots may be given bare; the qualified reading comes first
        spelled = [text] if QUALIFIED.fullmatch(text) else []
        parts = [p if p.startswith('"') else ident(p) for p in re.findall(PART, text)] if spelled else []
        return [".".join(parts)] * bool(parts) + [ident(text)]

    def _describe(self, sql: str) -> dict[str, str]:
        if self.cursor is None:
            return {}
        try:
            rows = self.cursor.execute(f"describe from {sql}").fetchall()
        except duckdb.Error:
            return {}
        return {r[0]: r[1] for r in rows}

    def _written_in(self, path: str) -> tuple[dict[str, str], str]:
        """What the metadata of one local Parquet file says, as comments."""
        if self.cursor is None or not path.lower().endswith(".parquet") or "*" in path:
            return {}, ""
        try:
            rows = self.cursor.execute(
                "select decode(key), decode(value) from parquet_kv_metadata(?) where starts_with(decode(key), 'anon')",
                [path],
            ).fetchall()
        except duckdb.Error:
            return {}, ""
        said = {key.removeprefix(COLUMN_KEY): text for key, text in rows if key.startswith(COLUMN_KEY)}
        return said, dict(rows).get(KEY, "")

    def _subquery(self, function: str, parameter: str, text: str) -> Relation:
        try:
            statements = duckdb.extract_statements(f"select * from {text} as _anon_given")
            single = len(statements) == 1
        except duckdb.Error as error:
            raise ParameterError(
                f"{function}: {parameter} is not a SELECT in parentheses: {_first_line(error)}"
            ) from error
        if not single or not text.endswith(")"):
            raise ParameterError(f"{function}: {parameter} must be one SELECT in parentheses, nothing after it")
        sql = f"{text} as _anon_given"
        columns = self._describe(sql)
        hint = "the planner cannot see the tables of this SELECT (temporary, CTE or uncommitted?)"
        return Relation(text, sql, columns, {}, hint, text)

    def _file(self, function: str, parameter: str, text: str) -> Relation:
        sql = literal(text)
        columns = self._describe(sql)
        if not columns:
            reason = "no connection to look with"
            if self.cursor is not None:
                try:
                    self.cursor.execute(f"describe from {sql}")
                except duckdb.Error as error:
                    reason = _first_line(error) + _encoding_hint(text)
            raise ParameterError(
                f"{function}: {parameter} := '{text}' is neither a table nor a readable file: {reason}"
            )
        comments, comment = self._written_in(text)
        return Relation(text, sql, columns, _with_fields(comments), text=text, comment=comment)

    def _unseen(self, function: str, parameter: str, text: str) -> Relation:
        names = self.table_names()
        if not QUALIFIED.fullmatch(text) and " " in text and text.lower().startswith(("select", "from", "with")):
            raise ParameterError(f"{function}: {parameter}: put a query in parentheses: '({text})'")
        spelled_out = {"qi": "qi := ['...']", "sensitive": "sensitive := '...'", "keep": "keep := ['...']"}
        ways = [way for parameter, way in spelled_out.items() if parameter in self.takes]
        numbers = " (and categorical := [...] for numbers without order)" if "categorical" in self.takes else ""
        remedy = f"name its columns: {', '.join(ways)}{numbers}" if ways else "make it a table and commit it"
        hint = (
            f"'{text}' is not a committed table{nearest(text, names)}; there are: {listed(names) or 'none'}. If it "
            f"is a temporary table, a CTE, a DataFrame or not committed yet, {remedy}"
        )
        spelled = self._spellings(text)[0]
        return Relation(text, spelled, {}, {}, hint, spelled)


def _with_fields(comments: dict[str, str]) -> dict[str, str]:
    """Comments of columns, and of the attributes that are fields of slices among them."""
    fields = {name: text for said in comments.values() for name, text in field_comments(said).items()}
    return {**fields, **comments}


def _encoding_hint(path: str) -> str:
    """What to do about a local text file that is not in UTF-8; '' for any other."""
    try:
        with open(path, encoding="utf-8") as file:
            while file.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return (
            ". The file is not in UTF-8. Name its encoding, for instance "
            f"'(FROM read_csv(''{path}'', encoding := ''latin-1''))'"
        )
    except OSError:
        pass
    return ""


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def require_visible(function: str, relation: Relation) -> None:
    """Raise unless the planner can see the columns of `relation`."""
    if not relation.visible:
        raise AnonError(f"{function}: {relation.hint}")
