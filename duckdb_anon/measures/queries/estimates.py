"""estimate, relative_error, cube_error, rewrite_query: a query over the original, answered from its release.

estimate is for analysts who have the release alone. The query names the original, whose name and columns are in the
release's description (`publish` ships it); no row of the original is read, so the original need not be there. Rows have
the query's own key columns, and a row for each measure; HAVING, ORDER BY and LIMIT hold of the estimates.
relative_error puts the answer of the original next to it: |estimate - truth| / |truth| for every group and aggregate
(Zhang et al. 2007; Xiao and Tao 2006). A truth of 0 has no relative error (NULL); estimates keep their sign.
cube_error does so for every group of every subset of the dimensions (Guo, Ying and Wu 2011, experiments on CUBE
queries; the base cells are the rows that name all dimensions).
rewrite_query gives the SQL of the estimate. It calls functions of this package that learn how the records of a cell are
spread (Dempster, Laird and Rubin 1977); `spread := 'uniform'` spreads them evenly, and runs in a DuckDB without this
package. The first line of the text says which it is.
Cost: one pass over the release, and the query on the original; rewrite_query: planning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog.catalog import require_visible
from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.measures.queries.query_tables import (
    PAIRS,
    in_name_of,
    pairs_of,
    query_tables,
    several_tables,
    tables_around,
)
from duckdb_anon.model.errors import ColumnError, ParameterError, RewriteError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, read_description
from duckdb_anon.model.release_formats import EVERY
from duckdb_anon.model.released_columns import Spread
from duckdb_anon.rewrite.comparison import Wanted, answers, comparison
from duckdb_anon.rewrite.dialects import DIALECTS, spoken
from duckdb_anon.rewrite.marks import NOTE
from duckdb_anon.rewrite.query.parse import parse
from duckdb_anon.rewrite.query.trees import quoted
from duckdb_anon.rewrite.rewriter import rewrite

MOST_DIMENSIONS = 5
_UNIFORM_OVERLAP = "uniform overlap: Zhang et al. (2007), Xiao and Tao (2006); buckets: Xiao and Tao (2006), Anatomy"
_ASKED = Parameter("query", "one SELECT over the original, as an analyst would write it", "text", REQUIRED)
_PAIR = (
    _ASKED,
    Parameter("original", f"the original table, {PAIRS}", "any", REQUIRED),
    Parameter("release", "its release, of one original"),
)
BOUNDS = Parameter(
    "bounds",
    "low and high: 'sure': hard bounds where they exist, otherwise a 95% interval where the "
    "method's randomness is published; 'likely': the interval first, by replay of the release for imputed answers and "
    "for muco and rank_swap, which takes seconds the first time; 'hard': hard bounds only; 'none'. NULL unless "
    "duckdb_anon.release(), anon_release or duckdb-anon release wrote the release",
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
    "err less (releases of generalized cells with 1,000 to 500,000 rows, buckets and slices, and several randomized "
    "columns, but for counts and, from 5,000 rows, sums of them) and where no closed form exists, unless cells are "
    "spread evenly",
    "text",
    "auto",
    ("auto", "closed", "imputed"),
)
_HOW = (BOUNDS, SPREAD, ENGINE, *ROLE_PARAMETERS)
_PLAUSIBLE = (
    "plausible tables: runs where duckdb-anon is loaded; spread := 'uniform' gives a closed form where one exists"
)
_LEARNT = "spread := 'learnt', as estimate() answers: runs where duckdb-anon is loaded; 'uniform' runs anywhere"
_UNIFORM = "spread := 'uniform': records are spread evenly over their cells; estimate() answers with 'learnt'"


@Query(
    summary="a query over the original, answered from a release alone, with bounds or 95% intervals",
    paper=_UNIFORM_OVERLAP,
    example="FROM estimate('SELECT gender, count(*) FROM people GROUP BY gender', 'boxes', original := 'people')",
    section="Queries",
    smallest="query := 'SELECT count(*) AS n FROM {original}', original := '{original}'",
    parameters=(
        _ASKED,
        Parameter("release", f"a release of it, {PAIRS}", "any", REQUIRED),
        Parameter("original", "name of the original or its shape (default: as the release says)", "text"),
        *_HOW,
    ),
    tables=("release",),
)
def estimate(context: Any, params: Params) -> str:
    """One row a measure of each group of the answer."""
    with in_name_of("estimate"):
        pairs = pairs_of(context, "release")
        if pairs:
            found = several_tables(context, params["query"], pairs, params["bounds"])
            return answers(params["query"], *found, _how(params))
        release = context.relation("release")
        require_visible("estimate", release)
        description = read_description(release.comment)
        name = params["original"] or (description.original if description is not None else "")
        if not name or name == QUERY:
            parse(params["query"])  # what is wrong with the query comes first
            raise RewriteError(
                f"{release.given} does not name its original; say original := '...', the table whose columns the "
                "query asks for (duckdb_anon.release and publish write it down)"
            )
        original = context.relation("original", name)
        if not original.visible:
            raise RewriteError(
                f"neither {name} nor its shape is here; publish {release.given} with its original in the file, "
                f"or make an empty table {name} with the original's columns"
            )
        found = tables_around(context, params["query"], original, release, params["bounds"])
        return answers(params["query"], *found, _how(params))


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
    parameters=(*_PAIR, *_HOW),
    answers=EVERY,
    tables=("original", "release"),
)
def relative_error(context: Any, params: Params) -> str:
    """One row a measure of each group, with the answer of the original."""
    with in_name_of("relative_error"):
        found = query_tables(context, params["query"], params["bounds"])
        return comparison(params["query"], *found, _how(params))


@Query(
    summary="relative error of every cell of a data cube, release against original",
    paper="Guo, Ying and Wu (2011), section V",
    example="FROM cube_error('people', 'boxes', dims := ['gender', 'education'])",
    section="Queries",
    smallest="dims := ['{text}']",
    parameters=(
        Parameter("original", "the original table", "any", REQUIRED),
        Parameter("release", "its release", "any", REQUIRED),
        Parameter("dims", "columns of the cube (default: the quasi-identifiers, up to 5)", "names"),
        Parameter("aggregate", "an aggregate, 'count(*)', 'sum(cost)', ...", "text", "count(*)"),
        *_HOW,
    ),
    answers=EVERY,
    tables=("original", "release"),
)
def cube_error(context: Any, params: Params) -> str:
    """One row a cell of the cube."""
    with in_name_of("cube_error"):
        original, release, _ = query_tables(context, "select 1", params["bounds"])
        dims = params["dims"] or [name for name, role in original.roles.items() if role == "quasi"]
        if not dims or (not params["dims"] and len(dims) > MOST_DIMENSIONS):
            raise ParameterError(
                f"cube_error: dims is missing and {original.name} has {len(dims)} quasi-identifiers; name 1 to "
                f"{MOST_DIMENSIONS} columns, dims := ['age', 'sex']"
            )
        for column in dims:
            if fold(column) not in original.types:
                columns = [name for name, _ in original.columns]
                raise ColumnError(
                    f"cube_error: there is no column '{column}' in {original.name}{nearest(column, columns)}; its "
                    f"columns are {listed(columns)}"
                )
        names = ", ".join(quoted(name) for name in dict.fromkeys(original.spelled(column) for column in dims))
        query = f"SELECT {names}, {params['aggregate']} FROM {original.sql} GROUP BY CUBE({names})"
        return comparison(query, original, release, (), _how(params), "map_keys(keys) as dims, ")


def _how(params: Params) -> Wanted:
    return Wanted(params["bounds"], params["spread"], params["engine"])


@Query(
    summary="the SQL text that estimates a query's answer from a release",
    paper=_UNIFORM_OVERLAP,
    example="SELECT rewrite_query('SELECT count(*) FROM people WHERE age < 40', 'people', 'boxes')",
    section="Queries",
    smallest="query := 'SELECT count(*) AS n FROM {original}'",
    parameters=(
        *_PAIR,
        Parameter(
            "bounds",
            "'sure' adds NAME_low and NAME_high: hard bounds where there are any, else a 95% interval where the "
            "method's randomness is known; 'likely' prefers the interval; 'hard' adds hard bounds only; 'none'. Only a "
            "release that duckdb_anon.release() or anon_release wrote has any",
            "text",
            "none",
            ("none", "hard", "sure", "likely"),
        ),
        replace(SPREAD, doc=f"{SPREAD.doc}, whose SQL runs anywhere; that of 'learnt' calls functions of this package"),
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
        notes: list[str] = []
        text = rewrite(params["query"], original, release, others, params["bounds"], True, spread, notes)
        line = _PLAUSIBLE if release.reader.has_drawn else _LEARNT if spread == "learnt" else _UNIFORM
        head = "\n".join([f"-- {line}", *(f"{NOTE}{' '.join(note.split())}" for note in notes)])
        return f"{head}\n{text if dialect == 'duckdb' else spoken(text, dialect)}"
