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

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import ConditionalDiversity, FrequencyDiversity, diverse_persons
from duckdb_anon.kernels.row_keys import compact, joint
from duckdb_anon.kernels.slicing.bucket_permutation import (
    Grouping,
    check_columns,
    check_diversity,
    shuffled_slots,
    sliced_cells,
)
from duckdb_anon.methods.partition_params import CUTS, cut_by_person, cut_groups
from duckdb_anon.model.coded_table import Attribute, CodedTable, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import Cells, Coded, Source, Struct, Whole

_STRICTLY = 1e-12


# Which attributes share a column of a sliced table: k-medoids on 1 - phi squared. phi squared, the mean square
# contingency coefficient, lies in [0, 1] and equals the square of Cramer's V (Li, Li, Zhang and Molloy 2012, section
# 4.1; Hasan, Jiang, Chen and Wang 2018, section 4.1.2). Ordered attributes are first cut into intervals of equal width;
# NULL, NaN and infinities are separate categories. Partitioning Around Medoids (Kaufman and Rousseeuw 1990, chapter 2)
# with its BUILD and SWAP phases is made deterministic: among equals the smallest index wins. Cost: O(d^2 n) for d
# attributes, and O(c (d - c) d^2) for each swap of c medoids.
def equal_width(attribute: Attribute, bins: int) -> IntArray:
    """Return the category of each row: the interval of `bins` for an ordered attribute, its code otherwise."""
    codes = attribute.codes.astype(np.int64)
    if attribute.kind != "ordered":
        return codes
    finite = attribute.positions[: attribute.special_from]
    category = np.arange(attribute.domain, dtype=np.int64)
    category += bins - attribute.special_from  # NULL and the like: categories after the last interval
    if attribute.span > 0:
        scaled = np.floor((finite - finite[0]) / attribute.span * bins)
        category[: attribute.special_from] = np.minimum(scaled.astype(np.int64), bins - 1)
    else:
        category[: attribute.special_from] = 0
    return category[codes]


