"""rewrite_query: the estimator of a query over the original, as SQL over a release.

Measures nothing itself: the text it returns answers the query from the release, whatever the release's shape. The
models are those of `duckdb_anon.rewrite`: values inside boxes by shares learnt from all boxes of a column (Dempster,
Laird and Rubin 1977; functions of this package), or uniform overlap (Zhang et al. 2007; Xiao and Tao 2006), whose text
runs in the stock DuckDB shell without this package; independence inside buckets (Xiao and Tao 2006, Anatomy; Hasan et
al. 2018).

The text is of the release as it is committed when it is written: which texts are values and which are nodes, and
whether its rows are those of its description, without which there are no bounds. Another release of that name, or one
that is changed in an open transaction, takes a text of its own.
Cost: planning only.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.duckdb_metadata import describing
from duckdb_anon.measures.queries.query_tables import in_name_of, query_tables
from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.learnt import Spread
from duckdb_anon.model.release_formats import EVERY
from duckdb_anon.rewrite.dialects import DIALECTS, spoken
from duckdb_anon.rewrite.rewriter import rewrite


def _plan(context: Any, params: Params) -> str:
    with in_name_of("rewrite_query"):
        original, release, others = query_tables(context, params["query"], params["bounds"])
        spread: Spread = params["spread"]
        if spread == "learnt" and params["dialect"] != "duckdb":
            raise RewriteError(
                f"spread := 'learnt' takes functions that {params['dialect']} does not have; say 'uniform'"
            )
        how = params["bounds"], True, spread, describing(context.catalog)
        text = rewrite(params["query"], original, release, others, *how)
        return spoken(text, params["dialect"])


MEASURE = Query(
    name="rewrite_query",
    summary="the SQL text that estimates a query's answer from a release",
    paper="uniform overlap: Zhang et al. (2007), Xiao and Tao (2006); buckets: Xiao and Tao (2006), Anatomy",
    example="SELECT rewrite_query('SELECT count(*) FROM people WHERE age < 40', 'people', 'boxes')",
    section="Queries",
    smallest="query := 'SELECT count(*) AS n FROM {original}'",
    parameters=(
        Parameter("query", "one SELECT over the original, as an analyst would write it", "text", REQUIRED),
        Parameter("original", "the original table", "any", REQUIRED),
        Parameter("release", "its release", "any", REQUIRED),
        Parameter(
            "bounds",
            "'sure' adds NAME_low and NAME_high: hard bounds where there are any, else a 95% interval where the "
            "method's randomness is known; 'likely' prefers the interval; 'hard' adds hard bounds only; 'none'. Only a "
            "release that duckdb_anon.release() or .release wrote has any",
            "text",
            "none",
            ("none", "hard", "sure", "likely"),
        ),
        Parameter(
            "spread",
            "distribution of records inside generalized cells: 'uniform', in SQL that runs in any DuckDB, "
            "or 'learnt' from the whole release, which errs less and needs a connection with this package",
            "text",
            "uniform",
            ("learnt", "uniform"),
        ),
        Parameter("dialect", "SQL dialect of the text: 'duckdb' or 'spark'", "text", "duckdb", DIALECTS),
        *ROLE_PARAMETERS,
    ),
    plan=_plan,
    answers=EVERY,
    tables=("original", "release"),
    scalar=True,
)
