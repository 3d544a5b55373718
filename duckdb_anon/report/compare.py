"""compare: releases of one table side by side, what an attacker gains and what an analyst loses.

Measures nothing of its own: one row a release, put together from k_anonymity, l_diversity, slicing_diversity,
disclosure, information_loss and workload_error, each of which names its paper. All releases answer the same random
workload. `l` is 1 over the highest probability of a sensitive value to somebody who knows all quasi-identifiers: in
a class or a bucket, or over the buckets of a sliced release. A figure that makes no sense for a release's shape
is NULL: classes of sliced, noisy or randomized rows and of lists of nodes, disclosure and the loss of replaced values
without `row_id`, disclosure of noisy counts and of lists of nodes (see `fragment_risk`). Cost: that of its parts.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from duckdb_anon.engine.quoting import literal
from duckdb_anon.measures.risk.classes import CLASSES, VALUES
from duckdb_anon.measures.risk.disclosure import MEASURE as DISCLOSURE
from duckdb_anon.model.entries import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.parameters import MOST_SEED
from duckdb_anon.model.shapes import EVERY
from duckdb_anon.rewrite.schema import TableInfo, contents_of, list_type

FIGURES = ("k", "l", "identity", "attribute", "iloss", "ncp", "mean_error", "median_error")


def plan_compare(original: TableInfo, releases: Sequence[TableInfo], params: Params) -> str:
    """Write the SQL of compare.

    Args:
        original: the original, with roles.
        releases: its releases, in the order of the rows.
        params: `n`, `dims`, `aggregate`, `selectivity` and `predicate_on_sensitive` of the workload, `p_match`, `seed`.

    Returns:
        SELECT with columns release, shape VARCHAR, rows BIGINT, k, l, identity, attribute, iloss, ncp,
        mean_error, median_error DOUBLE.
    """
    seed = params["seed"] if params["seed"] is not None else secrets.randbelow(2**31)
    return "\nunion all by name\n".join(_row(original, release, {**params, "seed": seed}) for release in releases)


def _row(original: TableInfo, release: TableInfo, params: Params) -> str:
    contents = contents_of(release, original)
    shape = contents.shape
    first, second = literal(original.name), literal(release.name)
    qi = [column for column, role in original.roles.items() if role == "quasi"]
    sensitive = [column for column, role in original.roles.items() if role == "sensitive"]
    linked = bool(contents.source)
    figures = dict.fromkeys(FIGURES, "null")
    # the measures of classes do not see the original: what is its own is named to them
    named = {column.lower() for column in qi}
    rest = [content.field or content.carrier for column, content in contents.columns.items() if column not in named]
    alike = shape not in ("sliced", "persons")
    if alike and qi and contents.answered(CLASSES):
        figures["k"] = f"(select k from k_anonymity({second}, qi := {literal(qi)}, keep := {literal(rest)}))"
    if alike and qi and sensitive and contents.answered(VALUES):
        classes = [
            f"l_diversity({second}, qi := {literal(qi)}, sensitive := {literal(name)}, "
            f"keep := {literal([other for other in rest if other.lower() != name.lower()])})"
            for name in sensitive
        ]
        lowest = [f"(select value from {one} where measure = 'frequency')" for one in classes]
        figures["l"] = f"least({', '.join(lowest)})"
    if shape == "sliced" and qi and sensitive:
        figures["l"] = f"(select l from slicing_diversity({first}, {second}))"
    if linked and sensitive and contents.answered(DISCLOSURE.answers):
        risk = f"disclosure({first}, {second}, p_match := {params['p_match']})"
        figures |= {name: f"(select {name} from {risk})" for name in ("identity", "attribute")}
    if shape != "persons" and (linked or shape in ("boxes", "counts", "sliced")):
        loss = f"information_loss({first}, {second}) where attribute in {_list(qi)}"
        figures |= {name: f"(select avg({name}) from {loss})" for name in ("iloss", "ncp")}
    asked = {**params, "predicate_on_sensitive": _predicate(original, sensitive, params)}
    source = f"\nfrom {_workload(first, second, len(qi), asked)} as _error"
    figures |= {"mean_error": "avg(_error.relative_error)", "median_error": "median(_error.relative_error)"}
    shown = ", ".join(f"({sql})::double as {name}" for name, sql in figures.items())
    rows = f"(select count(*) from {release.sql}) as rows"
    return f"select {second} as release, '{shape}' as shape, {rows}, {shown}{source}"


def _workload(original: str, release: str, qi: int, params: Params) -> str:
    return (
        f"workload_error({original}, {release}, n := {params['n']}, dims := {params['dims'] or min(4, qi)}, "
        f"aggregate := {literal(params['aggregate'])}, selectivity := {params['selectivity']}, "
        f"predicate_on_sensitive := {params['predicate_on_sensitive']}, "
        f"seed := {params['seed']})"
    )


def _predicate(original: TableInfo, sensitive: Sequence[str], params: Params) -> bool:
    """Whether queries also ask for sensitive values: counts without it are exact wherever only those were hidden."""
    given = params["predicate_on_sensitive"]
    if given is not None:
        return bool(given)
    counts = params["aggregate"].strip().lower().startswith("count")
    return counts and bool(sensitive) and list_type(original.types[sensitive[0].lower()]) is None


def _list(names: Sequence[str]) -> str:
    return "(" + ", ".join(literal(name) for name in names) + ")"


def _plan(context: Any, params: Params) -> str:
    relations = [context.relation("releases", name) for name in params["releases"]]
    original = context.table_info(context.relation("original"), relations)
    releases = [context.table_info(relation) for relation in relations]
    return plan_compare(original, releases, params)


MEASURE = Query(
    name="compare",
    summary="releases of one table side by side: classes, disclosure, information loss, query error",
    paper="see k_anonymity, l_diversity, disclosure, information_loss and workload_error",
    example="FROM compare('people', ['release', 'boxes', 'buckets'], n := 100)",
    parameters=(
        Parameter("original", "the original table, its columns labelled", "any", REQUIRED),
        Parameter("releases", "names of its releases, ['a', 'b']", "names", REQUIRED),
        Parameter("n", "queries of the workload", "integer", 1000, low=1, high=100_000),
        Parameter(
            "dims", "quasi-identifiers with a predicate in each query (default: 4, or all if fewer)", "integer", low=1
        ),
        Parameter("aggregate", "'count(*)' or 'sum(column)'", "text", "count(*)"),
        Parameter("selectivity", "expected share of rows a query selects, in (0, 1]", "number", 0.05, above=0, high=1),
        Parameter(
            "predicate_on_sensitive",
            "whether queries also ask for sensitive values (default: counts do, sums do not)",
            "boolean",
        ),
        Parameter(
            "p_match", "chance that the attacker knows a quasi-identifier, in [0, 1]", "number", 0.7, low=0, high=1
        ),
        Parameter("seed", "whole number that makes the workload repeatable", "integer", low=0, high=MOST_SEED),
    ),
    plan=_plan,
    answers=EVERY,
    tables=("original",),
)