def phi_squared(left: IntArray, right: IntArray) -> float:
    """Return phi squared of two columns of non-negative categories, 0 when either is constant.

    The sum over all cells of (f_ij - f_i f_j)^2 / (f_i f_j) equals the sum over the occupied ones of
    f_ij^2 / (f_i f_j), less 1, so empty cells never have to be formed.

    >>> phi_squared(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    >>> phi_squared(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    0.0
    """
    n = len(left)
    if n == 0:
        return 0.0
    count_left, count_right = np.bincount(left), np.bincount(right)
    smaller = min(np.count_nonzero(count_left), np.count_nonzero(count_right))
    if smaller < 2:
        return 0.0
    width = len(count_right)
    key = left * width + right
    cells = len(count_left) * width
    if cells <= max(4 * n, 1 << 16):
        counts = np.bincount(key, minlength=cells)
        cell = np.flatnonzero(counts)
        occupied = counts[cell]
    else:
        cell, occupied = np.unique(key, return_counts=True)
    expected = count_left[cell // width].astype(np.float64) * count_right[cell % width]
    total = float(np.sum(occupied.astype(np.float64) ** 2 / expected)) - 1.0
    return float(min(max(total / (smaller - 1), 0.0), 1.0))


def association_matrix(attributes: Sequence[Attribute], bins: int = 10) -> FloatArray:
    """Return phi squared of every pair of attributes, 1 on the diagonal."""
    categories = [equal_width(attribute, bins) for attribute in attributes]
    matrix = np.eye(len(categories))
    for i, left in enumerate(categories):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = phi_squared(left, categories[j])
    return matrix


def pam(distance: FloatArray, medoids: int) -> IntArray:
    """Cluster items around medoids.

    >>> pam(np.array([[0, .1, .9], [.1, 0, .8], [.9, .8, 0]]), 2).tolist()
    [1, 1, 2]
    """
    chosen = _build(distance, medoids)
    best = _total(distance, chosen)
    while True:
        trials = [
            (_total(distance, trial), trial)
            for position in range(medoids)
            for other in range(len(distance))
            if other not in chosen
            for trial in [[*chosen[:position], other, *chosen[position + 1 :]]]
        ]
        cost, trial = min(trials, key=lambda pair: pair[0], default=(best, chosen))
        if cost >= best - _STRICTLY:
            break
        best, chosen = cost, trial
    ordered = np.sort(np.asarray(chosen, dtype=np.int64))
    medoid_of: IntArray = ordered[np.argmin(distance[:, ordered], axis=1)]
    medoid_of[ordered] = ordered  # also when another medoid is at distance 0
    return medoid_of


def _build(distance: FloatArray, medoids: int) -> list[int]:
    """BUILD: the most central item, then again and again the one that lowers the total most."""
    chosen: list[int] = []
    nearest = np.full(len(distance), np.inf)
    for _ in range(medoids):
        totals = np.minimum(nearest[:, None], distance).sum(axis=0)
        totals[chosen] = np.inf
        chosen.append(int(np.argmin(totals)))
        nearest = np.minimum(nearest, distance[:, chosen[-1]])
    return chosen


def _total(distance: FloatArray, chosen: list[int]) -> float:
    return float(distance[:, chosen].min(axis=1).sum())


def related_columns(attributes: Sequence[Attribute], count: int, bins: int = 10) -> tuple[tuple[str, ...], ...]:
    """Gather attributes into `count` columns of related ones.

    `count`: number of columns wanted; more than there are attributes means one each. Returns names by column; columns
    in the order of their first attribute.
    """
    if not attributes:
        return ()
    medoid_of = pam(1.0 - association_matrix(attributes, bins), min(count, len(attributes)))
    columns: dict[int, list[str]] = {}
    for attribute, medoid in zip(attributes, medoid_of.tolist(), strict=True):
        columns.setdefault(medoid, []).append(attribute.name)
    return tuple(tuple(names) for names in columns.values())


COLUMNS = (
    Parameter(
        "columns",
        "attributes published together, [['age', 'sex'], ['zip']] (default: found by association, "
        "k-medoids on 1 - phi squared)",
    ),
    Parameter("column_count", "number of columns to find", "integer", 2, low=1),
    Parameter(
        "bins", "intervals an ordered attribute is cut into when measuring association", "integer", 10, low=1, high=1000
    ),
)


def checked_grouping(function: str, given: Any, qi: Sequence[str], sensitive: str, *, alone: bool) -> Grouping:
    """Check columns that were given as lists of names.

    Args:
        given: list of lists of column names; the sensitive column may be left out.
        qi: quasi-identifiers; each must appear once.
        alone: whether the sensitive column must not share its column.

    Raises:
        ParameterError: `given` is not a list of lists of names.
        ColumnError: a name is unknown, missing or repeated, or the sensitive column is not alone.
    """
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(column, (list, tuple)) and column and all(isinstance(n, str) for n in column) for column in given
    ):
        raise ParameterError(
            f"{function}: columns := must be a list of lists of column names, such as [['age', 'sex'], ['zip']]"
        )
    spelling = {fold(name): name for name in (*qi, sensitive)}
    for name in (name for column in given for name in column):
        if fold(name) not in spelling:
            raise ColumnError(
                f"{function}: columns := names '{name}', which is neither quasi-identifier nor sensitive"
                f"{nearest(name, spelling.values())}; there are {listed(spelling.values())}"
            )
    columns = [tuple(spelling[fold(name)] for name in column) for column in given]
    every = [name for column in columns for name in column]
    wrong = [name for name in qi if every.count(name) != 1] + [sensitive] * (every.count(sensitive) > 1)
    if wrong:
        raise ColumnError(f"{function}: columns := must name {listed(wrong)} exactly once")
    partners = tuple(name for column in columns if sensitive in column for name in column if name != sensitive)
    if alone and partners:
        raise ColumnError(
            f"{function}: the sensitive column '{sensitive}' must be alone in its column, not with {listed(partners)}"
        )
    return Grouping(tuple(column for column in columns if sensitive not in column), partners, sensitive)


def sliced_layout(roles: Roles, grouping: Grouping) -> tuple[ColumnPlan, ...]:
    """Plan the columns of a sliced release: `bucket`, one STRUCT a column, insensitive columns."""
    plans = [ColumnPlan(BUCKET.key, Whole)]
    for name, column in grouping.named().items():
        fields = tuple(ColumnPlan(attribute, Coded) for attribute in column)
        plans.append(ColumnPlan(name, Struct, fields=fields))
    return (*plans, *(ColumnPlan(info.name, Source) for info in roles.keep))


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
        return cut_by_person(params["l"])
    return Cutting("cut", FrequencyDiversity(float(params["l"])), table.sensitive[0].codes)


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
