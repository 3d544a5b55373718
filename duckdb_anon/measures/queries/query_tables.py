"""The tables a query function works with, as the rewriter sees them: original, release, and whatever it joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from duckdb_anon.engine.duckdb_metadata import functions_there
from duckdb_anon.measures.queries.learnt_shares import ReleaseShares
from duckdb_anon.measures.queries.plausible_tables import plausible_tables_of
from duckdb_anon.measures.queries.replay import replay_of
from duckdb_anon.model.errors import RewriteError, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, Description, read_description, table_name
from duckdb_anon.rewrite.query.parse import parse, tables_of
from duckdb_anon.rewrite.query.refusals import require_understood
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo, contents_of, same_name


@contextmanager
def in_name_of(function: str) -> Iterator[None]:
    """Let errors of the rewriter name the SQL function that was called."""
    try:
        yield
    except RewriteError as error:
        text = str(error)
        raise RewriteError(text if text.startswith(f"{function}: ") else f"{function}: {text}") from error


def query_tables(context: Any, query: str, bounds: Bounds = "sure") -> tuple[TableInfo, TableInfo, list[TableInfo]]:
    """Resolve the arguments `original` and `release` and the other tables a query reads.

    Args:
        context: the planning context.
        query: the query's text.
        bounds: which low and high are asked for.

    Raises:
        RewriteError: when the planner cannot see the original or the release.
    """
    original, release = context.relation("original"), context.relation("release")
    for parameter, relation in (("original", original), ("release", release)):
        if not relation.visible:
            names = context.catalog.table_names()
            raise RewriteError(
                f"{context.function}: {parameter} := '{relation.given}' is not a committed table, and the type of its "
                f"columns decides how a query is answered{nearest(relation.given, names)}. Commit it, or make an "
                "ordinary table of a temporary one or a DataFrame first (CREATE TABLE t AS FROM ...)"
            )
    return tables_around(context, query, original, release, bounds)


def tables_around(
    context: Any, query: str, original: Any, release: Any, bounds: Bounds = "sure"
) -> tuple[TableInfo, TableInfo, list[TableInfo]]:
    """What a rewrite needs of an original and a release that are visible, and of the query's other tables.

    Args:
        context: what the planner can ask.
        query: the query.
        original: name of the original.
        release: name of the release.
        bounds: which low and high are asked for.
    """
    require_understood(parse(query), lambda names: functions_there(context.catalog, names))
    known = {fold(original.given), fold(original.sql), fold(release.given), fold(release.sql)}
    others = [context.relation("query", name) for name in tables_of(query) if fold(name) not in known]
    tables = [TableInfo(r.unnamed, tuple(r.columns.items()), given=r.given) for r in others]
    info = context.table_info(original, [release])
    trees = {name: tree.given or tree.sql for name, tree in info.hierarchies.items()}
    released = context.release_info(original, release, trees, bounds=bounds != "none")
    if context.catalog.cursor is not None:
        released = replace(released, shares=ReleaseShares(context.catalog.cursor))
    if all(one.meaning != "rows" for one in contents_of(released, info).weights):  # of noisy counts no rows are drawn
        released = replace(released, drawn=plausible_tables_of(context, original, release))
    said = read_description(release.comment)
    if bounds == "likely":
        released = replace(released, replay=replay_of(context, original, release))
    if said is not None:
        released = replace(
            released,
            of_another=_is_of_another(context, original, said),
            binned=_binned(said),
            counted_rows=said.method == "anatomy",
        )
    return info, released, tables


def _binned(said: Description) -> frozenset[str]:
    """Columns of which a release says that their values were put into bins before they were randomized."""
    bins = said.parameters.get("bins")
    return frozenset(map(fold, bins)) if isinstance(bins, Mapping) else frozenset()


def _is_of_another(context: Any, original: Any, said: Description) -> bool:
    """Whether a release says that it was made of a query, or of another table that is here too.

    A table that is not here may have had another name then.
    """
    if not said.original or original.given.strip().startswith("("):
        return False
    if said.original == QUERY:
        return True
    asked = table_name(original.given)
    return not same_name(said.original, asked) and bool(context.relation("original", said.original).visible)
