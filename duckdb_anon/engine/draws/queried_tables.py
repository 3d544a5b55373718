"""Releases that a measure asks in SQL: the rows that were handed over, in a database of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from duckdb_anon.engine.draws.estimator_udfs import register
from duckdb_anon.engine.interrupts import passing_on
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transport.input_scan import InputTable
from duckdb_anon.engine.transport.release_reader import types_of
from duckdb_anon.model.function_specs import Roles
from duckdb_anon.model.hierarchy import HIDDEN_LABEL
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.rewrite.query.tables import TableInfo


@dataclass(frozen=True)
class QueriedTables:
    """Tables as rewrites see them: of the original its columns alone, of releases their rows too."""

    cursor: duckdb.DuckDBPyConnection
    tables: Mapping[str, TableInfo]


@contextmanager
def queried_tables(
    tables: Mapping[str, tuple[str, Mapping[str, str], InputTable]],
    queried: Sequence[str],
    roles: Roles,
    trees: Mapping[str, pa.StructArray],
    threads: int,
) -> Iterator[QueriedTables]:
    """Let SQL read tables, and the hierarchies of their columns.

    Args:
        tables: how the caller names each table, its types and rows; the original first.
        queried: those whose rows SQL reads.
        roles: of the original's columns.
        trees: rows of each hierarchy table.
        threads: how many DuckDB may use.
    """
    with duckdb.connect(config={"threads": threads, "temp_directory": ""}) as con, passing_on(con, stop_flag()):
        con.execute("set TimeZone = 'UTC'")
        register(con)
        hierarchies = {tree: _created(con, f"tree_{k}", rows) for k, (tree, rows) in enumerate(trees.items())}
        found = {}
        for name, (given, types, rows) in tables.items():
            columns = tuple((column, kind) for column, kind in types.items())
            if name in queried:
                held = {column.name: rows.field(column.name) for column in rows.type}
                columns = tuple((column, types.get(column, kind)) for column, kind in types_of(rows).items())
                cast = ", ".join(f"{ident(column)}::{kind} as {ident(column)}" for column, kind in columns)
                con.from_arrow(pa.table(held)).project(cast).create(name)
            found[name] = TableInfo(name, columns, given=given)
        labelled = {column: hierarchies[tree] for column, tree in roles.trees().items()}
        original = next(iter(tables))
        found[original] = replace(found[original], roles=roles.by_name(), hierarchies=labelled)
        yield QueriedTables(con, found)


def _created(con: duckdb.DuckDBPyConnection, name: str, rows: pa.StructArray) -> TableInfo:
    """A hierarchy table."""
    levels = {level.name: rows.field(level.name) for level in rows.type}
    con.from_arrow(pa.table(levels)).create(name)
    hidden = any(leaf.startswith(HIDDEN_LABEL) for leaf in next(iter(levels.values())).to_pylist())
    return TableInfo(name, tuple((level, "VARCHAR") for level in levels), hidden=hidden)
