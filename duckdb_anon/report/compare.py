"""compare: releases of one table side by side, what an attacker gains and what an analyst loses.

Measures nothing of its own: one row a release, put together from k_anonymity, l_diversity, slicing_diversity,
linkage_risk, singling_out, information_loss and workload_error, each of which names its paper. All releases answer the
same random workload and meet the same attackers. `l` is 1 over the share of the most frequent sensitive value in a
class or a bucket, or over the buckets of a sliced release. `identity`, `attribute` and `advantage` are those of the
strongest attacker of linkage_risk, and `note` names it and those that did not run: the likelihood attackers need the
call, which the release's description contains. `singled_out` is the share of univariate predicates that hold for
exactly one released row and one person (singling_out); a sensitive column that is published as it is gives most of them
whatever the method does to the others, and `note` names it. A figure that makes no sense for a shape is NULL: classes
of sliced, noisy or randomized rows and of lists of nodes, risk and the loss of replaced values without `row_id`. Where
persons have several rows, releases of lists are compared, and others refused: their rows would be counted. A row
`together` says what those of the releases that the register lists reveal together (sequence_risk). Cost: that of its
parts, and one more run of a method that releases rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from duckdb_anon.engine.catalog.person_checks import check_described, refusing
from duckdb_anon.engine.records.register import registered_releases
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.risk.equivalence_classes import CLASSES, VALUES
from duckdb_anon.measures.risk.linkage_risk import P_MATCH, TARGETS, linkage_risk
from duckdb_anon.measures.risk.wp29 import singling_out
from duckdb_anon.measures.utility.information_loss import information_loss
from duckdb_anon.model.errors import ColumnError, ParameterError, listed
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.parameters import MOST_SEED
from duckdb_anon.model.release_formats import EVERY
from duckdb_anon.model.release_formats.duckdb_types import list_type
from duckdb_anon.rewrite.query.tables import TableInfo, contents_of

FIGURES = (
    "k", "l", "identity", "attribute", "advantage", "singled_out", "iloss", "ncp", "mean_error", "median_error",
)  # fmt: skip
_COLUMNS = (
    "null::varchar as release, null::varchar as shape, null::bigint as rows, "
    f"{', '.join(f'null::double as {name}' for name in FIGURES)}, null::varchar as note, null::varchar as predicates"
)
_MOST_JOINT = 500


def _together(context: Any, relation: Any, params: Params) -> list[str]:
    """One more row: what those of the releases that the register lists with a key reveal together."""
    known = {fold(entry.name) for _, entry in registered_releases(context.catalog.cursor, relation) if entry.key}
    names = [name for name in params["releases"] if fold(name) in known]
    if len(names) < 2:
        return []
    seed = "" if params["seed"] is None else f", seed := {params['seed']}"
    targets = min(params["targets"], _MOST_JOINT)
    call = f"sequence_risk({literal(relation.given)}, {literal(names)}, targets := {targets}{seed})"
    note = literal(f"what {listed(names)} reveal together, by sequence_risk")
    return [f"select 'together' as release, identity, attribute, {note} as note from {call} where release = 'together'"]


def _row(original: TableInfo, release: TableInfo, params: Params) -> str:
    """The figures of a release, each part of one row with the columns that it has."""
    contents = contents_of(release, original)
    shape = contents.shape
    first, second = literal(original.name), literal(release.name)
    qi = [column for column, role in original.roles.items() if role == "quasi"]
    sensitive = [column for column, role in original.roles.items() if role == "sensitive"]
    linked = bool(contents.source)
    parts = [f"select {second} as release, '{shape}' as shape, count(*) as rows from {release.sql}"]
    # the measures of classes do not see the original: what is its own is named to them
    named = {fold(column) for column in qi}
    rest = [content.field or content.carrier for column, content in contents.columns.items() if column not in named]
    alike = shape not in ("sliced", "persons")
    if alike and qi and contents.answered(CLASSES):
        parts.append(f"select min(k) as k from k_anonymity({second}, qi := {literal(qi)}, keep := {literal(rest)})")
    if alike and qi and sensitive and contents.answered(VALUES):
        classes = " union all ".join(
            f"from l_diversity({second}, qi := {literal(qi)}, sensitive := {literal(name)}, "
            f"keep := {literal([other for other in rest if fold(other) != fold(name)])})"
            for name in sensitive
        )
        parts.append(f"select min(value) as l from ({classes}) where measure = 'frequency'")
    if shape == "sliced" and qi and sensitive:
        parts.append(f"select min(l) as l from slicing_diversity({first}, {second})")
    if linked and contents.answered(linkage_risk.answers):
        parts.append(
            f"select identity, attribute, advantage, note from linkage_risk({first}, {second}, "
            f"p_match := {params['p_match']}, targets := {params['targets']}, seed := {params['seed']}) "
            "where attacker = 'strongest'"
        )
    else:
        why = "linkage_risk does not read this shape" if linked else "the release has no row_id"
        parts.append(f"select {literal(f'risk not measured: {why}')} as note")
    if contents.answered(singling_out.answers):
        # a bucket's counts are no values of a row
        columns = literal(qi if "buckets" in contents.shapes else [*qi, *sensitive])
        parts.append(
            "select attack as singled_out, 'singled_out: ' || attacks || ' predicates tried, ' || note as predicates "
            f"from singling_out({first}, {second}, mode := 'univariate', columns := {columns}, "
            f"seed := {params['seed']})"
        )
    has_loss = shape != "persons" and contents.answered(information_loss.answers)
    if has_loss and (linked or shape in ("boxes", "counts", "sliced")):
        parts.append(
            f"select avg(iloss) as iloss, avg(ncp) as ncp from information_loss({first}, {second}) "
            f"where list_contains({literal(qi)}, attribute)"
        )
    parts.append(
        "select avg(relative_error) as mean_error, median(relative_error) as median_error "
        f"from workload_error({first}, {second}, n := {params['n']}, dims := {params['dims'] or min(4, len(qi))}, "
        f"aggregate := {literal(params['aggregate'])}, selectivity := {params['selectivity']}, "
        f"predicate_on_sensitive := {_predicate(original, sensitive, params)}, seed := {params['seed']})"
    )
    return f"select * from {', '.join(f'({part})' for part in parts)}"


def _predicate(original: TableInfo, sensitive: Sequence[str], params: Params) -> bool:
    """Whether queries also ask for sensitive values: counts without it are exact wherever only those were hidden."""
    given = params["predicate_on_sensitive"]
    if given is not None:
        return bool(given)
    counts = fold(params["aggregate"].strip()).startswith("count")
    return counts and bool(sensitive) and list_type(original.types[fold(sensitive[0])]) is None


@Query(
    summary="releases of one table side by side: classes, the strongest attacker, information loss, query error",
    paper="see k_anonymity, l_diversity, linkage_risk, singling_out, information_loss and workload_error",
    example="FROM compare('people', ['release', 'boxes', 'buckets'], n := 100)",
    section="Choosing",
    smallest="releases := ['{release}'], n := 5, dims := 1",
    parameters=(
        Parameter("original", "the original table, its columns labelled", "any", REQUIRED),
        Parameter("releases", "names of its releases, ['a', 'b']", "names", REQUIRED, repeated=True),
        Parameter("n", "number of queries in the workload", "integer", 1000, low=1, high=100_000),
        Parameter("dims", "quasi-identifiers in each query (default: 4, or all if fewer)", "integer", low=1),
        Parameter("aggregate", "'count(*)' or 'sum(column)'", "text", "count(*)"),
        Parameter("selectivity", "expected share of rows a query selects, in (0, 1]", "number", 0.05, above=0, high=1),
        Parameter("predicate_on_sensitive", "also ask for sensitive values (default: counts do, not sums)", "boolean"),
        P_MATCH,
        TARGETS,
        Parameter("seed", "whole number that makes the workload repeatable", "integer", low=0, high=MOST_SEED),
    ),
    answers=EVERY,
    tables=("original",),
    unit="person",
)
def compare(context: Any, params: Params) -> str:
    """One row a release."""
    if not params["releases"]:
        raise ParameterError(f"releases := {params['releases']!r} names none; say releases := ['a', 'b']")
    relations = [context.relation("releases", name) for name in params["releases"]]
    relation = context.relation("original")
    original = context.table_info(relation, relations)
    releases = [context.table_info(relation) for relation in relations]
    seeded = params if params["seed"] is not None else {**params, "seed": secrets.randbelow(2**31)}
    rows = [_row(original, release, seeded) for release in releases]
    empty = f"select {_COLUMNS} where false"
    every = "\nunion all by name\n".join([empty, *rows, *_together(context, relation, params)])
    select = f"select * exclude (predicates) replace (concat_ws('; ', note, predicates) as note) from ({every})"
    roles = context.roles(relation, nested=True)
    if not roles.qi:
        raise ColumnError(
            f"no column of {relation.given} is labelled as quasi-identifier; COMMENT ON COLUMN "
            f"{relation.sql}.{ident(next(iter(relation.columns)))} IS 'anon: quasi'"
        )
    person = roles.person
    for table in (relation, *relations) if person is None else ():
        check_described(compare, table)
    # rows of a release of lists are persons, rows of others are counted as persons by the measures
    of_rows = any(contents_of(release, original).shape != "persons" for release in releases)
    return refusing(compare, select, relation.sql, person.name) if person and of_rows else select
