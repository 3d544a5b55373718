"""sensitive_edges: each value of a sensitive column has at least k records before a method sees it.

A sensitive column is published unchanged, so a unique wage identifies its holder, whatever becomes of the other
columns. `sensitive_edges := k` has the planner put a table with coarser values in the place of the
source: rare numbers and dates are joined with their neighbours and published as the mean, rare names become 'other'
(`kernels.rare_value_coding`). Methods, rules and the release then have these values alone, and a constant column of the
release has k. Carriers are rows of the source, individuals where a column identifies them; a method that leaves rows
out may show fewer of them. Where the call names no k, numbers and dates of a visible table have 10, which leaves their
sum as it is, names and NULL stay as they are, and the release has no such column.
A sensitive column with a hierarchy is refused: one_to_m_generalize and rmr publish its nodes, each of k persons; the
others publish leaves, and one in the place of rarer ones would be a false value.
Cost: a GROUP BY a column, and a join of the rows with its values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.kernels.rare_value_coding import OTHER, grouped, joined
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import ColumnInfo, Method, Parameter, Params, Roles
from duckdb_anon.model.release_formats import EDGES
from duckdb_anon.model.release_formats.duckdb_types import is_number, kind_of_type

PARAMETER = Parameter(
    EDGES.word,
    "minimum number of records (individuals) per released sensitive value: rare neighbouring values are published as "
    "their mean, rare categories become 'other'; 1 leaves all values unchanged (default: 10 for numbers and dates "
    "that are not randomized; categories are unchanged). A call that names it releases it as a "
    "column",
    "integer",
    low=1,
)
DEFAULT = 10
FUNCTION = "_anon_edges"
REST = "other"
SOURCE = "_anon_given"
_TEXT = ("VARCHAR", "ENUM(")


def takes_edges(entry: Method) -> bool:
    """Whether a method offers them: what depends on exact counts would break a promise of differential privacy."""
    return all(parameter.name != "epsilon" for parameter in entry.parameters)


def settled(entry: Method, roles: Roles, params: Params) -> Params:
    """Parameters of a call, with the default of `sensitive_edges`; 1 where values stay as they are."""
    if EDGES.word not in params:
        return params
    randomized = "randomized" in entry.formats and params["scope"] != "qi"
    joins = not randomized and any(map(is_measured, roles.sensitive))
    k = params[EDGES.word] or (DEFAULT if joins else 1)
    return {**params, EDGES.word: k}


def are_joined(params: Params) -> bool:
    """Whether a call with these settled parameters joins rare values."""
    return (params.get(EDGES.word) or 1) > 1


def is_measured(info: ColumnInfo) -> bool:
    """Whether a column has numbers or dates, which have means, or may have them, as its type is not visible yet."""
    return (info.kind == "ordered" or not (info.kind or info.type)) and not info.hierarchy


def edged(function: str, relation: Relation, roles: Roles, k: int, by_default: bool) -> tuple[str, Relation]:
    """CTEs, of which `SOURCE` has the rows with coarser values and `_anon_rn`, and the relation with their types."""
    person = None if roles.person is None else ident(roles.person.name)
    ctes = f"_anon_whole as materialized (select *, row_number() over () - 1 as _anon_rn from {relation.rows}),\n"
    replaced, joins, columns = [], [], dict(relation.columns)
    for number, info in enumerate(roles.sensitive):
        if by_default and not is_measured(info):
            continue
        text = info.type.startswith(_TEXT)
        value = f"{ident(info.name)}{'::varchar' if text else ''}"
        columns |= {info.name: "VARCHAR"} if text else {}
        ctes += _values(function, info, value, person, number, k, 0 if by_default else k)
        replaced.append(f"_anon_e{number}.r as {ident(info.name)}")
        joins.append(f"left join _anon_e{number} on _anon_whole.{value} is not distinct from _anon_e{number}.v")
    ctes += f"{SOURCE} as (select _anon_whole.* replace ({', '.join(replaced)}) from _anon_whole {' '.join(joins)}),\n"
    return ctes, replace(relation, columns=columns)


def joined_rows(function: str, relation: Relation, roles: Roles, k: int, by_default: bool) -> str:
    """SELECT of the rows with coarser values, in their order."""
    ctes, _ = edged(function, relation, roles, k, by_default)
    return f"with {ctes.rstrip().removesuffix(',')} select * exclude (_anon_rn) from {SOURCE} order by _anon_rn"


def require_joinable(entry: Method, relation: Relation, roles: Roles, k: int) -> None:
    """Refuse a call that names `sensitive_edges` for a column of which no values can be joined."""
    function = entry.name
    if not roles.sensitive:
        raise ColumnError(
            f"{function}: sensitive_edges := {k} needs a sensitive column. Say sensitive := '...' or COMMENT ON COLUMN "
            "... IS 'anon: sensitive'"
        )
    for info in roles.sensitive:
        _require_joinable(entry, relation, info, k)


def _require_joinable(entry: Method, relation: Relation, info: ColumnInfo, k: int) -> None:
    function = entry.name
    if info.hierarchy:
        if "persons" in entry.formats:
            raise ColumnError(
                f"{function}: sensitive_edges := {k} is for methods that publish sensitive values as they are. Here "
                f"k individuals or more have each published node of '{info.name}'. Leave it out and say k := {k}"
            )
        raise ColumnError(
            f"{function}: sensitive_edges := {k} joins values, and '{info.name}' has the hierarchy {info.hierarchy}, "
            "whose leaves alone can be released. Leave the hierarchy out, so that rare names become 'other', put a "
            "node in the place of its rare leaves in a SELECT, with a hierarchy of it, or take one_to_m_generalize, "
            "which publishes nodes that k persons have"
        )
    if not info.type:
        raise ColumnError(
            f"{function}: sensitive_edges := {k} needs the type of '{info.name}', which is not visible while the call "
            f"is planned. Commit {relation.given} first"
        )


def _values(function: str, info: ColumnInfo, value: str, person: str | None, number: int, k: int, missing: int) -> str:
    """CTEs `_anon_e{number}`: value v and published value r of one column; `missing`: fewest rows of NULL."""
    by, ordered, name = f"_anon_v{number}", info.kind != "nominal", info.name
    rare = literal(
        f"{function}: '{name}' is NULL in fewer than sensitive_edges := {k} rows. Leave them out, or give the missing "
        f"value a name [{RequirementError.code}]"
    )
    few = literal(
        f"{function}: sensitive_edges := {k} is more than the table has carriers of '{name}'. Leave the column out, or "
        f"say sensitive_edges := 1 for exact values [{RequirementError.code}]"
    )
    unnamed = literal(
        f"{function}: rare values of '{name}' have no name they could share. Cast it to VARCHAR, or leave categorical "
        f"out [{RequirementError.code}]"
    )
    counted = f"count(distinct {person})" if person else "count(*)"
    persons_of_values = "flatten(list(_anon_person order by i))" if person else "null::bigint[]"
    persons = f"(select distinct {person} from _anon_whole)"
    numbers = f"(select {person} as _anon_w, row_number() over () as _anon_person from {persons})"
    source = f"_anon_whole left join {numbers} on _anon_w is not distinct from {person}" if person else "_anon_whole"
    carriers = "list(distinct _anon_person)" if person else "null::bigint[]"
    mean = _mean(f"_anon_whole.{value}", info.type) if ordered else "null"
    kind = literal("") if info.type else "any_value(typeof(v))"
    fitting = (
        "r" if info.type else f"coalesce({', '.join(f'try(cast_to_type(r.m{k}, r.least))' for k in range(3))}, r.least)"
    )
    lists = f"counts: list(n order by i), persons: {persons_of_values}"
    other = literal(REST) if info.type.startswith(_TEXT) else f"error({unnamed})"
    return (
        f"{by} as materialized (select {value} as v, {counted} as n, {carriers} as _anon_person, "
        f"row_number() over (order by {value} nulls last) - 1 as i from {source} group by {value}),\n"
        f"{by}t as materialized (select {FUNCTION}({{k: {k}::bigint, ordered: {str(ordered).lower()}, "
        f"type: {kind}, {lists}}}) as r from {by} where v is not null),\n"
        f"_anon_m{number} as materialized (select g, {fitting} as r from (select t.r[a.i + 1] as g, {mean} as r "
        f"from _anon_whole join {by} as a on _anon_whole.{value} = a.v cross join {by}t as t "
        f"where t.r[a.i + 1] < {OTHER} group by g)),\n"
        f"_anon_e{number} as materialized (select a.v, case when a.v is null then case when a.n < {missing} then "
        f"error({rare}) end when t.r is null or len(t.r) = 0 then error({few}) when t.r[a.i + 1] = {OTHER} "
        f"then {other} else coalesce(m.r, b.v) end as r from {by} as a cross join {by}t as t left join {by} as b "
        f"on b.i = t.r[a.i + 1] left join _anon_m{number} as m on m.g = t.r[a.i + 1]),\n"
    )


def _mean(value: str, kind: str) -> str:
    """SQL of the mean of values in their type: of the finite ones, where there are some.

    Of a type that is not known a STRUCT of the means as number, moment and time, and of the least value, in its type.
    """
    if not kind:
        means = [f"try_cast({value} as {each})" for each in ("double", "timestamp", "time")]
        finite = [f" filter (isfinite({each}))" for each in means[:2]] + [""]
        means = [f"m{k}: avg({mean}){only}" for k, (mean, only) in enumerate(zip(means, finite, strict=True))]
        return f"{{{', '.join(means)}, least: min({value})}}"
    if kind.startswith(("DATE", "TIMESTAMP")):
        moment = f"{value}{'::timestamp' if kind == 'DATE' else ''}"
        mean = f"avg({moment}) filter (isfinite({value}))"
    else:
        number = is_number(kind) or kind == "BIGNUM"
        mean = f"avg({value}::double) filter (isfinite({value}::double))" if number else f"avg({value})"
    return f"coalesce(try_cast({mean} as {kind}), min({value}))"


def published(call: pa.StructArray) -> pa.Array:
    """Place of the published value of each value, or less than 0 (`joined`, `grouped`); [] where k cannot be met."""
    answers = []
    for row in call:
        counts = np.array(row["counts"].as_py() or [], dtype=np.int64)
        persons = None if row["persons"].as_py() is None else row["persons"].values.to_numpy(zero_copy_only=False)
        kind = row["type"].as_py()
        k = row["k"].as_py() if not kind or kind_of_type(kind) == "ordered" else 1
        many = int(counts.sum()) if persons is None else len(np.unique(persons))
        make = joined if row["ordered"].as_py() else grouped
        answers.append(make(counts, k, persons) if many >= k else np.zeros(0, dtype=np.int64))
    return pa.array([a.tolist() for a in answers], pa.list_(pa.int64()))
