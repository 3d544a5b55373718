"""Whether the tables of a call are, where it runs, those that it was planned for.

A call is planned on a cursor, which sees what is committed, and runs in the caller's transaction, which may have
relabelled, renamed or hidden a table. So the planned SQL compares, before a row is read: places, columns, types,
comments and views of the names that the call reads (temporary ones too) with those that the planner saw; and whether
a name means that table, or a CTE. Of a table that the planner could not see, what its labels say must be what the call
says. Cost: a query of the catalog, once while planning and once while running.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, Relation, places, with_columns
from duckdb_anon.engine.catalog.column_roles import NAMING
from duckdb_anon.engine.catalog.identifier_lineage import names_read
from duckdb_anon.engine.planning_context import Context
from duckdb_anon.engine.records.release_digest import checksum_sql, column_types, row_checksum
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, with_code
from duckdb_anon.model.function_specs import Entry, Method
from duckdb_anon.model.identifier_case import fold, folded_sql

CHECKED = "_anon_checked"
"""Name of the CTE with the condition."""
IS_CHECKED = f"checked: (select ok from {CHECKED})"
"""Field of a call of Python that depends on the condition."""
ROWS = "_anon_rows"
"""Field of a call with the checksums of `rows_sql`."""
_CODE = "commit-first"
_ROLE = r"lower(regexp_extract(comment, '\banon:\s*(\w+)', 1, 'i'))"
_ARGUMENTS = {"quasi": "qi", "sensitive": "sensitive", "insensitive": "keep", "person": "person"}


def checked_cte(entry: Entry, context: Context) -> str:
    """CTE of one row, `ok`: true, or an error where a table is another one than the call was planned for."""
    read = list({relation.sql: relation for relation in context.catalog.resolved}.values())
    if not read:
        return f"{CHECKED} as materialized (select true as ok)"
    names: set[str] = set()
    hidden: list[tuple[str, tuple[str, ...]]] = []
    for relation in read:
        if relation.visible:
            direct, every = names_read(context.catalog, relation)
            names |= every
            hidden += [(relation.given, path) for path in _paths(context.catalog, relation, direct)]
    cases = f" when now <> planned then {_changed_error(entry)}"
    cases += "".join(f" when {_is_hidden(path)} then {_hidden_error(entry, given)}" for given, path in hidden)
    unseen = [relation for relation in read if not relation.visible]
    columns = ""
    if unseen:
        columns = f", {_labelled(entry, context, unseen)} as labelled"
        cases += f" when labelled is not null then {_labelled_error(entry, unseen)}"
    return (
        f"{CHECKED} as materialized (select case{cases} else true end as ok from "
        f"(select {_facts(names)} as now, {literal(_planned(context.catalog, names))}::varchar[] as planned{columns}))"
    )


def base_tables(catalog: Catalog) -> list[str]:
    """The tables, as SQL, whose rows a call reads that works on another connection, which sees committed rows."""
    found: dict[str, None] = {}
    for relation in catalog.resolved:
        if relation.is_table and relation.place is not None:
            found[".".join(map(ident, relation.place[:3]))] = None
        elif relation.visible:
            names = [name.lower() for name in names_read(catalog, relation)[1]]
            rows = catalog.comments.execute(
                "select database_name, schema_name, table_name from duckdb_tables() where not internal and "
                "list_contains(?, lower(table_name)) order by all",
                [names],
            ).fetchall()
            found |= {".".join(map(ident, row)): None for row in rows}
    return list(found)


def rows_sql(catalog: Catalog, tables: Sequence[str]) -> str:
    """Scalar subquery of the checksums of tables, in their order, as the caller's transaction sees them."""
    types = {table: column_types(catalog.cursor, table) for table in tables}
    checksums = (f"({checksum_sql(columns, with_columns(table, columns))})" for table, columns in types.items())
    return f"[{', '.join(checksums)}]::varchar[]"


def require_committed(
    function: str, con: duckdb.DuckDBPyConnection, tables: Sequence[str], checksums: Sequence[str]
) -> None:
    """Refuse tables whose committed rows, which a connection of its own reads, are not those of the caller."""
    for table, checksum in zip(tables, checksums, strict=True):
        if row_checksum(con, table) != checksum:
            raise uncommitted(function, table)


def uncommitted(function: str, table: str) -> AnonError:
    """The refusal of a table with rows that are not committed."""
    return AnonError(
        f"{function}: the rows of {table} are not those that are committed, which {function} reads. "
        "COMMIT or ROLLBACK first, and call again",
        code=_CODE,
    )


