"""What DuckDB knows: functions beyond its own, names of the columns of a query and of expressions without one.

Cost: 20 ms once for the functions; a query is bound for its names, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog
from duckdb_anon.model.errors import RewriteError, cause_of, one_line
from duckdb_anon.model.progress import tick
from duckdb_anon.rewrite.query.refusals import Called


def functions_there(catalog: Catalog, names: Sequence[str]) -> dict[str, list[Called]]:
    """What there is of each name that is not DuckDB's own."""
    unknown = [name for name in names if name not in _internal_functions()]
    if not unknown:
        return {}
    rows = catalog.cursor.execute(
        "select lower(function_name), function_type, coalesce(stability = 'VOLATILE', false), "
        "coalesce(macro_definition, ''), internal from duckdb_functions() "
        "where lower(function_name) in (select unnest($1)) and function_type <> 'table_macro'",
        [unknown],
    ).fetchall()
    internal = {row[0] for row in rows if row[4]}
    return {
        name: [Called(kind, changing, macro) for other, kind, changing, macro, _ in rows if other == name]
        for name in unknown
        if name not in internal
    }


@lru_cache(maxsize=1)
def _internal_functions() -> frozenset[str]:
    with duckdb.connect() as con:
        rows = con.execute("select distinct lower(function_name) from duckdb_functions() where internal").fetchall()
    return frozenset(row[0] for row in rows)


def describing(catalog: Catalog) -> Callable[[str], list[tuple[str, str]]]:
    """Give what names and types the columns of a query's result, by binding it where the catalog looks."""

    def describe(query: str) -> list[tuple[str, str]]:
        try:
            rows = catalog.cursor.execute(f"describe {query}").fetchall()
        except duckdb.Error as error:
            raise RewriteError(one_line(error)) from cause_of(error)
        return [(str(row[0]), str(row[1])) for row in rows]

    return describe


def rows_of(cursor: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none where it fails."""
    try:
        return cursor.execute(query).fetchall()
    except duckdb.Error:
        tick()  # an interrupt is none of these
        return []
