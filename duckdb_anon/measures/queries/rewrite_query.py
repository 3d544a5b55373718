"""rewrite_query: the estimator of a query over the original, as SQL over a release.

The text gives the numbers of `estimate`: it calls functions of this package that learn how the records of a cell are
spread (Dempster, Laird and Rubin 1977). `spread := 'uniform'` spreads them evenly (Zhang et al. 2007; Xiao and Tao
2006) and runs in a DuckDB without this package. The first line of the text says which it is.
Cost: planning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.measures.queries.query_tables import PAIRS, in_name_of, query_tables
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.learnt import Spread
from duckdb_anon.model.release_formats import EVERY
from duckdb_anon.rewrite.dialects import DIALECTS, spoken
from duckdb_anon.rewrite.marks import NOTE
from duckdb_anon.rewrite.query.tables import PlausibleTables, recorded
from duckdb_anon.rewrite.rewriter import rewrite

_PLAUSIBLE = (
    "plausible tables: runs where duckdb-anon is loaded; spread := 'uniform' gives a closed form where one exists"
)
_LEARNT = "spread := 'learnt', as estimate() answers: runs where duckdb-anon is loaded; 'uniform' runs anywhere"
_UNIFORM = "spread := 'uniform': records are spread evenly over their cells; estimate() answers with 'learnt'"


@Query(
    summary="the SQL text that estimates a query's answer from a release",
    paper="uniform overlap: Zhang et al. (2007), Xiao and Tao (2006); buckets: Xiao and Tao (2006), Anatomy",
    example="SELECT rewrite_query('SELECT count(*) FROM people WHERE age < 40', 'people', 'boxes')",
    section="Queries",
    smallest="query := 'SELECT count(*) AS n FROM {original}'",
    parameters=(
        Parameter("query", "one SELECT over the original, as an analyst would write it", "text", REQUIRED),
        Parameter("original", f"the original table, {PAIRS}", "any", REQUIRED),
        Parameter("release", "its release, of one original"),
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
            "distribution of records inside generalized cells: 'learnt' from the release by functions of this package, "
            "or 'uniform', as in most papers, in SQL that runs anywhere",
            "text",
            "learnt",
            ("learnt", "uniform"),
        ),
        Parameter("dialect", "SQL dialect of the text: 'duckdb' or 'spark'", "text", "duckdb", DIALECTS),
        *ROLE_PARAMETERS,
    ),
    answers=EVERY,
    tables=("original", "release"),
    scalar=True,
)
def rewrite_query(context: Any, params: Params) -> str:
    """The text that estimates the answer."""
    with in_name_of("rewrite_query"):
        original, release, others = query_tables(context, params["query"], params["bounds"])
        dialect = params["dialect"]
        # other engines have no functions of this package
        spread: Spread = params["spread"] if dialect == "duckdb" else "uniform"
        how = params["bounds"], True, spread
        imputed: list[PlausibleTables] = []
        if release.drawn is not None:
            release = replace(release, drawn=recorded(release.drawn, imputed))
        notes: list[str] = []
        text = rewrite(params["query"], original, release, others, *how, notes)
        line = _PLAUSIBLE if imputed else _LEARNT if spread == "learnt" else _UNIFORM
        head = "\n".join([f"-- {line}", *(f"{NOTE}{' '.join(note.split())}" for note in notes)])
        return f"{head}\n{text if dialect == 'duckdb' else spoken(text, dialect)}"
