"""Slicing: columns of related attributes, permuted independently inside buckets.

Each record is released as its bucket and one STRUCT a column; values are not generalized. Guarantee: no record is
linked to a sensitive value with probability above 1/l, if all values of a bucket are equally likely to be its own. That
bounds shares, not what can be inferred from other buckets (Kifer 2009; `attribute_risk`). Columns are given or found by
k-medoids on 1 - phi squared. With a person column, buckets hold all records of an individual: no sensitive value
belongs to more than 1/l of a bucket's individuals or records, no individual has more than 1/l of the records, and the
sensitive attribute stands alone. Values constant over an individual's records are permuted record by record; what is
known of all of them together is not bounded by l.

Source: Li, Li, Zhang and Molloy (2012), IEEE TKDE, sections 3 to 5. Departures: buckets are cut a level at a time and
never between equal values, so that the test of l is local to a bucket; cuts are where boxes save most unless
`cut := 'median'` or 'sse'. Cost: O(d n log n).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import ConditionalDiversity, FrequencyDiversity, diverse_persons
from duckdb_anon.kernels.row_keys import compact, joint
from duckdb_anon.kernels.slicing.attribute_clustering import related_columns
from duckdb_anon.kernels.slicing.bucket_permutation import (
    Grouping,
    check_columns,
    check_diversity,
    shuffled_slots,
    sliced_cells,
)
from duckdb_anon.methods.partition_params import CUTS, cut_by_person, cut_groups, cutting
from duckdb_anon.methods.slice_layout import COLUMNS, checked_grouping, sliced_layout
from duckdb_anon.model.coded_table import CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.released_columns import Cells

NAME = "slicing"


def found_columns(table: CodedTable, params: Params, *, alone: bool) -> list[list[str]]:
    """Columns found by association; `alone`: the sensitive attribute in none of them."""
    attributes = table.qi if alone else (*table.qi, table.sensitive[0])
    return [list(column) for column in related_columns(attributes, params["column_count"], params["bins"])]


def given_columns(function: str, roles: Roles, params: Params, *, alone: bool = False) -> Grouping:
    """Columns of the call, checked."""
    names = [info.name for info in roles.qi]
    return checked_grouping(function, params["columns"], names, roles.one_sensitive(function).name, alone=alone)


def last_column_part(table: CodedTable, partners: tuple[str, ...]) -> IntArray:
    """Number of each row's combination of the attributes that share the sensitive column."""
    return compact(joint([a.codes for a in table.qi if a.name in partners], rows=table.rows))


def buckets(table: CodedTable, params: Params, part: IntArray) -> IntArray:
    """Bucket of each row; every bucket satisfies slicing's l-diversity."""
    sensitive, least = table.sensitive[0], float(params["l"])
    person = table.repeated_person
    if person is not None:
        return cut_groups(NAME, table.qi, sensitive.codes, diverse_persons(least), params, person)
    pair, combined = np.unique(part * sensitive.domain + sensitive.codes, return_inverse=True)
    diverse = ConditionalDiversity(least, pair // sensitive.domain)
    return cut_groups(NAME, table.qi, combined.astype(np.int32), diverse, params)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Slice a table."""
    sensitive = table.sensitive[0]
    grouping = checked_grouping(NAME, params["columns"], [a.name for a in table.qi], sensitive.name, alone=False)
    if grouping.partners and table.repeated_person is not None:
        raise RequirementError(
            f"{NAME}: persons have several rows, and l counts them where the sensitive column stands alone; say "
            f"sensitive_column := 'alone', or give '{sensitive.name}' a column of its own in columns := [...]"
        )
    part = last_column_part(table, grouping.partners)
    bucket = buckets(table, params, part)
    orders = [shuffled_slots(bucket, rng) for _ in grouping.columns]
    check_columns(NAME, orders, bucket)
    last = orders[-1]
    check_diversity(NAME, bucket[last], part[last], sensitive.codes[last], float(params["l"]))
    order_of = {name: order for order, column in zip(orders, grouping.columns, strict=True) for name in column}
    codes = {attribute.name: attribute.codes[order_of[attribute.name]] for attribute in (*table.qi, sensitive)}
    return sliced_cells(grouping, np.sort(bucket), codes, shuffled_slots(bucket, rng), rng)


def resolve_params(roles: Roles, params: Params, rows: Callable[[], CodedTable]) -> dict[str, Any]:
    """Columns of the call, checked, or found in the table's rows."""
    roles.one_sensitive(NAME)
    if params["columns"] is None:
        alone = params["sensitive_column"] == "alone" or bool(roles.person)
        params = {**params, "columns": found_columns(rows(), params, alone=alone)}
    return {"columns": [list(column) for column in given_columns(NAME, roles, params).columns]}


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """`bucket`, one STRUCT a column, insensitive columns."""
    return sliced_layout(roles, given_columns(NAME, roles, params))


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As buckets are cut; that no value is frequent in a part lets it be cut into diverse buckets."""
    if repeated:
        return cut_by_person(params["cut"], params["l"])
    return cutting(params, FrequencyDiversity(float(params["l"])), table.sensitive[0].codes)


METHOD = Method(
    name=NAME,
    summary="columns of related attributes, permuted independently inside l-diverse buckets",
    paper="Li, Li, Zhang & Molloy (2012), IEEE TKDE 24(3), sections 3-5",
    example="CREATE TABLE sliced AS FROM slicing('people', 3, sensitive_column := 'alone')",
    smallest="l := 2",
    trials=("l := 1", "l := 3", "l := 2, sensitive_column := 'alone'"),
    formats=("sliced",),
    parameters=(
        Parameter(
            "l",
            "no sensitive value has a share above 1/l among the possible values of a record",
            "number",
            REQUIRED,
            low=1,
        ),
        *COLUMNS,
        Parameter(
            "sensitive_column",
            "'clustered': the sensitive attribute may be published together with others; 'alone': it is not",
            "text",
            "clustered",
            ("clustered", "alone"),
        ),
        *CUTS,
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
    resolve_params=resolve_params,
    unit="person",
    sweeps=(Sweep("l := {l}, sensitive_column := 'alone'", (2, 5, 10), finds_columns=True),),
    parts=parts,
    finished=("rows",),
)
