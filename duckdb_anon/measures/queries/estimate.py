"""estimate: a query over the original, answered from a release alone.

For analysts who have only the release. The query names the original, whose name and columns are in the release's
description (`publish` ships it); no row of the original is read, so the original need not be there.
Rows have the query's own key columns, and a row for each measure. Estimators and bounds are those of `relative_error`;
HAVING, ORDER BY and LIMIT hold of the estimates. Cost: one pass over the release, see `duckdb_anon.rewrite`.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.catalog.catalog import require_visible
from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.measures.queries.query_tables import PAIRS, in_name_of, pairs_of, several_tables, tables_around
from duckdb_anon.measures.queries.relative_error import BOUNDS, ENGINE, SPREAD
from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.release_comment import QUERY, read_description
from duckdb_anon.rewrite.comparison import Wanted, answers
from duckdb_anon.rewrite.query.parse import parse


@Query(
    summary="a query over the original, answered from a release alone, with bounds or 95% intervals",
    paper="uniform overlap: Zhang et al. (2007), Xiao and Tao (2006); buckets: Xiao and Tao (2006), Anatomy",
    example="FROM estimate('SELECT gender, count(*) FROM people GROUP BY gender', 'boxes', original := 'people')",
    section="Queries",
    smallest="query := 'SELECT count(*) AS n FROM {original}', original := '{original}'",
    parameters=(
        Parameter("query", "one SELECT over the original, as an analyst would write it", "text", REQUIRED),
        Parameter("release", f"a release of it, {PAIRS}", "any", REQUIRED),
        Parameter("original", "name of the original or its shape (default: as the release says)", "text"),
        BOUNDS,
        SPREAD,
        ENGINE,
        *ROLE_PARAMETERS,
    ),
    tables=("release",),
)
def estimate(context: Any, params: Params) -> str:
    """One row a measure of each group of the answer."""
    wanted = Wanted(params["bounds"], params["spread"], params["engine"])
    pairs = pairs_of(context, "release")
    if pairs:
        with in_name_of("estimate"):
            found = several_tables(context, params["query"], pairs, params["bounds"])
            return answers(params["query"], *found, wanted)
    release = context.relation("release")
    require_visible("estimate", release)
    description = read_description(release.comment)
    name = params["original"] or (description.original if description is not None else "")
    if not name or name == QUERY:
        with in_name_of("estimate"):
            parse(params["query"])  # what is wrong with the query comes first
        raise RewriteError(
            f"estimate: {release.given} does not name its original; say original := '...', the table whose columns the "
            "query asks for (duckdb_anon.release and publish write it down)"
        )
    original = context.relation("original", name)
    if not original.visible:
        raise RewriteError(
            f"estimate: neither {name} nor its shape is here; publish {release.given} with its original in the file, "
            f"or make an empty table {name} with the original's columns"
        )
    with in_name_of("estimate"):
        info, released, others = tables_around(context, params["query"], original, release, params["bounds"])
        return answers(params["query"], info, released, others, wanted)