def _facts(names: Collection[str]) -> str:
    """Scalar subquery: a text for each table, view and column of some names, its place before what is known of it."""
    # lower() makes one of letters that are different for DuckDB, so it finds more names; translate() costs 10 ms
    known = f"lower(table_name) in ({', '.join(f'lower({literal(name)})' for name in sorted(names) or [''])})"
    place = "database_name || '.' || schema_name || '.' || table_name"
    return (
        "(select coalesce(list(place || chr(31) || md5(known) order by place), []) from ("
        f"select {place} as place, table_name, 'table' || coalesce(comment, '') as known from duckdb_tables() "
        f"union all select {place}, table_name, concat_ws(chr(31), 'view', comment, sql) from "
        "(select *, view_name as table_name from duckdb_views()) "
        f"union all select {place} || '.' || column_name, table_name, concat_ws(chr(31), data_type, comment) "
        f"from duckdb_columns()) where {known})"
    )


def _planned(catalog: Catalog, names: Collection[str]) -> list[str]:
    found: list[str] = catalog.comments.execute(f"select {_facts(names)}").fetchall()[0][0]
    return found


def _paths(catalog: Catalog, relation: Relation, direct: Sequence[str]) -> list[tuple[str, ...]]:
    """Of the tables and views that a relation names: database, schema, table, a column, and the name as it is given."""
    if relation.place is not None:
        return [(*relation.place[:3], next(iter(relation.columns)), relation.sql)]
    return places(catalog.comments, direct) if relation.sql.startswith("(") else []


def _is_hidden(path: Sequence[str]) -> str:
    """SQL of whether a name means something else than the table of a path: its columns have no such qualified name.

    Where they have none, the name means the field of the outer query.
    """
    database, schema, table, column, name = path
    field = f"{{{literal(table)}: {{{literal(column)}: {{_anon_hidden: 1}}}}}}"
    return (
        f"(select (select typeof({'.'.join(map(ident, path[:4]))}) from (select 1) left join {name} on false) "
        f"from (select {field} as {ident(schema)}) as {ident(database)}) = 'STRUCT(_anon_hidden INTEGER)'"
    )


def _hidden_error(entry: Entry, given: str) -> str:
    text = (
        f"{entry.name}: a CTE hides a table of {given}, and the call was planned for the table. Give the CTE another "
        "name"
    )
    return f"error({literal(with_code(text, _CODE))})"


def _changed_error(entry: Entry) -> str:
    differing = (
        "split_part(list_sort(list_filter(now, lambda _f: not list_contains(planned, _f)) || "
        "list_filter(planned, lambda _f: not list_contains(now, _f)))[1], chr(31), 1)"
    )
    text = (
        " is not what it was when the call was planned, which sees committed tables alone. A temporary table must not "
        f"have the name of another one; for anything else COMMIT or ROLLBACK first, and call again [{_CODE}]"
    )
    return f"error({literal(f'{entry.name}: ')} || {differing} || {literal(text)})"


def _labelled(entry: Entry, context: Context, unseen: Sequence[Relation]) -> str:
    """Scalar subquery: a column whose label the call contradicts or misses, and the label; NULL for none."""
    arguments = context.arguments
    released = [
        fold(name) for argument in ("qi", "sensitive", "keep") for name in _names(arguments.get(argument))
    ]  # fmt: skip
    is_method = isinstance(entry, Method)
    missed = [
        role
        for role, argument in _ARGUMENTS.items()
        if arguments.get(argument) is None and (is_method or role in ("quasi", "person"))
    ]
    tables = [fold(relation.given.strip().rpartition(".")[2].strip('"')) for relation in unseen]
    column, table = folded_sql("column_name"), folded_sql("table_name")
    wrong = f"{table} in ({', '.join(map(literal, tables))}) and {_ROLE} in ({', '.join(map(literal, ['', *missed]))})"
    wrong += f" and {_ROLE} <> ''"
    if is_method and not arguments.get("force"):
        naming = ", ".join(map(literal, NAMING))
        listed = ", ".join(map(literal, ["", *released]))
        wrong = f"({wrong}) or ({_ROLE} in ({naming}) and {column} in ({listed}))"
    return (
        f"(select min(table_name || '.' || column_name || ' is labelled ' || {_ROLE}) from duckdb_columns() "
        f"where not internal and ({wrong}))"
    )


def _names(given: object) -> list[str]:
    return [given] if isinstance(given, str) else [str(name) for name in given] if isinstance(given, list) else []


def _labelled_error(entry: Entry, unseen: Sequence[Relation]) -> str:
    text = (
        f", which the planner does not see of {unseen[0].given}. Make it a table and COMMIT first, or name its columns "
        f"by their labels [{_CODE}]"
    )
    return f"error({literal(f'{entry.name}: ')} || labelled || {literal(text)})"
