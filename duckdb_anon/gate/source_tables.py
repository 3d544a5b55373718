"""Tables of a database, with the types and comments of their columns, as the checks before publication read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import duckdb

from duckdb_anon.engine.catalog.catalog import names_of
from duckdb_anon.engine.catalog.column_roles import NAMING, label_of, role_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import (
    QUERY,
    Label,
    attributes_comment,
    field_comments,
    is_release,
    read_description,
    table_name,
)
from duckdb_anon.model.release_formats.duckdb_types import box_type, is_nested, struct_fields


@dataclass(frozen=True)
class SourceTable:
    """A table of the source: SQL that follows FROM, name, comment, columns with type and comment."""

    sql: str
    name: str
    comment: str
    columns: Mapping[str, tuple[str, str | None]]
    schema: str = ""
    is_view: bool = False

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
    """One attribute of each row."""

    name: str  # the column, or the field of a STRUCT
    sql: str  # its value
    kind: str  # its type
    role: str  # its role by its comment, '' for none

    @property
    def text(self) -> str:
        """SQL of the value as text; nested values as JSON, bytes as hexadecimal digits."""
        if is_nested(self.kind) and self.kind.upper() != "INTERVAL":
            return f"to_json({self.sql})::varchar"
        return f"hex({self.sql})" if self.kind.upper() == "BLOB" else f"({self.sql})::varchar"


def tables_of(con: duckdb.DuckDBPyConnection, *databases: str) -> list[SourceTable]:
    """The tables and views of databases, or of all that are attached, with the types and comments of their columns."""
    rows = con.execute(
        """
        with found as (
          select database_name, schema_name, table_name, comment, false as is_view from duckdb_tables()
          where not internal and not temporary
          union all
          select database_name, schema_name, view_name, comment, true from duckdb_views() where not internal)
        select found.*, list({name: column_name, kind: data_type, comment: c.comment} order by column_index)
        from found join duckdb_columns() as c using (database_name, schema_name, table_name)
        where list_contains($databases, database_name) or (len($databases) = 0 and database_name in
          (select database_name from duckdb_databases() where not internal))
        group by all order by all""",
        {"databases": list(databases)},
    ).fetchall()
    return [
        SourceTable(
            f"{ident(database)}.{ident(schema)}.{ident(name)}", name, comment or "",
            {column["name"]: (column["kind"], column["comment"]) for column in columns}, schema, is_view,
        )
        for database, schema, name, comment, is_view, columns in rows
    ]  # fmt: skip


def original_of(release: SourceTable, tables: Iterable[SourceTable]) -> SourceTable | None:
    """The table that the description of a release names, which is no release itself; None for none."""
    description = read_description(release.comment)
    if description is None or description.original in ("", QUERY):
        return None
    name = fold(names_of(description.original)[-1])
    return next((t for t in tables if fold(t.name) == name and not t.is_view and not is_release(t.comment)), None)


def described_table(
    con: duckdb.DuckDBPyConnection, sql: str, name: str, comment: str, comments: Mapping[str, str]
) -> SourceTable:
    """A table, file or SELECT that a connection reads, with comments that were found elsewhere."""
    rows = con.execute(f"select column_name, column_type from (describe from {sql})").fetchall()
    return SourceTable(sql, name, comment, {column: (kind, comments.get(column)) for column, kind in rows})


def _alone(tree: str) -> str:
    return table_name(tree).strip('"')


def clean_comment(text: str | None, tree: Callable[[str], str] = _alone) -> str:
    """What a column's comment says of roles and hierarchies, without other text, such as paths.

    `tree`: name of a hierarchy where the comment is going; by default its own, without a database.
    """
    labels = {name: label_of(comment) for name, comment in field_comments(text).items()}
    own = label_of(text)

    def renamed(label: Label) -> Label:
        return label if label.hierarchy is None else replace(label, hierarchy=tree(label.hierarchy))

    if labels:
        return attributes_comment({name: renamed(label) for name, label in labels.items() if label is not None})
    return "" if own is None else renamed(own).comment()
