"""The tables a query function works with, as the rewriter sees them: original, release, and whatever it joins."""

from __future__ import annotations

from typing import Any

from duckdb_anon.rewrite.parse import tables_of
from duckdb_anon.rewrite.schema import TableInfo


def query_tables(context: Any, query: str) -> tuple[TableInfo, TableInfo, list[TableInfo]]:
    """Resolve the arguments `original` and `release` and the other tables a query reads.

    Args:
        context: the planning context.
        query: the query's text.

    Raises:
        AnonError: when the planner cannot see the original or the release.
    """
    original, release = context.relation("original"), context.relation("release")
    known = {original.given.lower(), original.sql.lower(), release.given.lower(), release.sql.lower()}
    others = [context.relation("query", name) for name in tables_of(query) if name.lower() not in known]
    tables = [TableInfo(r.sql, tuple(r.columns.items()), given=r.given) for r in others]
    return context.table_info(original), context.table_info(release), tables
