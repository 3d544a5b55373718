"""Tables of a database, with the types and comments of their columns, as the checks before publication read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import duckdb

from duckdb_anon.engine.column_roles import NAMING, label_of, role_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import Label, attributes_comment, field_comments
from duckdb_anon.model.release_formats.duckdb_types import box_type, is_nested, struct_fields


@dataclass(frozen=True)
class SourceTable:
    """A table of the source: SQL that follows FROM, name, comment, columns with type and comment."""

    sql: str
    name: str
    comment: str
    columns: Mapping[str, tuple[str, str | None]]

    def role(self, column: str) -> str:
        """Role of a column by its comment, '' for none."""
        return role_of(self.columns[column][1])

    def naming(self) -> list[str]:
        """The columns that name individuals."""
        return [column for column in self.columns if self.role(column) in NAMING]

    def comments(self) -> dict[str, str]:
        """Comments of the attributes: columns, and fields of STRUCTs that hold several."""
        found = {column: text or "" for column, (_, text) in self.columns.items()}
        for text in list(found.values()):
            found |= field_comments(text)
        return found

    def values(self) -> list[PlainValue]:
        """The attributes of each row: its columns, and the fields of STRUCTs that hold several attributes."""
        found = []
        for column, (kind, comment) in self.columns.items():
            fields, roles = struct_fields(kind), field_comments(comment)
            if fields and box_type(kind) is None:
                found += [
                    PlainValue(name, f"({ident(column)}).{ident(name)}", inner, role_of(roles.get(name)))
                    for name, inner in fields
                ]
            else:
                found.append(PlainValue(column, ident(column), kind, self.role(column)))
        return found

    def attribute(self, name: str) -> PlainValue | None:
        """The attribute of a name, whatever the case of its letters; None for none."""
        return next((value for value in self.values() if fold(value.name) == fold(name)), None)


@dataclass(frozen=True)
class PlainValue:
    """One attribute of each row.

    Attributes:
        name: the column, or the field of a STRUCT.
        sql: its value.
        kind: its type.
        role: its role by its comment, '' for none.
    """

    name: str
    sql: str
    kind: str
    role: str

    @property
    def text(self) -> str:
        """SQL of the value as text; nested values as JSON, bytes as hexadecimal digits."""
        if is_nested(self.kind) and self.kind.upper() != "INTERVAL":
            return f"to_json({self.sql})::varchar"
        return f"hex({self.sql})" if self.kind.upper() == "BLOB" else f"({self.sql})::varchar"


def read_table(
    con: duckdb.DuckDBPyConnection, database: str, schema: str, name: str, comment: str | None
) -> SourceTable:
    """One of the tables, with the types and comments of its columns.

    Args:
        con: where the database is attached.
        database: name of the database.
        schema: the table's schema in it.
        name: the table.
        comment: the table's comment.
    """
    rows = con.execute(
        "select column_name, data_type, comment from duckdb_columns() "
        "where database_name = ? and schema_name = ? and table_name = ? order by column_index",
        [database, schema, name],
    ).fetchall()
    columns = {column: (kind, text) for column, kind, text in rows}
    return SourceTable(f"{ident(database)}.{ident(schema)}.{ident(name)}", name, comment or "", columns)


def described_table(
    con: duckdb.DuckDBPyConnection, sql: str, name: str, comment: str, comments: Mapping[str, str]
) -> SourceTable:
    """A table, file or SELECT that a connection reads, with comments that were found elsewhere.

    Args:
        con: an open connection.
        sql: what follows FROM.
        name: what messages call it.
        comment: its comment.
        comments: of its columns.
    """
    rows = con.execute(f"select column_name, column_type from (describe from {sql})").fetchall()
    return SourceTable(sql, name, comment, {column: (kind, comments.get(column)) for column, kind in rows})


def all_tables(con: duckdb.DuckDBPyConnection, database: str) -> list[tuple[str, str, str | None]]:
    """Schema, name and comment of every table."""
    return con.execute(
        "select schema_name, table_name, comment from duckdb_tables() "
        "where database_name = ? and not internal and not temporary order by all",
        [database],
    ).fetchall()


def all_views(con: duckdb.DuckDBPyConnection, database: str) -> list[tuple[str, str, str | None]]:
    """Schema, name and comment of every view."""
    return con.execute(
        "select schema_name, view_name, comment from duckdb_views() where database_name = ? and not internal",
        [database],
    ).fetchall()


def clean_comment(text: str | None, tree: Callable[[str], str]) -> str:
    """What a column's comment says of roles and hierarchies, without other text, such as paths.

    Args:
        text: the comment.
        tree: name of a hierarchy where the comment is going.
    """
    labels = {name: label_of(comment) for name, comment in field_comments(text).items()}
    own = label_of(text)

    def renamed(label: Label) -> Label:
        return label if label.hierarchy is None else replace(label, hierarchy=tree(label.hierarchy))

    if labels:
        return attributes_comment({name: renamed(label) for name, label in labels.items() if label is not None})
    return "" if own is None else renamed(own).comment()


def tables_called(con: duckdb.DuckDBPyConnection, database: str, name: str) -> list[SourceTable]:
    """The tables of a database that have a name; the case of letters does not matter."""
    places = [place for place in all_tables(con, database) if fold(place[1]) == fold(name)]
    return [read_table(con, database, *place) for place in places]


def naming_tables(con: duckdb.DuckDBPyConnection, databases: Iterable[str]) -> list[SourceTable]:
    """The tables of databases that have a column which names individuals."""
    found = (read_table(con, database, *row) for database in databases for row in all_tables(con, database))
    return [table for table in found if table.naming()]
