"""cube_error: relative errors of all cells of a data cube, release against original.

Measures |estimate - truth| / |truth| for every group of every subset of the dimensions (Guo, Ying and Wu 2011,
experiments on CUBE queries; the base cells are the rows that name all dimensions). Cells whose truth is 0 have
no relative error (NULL) and are left out by averages. Estimates keep their sign.

Cost: one CUBE over each table. A release of boxes spreads each box over its values of all dimensions at once,
so ask for few dimensions of wide domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.measures.queries.query_tables import in_name_of, query_tables
from duckdb_anon.measures.queries.relative_error import BOUNDS, ENGINE, SPREAD
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.learnt import Spread
from duckdb_anon.model.release_formats import EVERY
from duckdb_anon.rewrite.answer import Engine
from duckdb_anon.rewrite.comparison import Wanted, comparison
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.trees import quoted

MOST_DIMENSIONS = 5


def plan_cube_error(
    original: TableInfo,
    release: TableInfo,
    dims: Sequence[str] | None = None,
    aggregate: str = "count(*)",
    bounds: Bounds = "sure",
    spread: Spread = "learnt",
    engine: Engine = "auto",
) -> str:
    """SELECT of columns dims VARCHAR[], then those of relative_error; by default up to 5 quasi-identifiers."""
    chosen = list(dims) if dims else [c for c, role in original.roles.items() if role == "quasi"]
    if not chosen or (not dims and len(chosen) > MOST_DIMENSIONS):
        raise ParameterError(
            f"cube_error: dims is missing and {original.name} has {len(chosen)} quasi-identifiers; name 1 to "
            f"{MOST_DIMENSIONS} columns, dims := ['age', 'sex']"
        )
    for column in chosen:
        if fold(column) not in original.types:
            columns = [name for name, _ in original.columns]
            raise ColumnError(
                f"cube_error: there is no column '{column}' in {original.name}{nearest(column, columns)}; its "
                f"columns are {listed(columns)}"
            )
    spelled = list(dict.fromkeys(original.spelled(column) for column in chosen))
    names = ", ".join(quoted(column) for column in spelled)
    query = f"SELECT {names}, {aggregate} FROM {original.sql} GROUP BY CUBE({names})"
    return comparison(query, original, release, (), Wanted(bounds, spread, engine), "map_keys(keys) as dims, ")


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
        BOUNDS,
        SPREAD,
        ENGINE,
        *ROLE_PARAMETERS,
    ),
    answers=EVERY,
    tables=("original", "release"),
)
def cube_error(context: Any, params: Params) -> str:
    """One row a cell of the cube."""
    with in_name_of("cube_error"):
        original, release, _ = query_tables(context, "select 1", params["bounds"])
        how = params["bounds"], params["spread"], params["engine"]
        return plan_cube_error(original, release, params["dims"], params["aggregate"], *how)
