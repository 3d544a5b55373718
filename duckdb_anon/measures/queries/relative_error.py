"""relative_error: one query, its answer on the original and its estimate from the release, side by side.

Measures |estimate - truth| / |truth| for every group and aggregate (the error Zhang et al. 2007 and Xiao and
Tao 2006 report). A truth of 0 has no relative error (NULL). Estimates keep their sign. The release's column
types say how it is read; see `duckdb_anon.rewrite`.

Cost: the query twice, once on each table; the estimate is one pass over the release.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.measures.queries.query_tables import PAIRS, in_name_of, query_tables
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.release_formats import EVERY
from duckdb_anon.rewrite.comparison import Wanted, comparison

BOUNDS = Parameter(
    "bounds",
    "low and high: 'sure': hard bounds where they exist, otherwise a 95% interval where the "
    "method's randomness is published; 'likely': the interval first, by replay of the release for imputed answers and "
    "for muco and rank_swap, which takes seconds the first time; 'hard': hard bounds only; 'none'. NULL unless "
    "duckdb_anon.release(), .release or duckdb-anon release wrote the release",
    "text",
    "sure",
    ("sure", "likely", "hard", "none"),
)
SPREAD = Parameter(
    "spread",
    "distribution of records inside generalized cells: 'learnt' from the whole release, or "
    "'uniform', as in most papers",
    "text",
    "learnt",
    ("learnt", "uniform"),
)
ENGINE = Parameter(
    "engine",
    "what answers: 'closed' a closed form, 'imputed' plausible tables (see impute); 'auto' plausible tables where they "
    "err less (releases of generalized cells with 1,000 to 500,000 rows, buckets and slices, and all but counts of "
    "several randomized columns) and where no closed form exists, unless cells are spread evenly",
    "text",
    "auto",
    ("auto", "closed", "imputed"),
)


@Query(
    summary="a query answered on the original and estimated from the release, with bounds or 95% intervals",
    paper="relative error: Zhang et al. (2007); Xiao and Tao (2006), Anatomy",
    example="FROM relative_error('SELECT gender, count(*) FROM people GROUP BY gender', 'people', 'boxes')",
    section="Queries",
    smallest="query := 'SELECT count(*) AS n FROM {original}'",
    trials=(
        "query := 'SELECT {text}, count(*), sum({number}) AS total FROM {original} WHERE {number} < 30 GROUP BY ALL'",
        "query := 'SELECT count(*) AS n FROM {original} WHERE \"{sensitive}\" IS NOT NULL'",
    ),
    parameters=(
        Parameter("query", "one SELECT over the original, as an analyst would write it", "text", REQUIRED),
        Parameter("original", f"the original table, {PAIRS}", "any", REQUIRED),
        Parameter("release", "its release, of one original"),
        BOUNDS,
        SPREAD,
        ENGINE,
        *ROLE_PARAMETERS,
    ),
    answers=EVERY,
    tables=("original", "release"),
)
def relative_error(context: Any, params: Params) -> str:
    """One row a measure of each group, with the answer of the original."""
    with in_name_of("relative_error"):
        original, release, others = query_tables(context, params["query"], params["bounds"])
        wanted = Wanted(params["bounds"], params["spread"], params["engine"])
        return comparison(params["query"], original, release, others, wanted)
