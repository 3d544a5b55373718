"""workload_error: relative errors of a whole random workload, all queries answered at once.

Measures |estimate - truth| / |truth| of n random queries (see `workload`), one row a query. Queries whose truth is
0 have no relative error: they are redrawn, and counted in `redrawn`. Releases of every format are answered, each query
by its closed form: as relative_error answers it with engine := 'closed', and not from plausible tables, which 'auto'
takes for some releases. A person's list of nodes counts once for each row the original has.
Cost: O(rows * attributes * n / 64) for the predicates, O(distinct rows * n) for the sums.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.measures.queries.estimates import SPREAD
from duckdb_anon.measures.queries.query_tables import in_name_of
from duckdb_anon.measures.queries.workload import Workload, WorkloadSpec, draw, query_texts, replaced
from duckdb_anon.measures.queries.workload_answers import estimated_answers, true_answers
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import Answer, Parameter, Params, Report
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import ident
from duckdb_anon.model.release_formats import EVERY

_AGGREGATE = re.compile(
    r'\s*(?:(count)\s*\(\s*\*\s*\)|(sum)\s*\(\s*(?:"((?:[^"]|"")+)"|([^"()\s]+))\s*\))\s*', re.IGNORECASE
)
_ROUNDS = 50
PARAMETERS = (
    Parameter("n", "number of queries", "integer", 1000, low=1, high=100_000),
    Parameter("dims", "quasi-identifiers with a predicate in each query (default: 4, or all if fewer)", "integer",
              low=1),
    Parameter("aggregate", "'count(*)' or 'sum(column)'", "text", "count(*)"),
    Parameter("selectivity", "expected share of rows (style 'default') or of each domain, in (0, 1]", "number", 0.05,
              high=1, above=0),
    Parameter("predicate_on_sensitive", "true adds a predicate on the (first) sensitive column", "boolean", False),
    Parameter("style", "'default' (Xiao and Tao 2006), 'half' (Li et al. 2020: a share of each domain), 'random_size' "
              "(Hasan et al. 2018)", "text", "default", ("default", "half", "random_size")),
)  # fmt: skip


def spec_of(params: Params) -> WorkloadSpec:
    """The workload asked for."""
    dims = params["dims"] or min(4, len(params["roles"].qi))
    return WorkloadSpec(params["n"], dims, params["selectivity"], params["predicate_on_sensitive"], params["style"])


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Read the aggregate: adds `column`, None for COUNT."""
    found = _AGGREGATE.fullmatch(params["aggregate"])
    if not found:
        raise ParameterError(
            f"aggregate := '{params['aggregate']}' is neither count(*) nor sum(column); for other "
            "aggregates write the queries and use relative_error"
        )
    quoted = found.group(3).replace('""', '"') if found.group(3) else None
    return {**params, "column": quoted or found.group(4)}


def draw_workload(original: ReadTable, params: Params, rng: np.random.Generator) -> Workload:
    """Draw queries over the original's domains."""
    if not original.rows:
        raise RequirementError("the table is empty; its columns have no values to ask for")
    roles = params["roles"]
    qi = [original.attribute(info.name) for info in roles.qi]
    sensitive = None
    if roles.sensitive and params["predicate_on_sensitive"]:
        name = roles.sensitive[0].name
        if not original.columns[name].plain:
            raise ColumnError(
                f"predicate_on_sensitive := true asks for single values, but '{name}' holds lists; ask for "
                f"list_contains({name}, value) with relative_error"
            )
        sensitive = original.attribute(name)
    return draw(qi, sensitive, spec_of(params), rng)


def texts(workload: Workload, original: ReadTable, params: Params) -> list[str]:
    """The queries as SQL over the original."""
    names = [ident(name) for name in workload.attributes]
    literals = {a: original.columns[a].domain.literals for a in workload.attributes}
    return query_texts(workload, params["tables"][0], params["aggregate"].strip(), names, literals)


def _summed(table: ReadTable, params: Params) -> str | None:
    if params["column"] is None:
        return None
    folded = {fold(name): name for name in table.columns}
    name = folded.get(fold(params["column"]))
    if name is None:
        raise ColumnError(
            f"workload_error: sum({params['column']}): there is no labelled column of that name"
            f"{nearest(params['column'], table.columns)}; there are {listed(table.columns)}"
        )
    return name


@Report(
    summary="relative error of each query of a random workload, release against original",
    paper="Xiao and Tao (2006), Anatomy, section 6; Li et al. (2020), section 5.3; Hasan et al. (2018)",
    example="FROM workload_error('people', 'boxes', 100, dims := 2, aggregate := 'sum(salary)')",
    section="Queries",
    smallest="n := 5, dims := 1",
    trials=("n := 6, dims := 2, selectivity := 0.5", "n := 6, dims := 1, aggregate := 'sum({number})'"),
    parameters=(
        *PARAMETERS,
        SPREAD,
    ),
    returns={
        "query_id": "BIGINT",
        "query": "VARCHAR",
        "original": "DOUBLE",
        "estimate": "DOUBLE",
        "relative_error": "DOUBLE",
        "redrawn": "BIGINT",
    },
    unit="any",
    tables=("original", "release"),
    reads="tables",
    answers=EVERY,
    literals=True,
    queried=("release",),
    refine=refine,
)
def workload_error(call: MeasureCall) -> Answer:
    """One row a query with a truth other than 0."""
    original, params, rng = call.original, _params_of(call), call.rng
    workload, column = draw_workload(original, params, rng), _summed(original, params)
    truth = true_answers(workload, original, column)
    redrawn = 0
    for _ in range(_ROUNDS):
        zero = truth == 0
        if not zero.any():
            break
        redrawn += int(zero.sum())
        workload = replaced(workload, draw_workload(original, params, rng), zero)
        truth = true_answers(workload, original, column)
    with in_name_of("workload_error"):
        estimate = estimated_answers(workload, original, call.queried, column, params["spread"] == "learnt")
    chosen = np.flatnonzero(truth != 0)
    every = texts(workload, original, params)
    return {
        "query_id": chosen + 1,
        "query": [every[i] for i in chosen],
        "original": truth[chosen],
        "estimate": estimate[chosen],
        "relative_error": np.abs(estimate[chosen] - truth[chosen]) / np.abs(truth[chosen]),
        "redrawn": np.full(len(chosen), redrawn),
    }


@Report(
    summary="texts of random COUNT or SUM queries with predicates on some quasi-identifiers",
    paper="Xiao and Tao (2006), Anatomy, section 6; Li et al. (2020), section 5.3; Hasan et al. (2018)",
    example="FROM workload('people', 10, dims := 2)",
    section="Queries",
    smallest="n := 5, dims := 1",
    parameters=PARAMETERS,
    returns={"query_id": "BIGINT", "query": "VARCHAR"},
    unit="any",
    tables=("original",),
    reads="tables",
    literals=True,
    refine=refine,
)
def workload(call: MeasureCall) -> Answer:
    """One row a query."""
    params = _params_of(call)
    workload = draw_workload(call.original, params, call.rng)
    return {"query_id": np.arange(1, workload.n + 1), "query": texts(workload, call.original, params)}


def _params_of(call: MeasureCall) -> Params:
    return {**call.params, "roles": call.roles}
