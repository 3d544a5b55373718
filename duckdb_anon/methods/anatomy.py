"""Anatomy: exact quasi-identifiers; sensitive values only as counts of a bucket of records.

Each record is released with its quasi-identifiers, its bucket, and a MAP from sensitive value to count in the bucket.
Guarantee: every bucket has at least l records, and no value has a share above 1/l in it. That bounds shares, not what
can be inferred from other buckets (Kifer 2009, deFinetti; `attribute_risk` measures it). It does not protect against
re-identification or membership disclosure: quasi-identifiers are exact. With a person column, a bucket holds all
records of at least l individuals with similar quasi-identifiers; no value belongs to more than 1/l of its individuals
or records, and no individual has more than 1/l of the records. What is known of all records of an individual together
is not bounded by l.

Source: Xiao, X., Tao, Y. (2006). Departures: one table, from which `anatomy_qit` and `anatomy_st` read the paper's two;
buckets are dealt in one pass. Cost: one sort of the records.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import All, FrequencyDiversity, KAnonymity, diverse_persons
from duckdb_anon.kernels.partition.sort_count import count_cells, offsets_of, order_by
from duckdb_anon.methods.partition_params import cut_by_person
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.quoting import ident
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Counts, Source, Whole


def largest_l(sensitive: CodeArray) -> int:
    """Largest l for which at most n / l records share a sensitive value, 0 for no records.

    >>> largest_l(np.array([0, 0, 1, 2, 3], dtype=np.int32))
    2
    """
    return int(len(sensitive) // np.bincount(sensitive).max()) if len(sensitive) else 0


# Dealing all records of a table into buckets of l or more, no sensitive value twice in a bucket. Guarantee: every
# bucket has at least l records with pairwise different sensitive values, so the share of each value is at most 1/l;
# checked on the result. Source: Xiao and Tao (2006), Anatomy, algorithm Anatomize: while l values are left, a bucket
# takes one record of each of the l most frequent ones; the fewer than l records left over join buckets that lack their
# value. That always makes floor(n / l) buckets. Departure: the same number of buckets with the same properties is dealt
# in one go. With b = floor(n / l) buckets and no value in more than b records, the records sorted by value are dealt
# round and round, the p-th to bucket p mod b, and the records of one value never meet. Values, and the records within a
# value, are in random order; left over are the last records of n mod l values drawn at random, and each joins a random
# bucket that lacks its value. Cost: one sort of the rows.
def anatomize(sensitive: CodeArray, least: int, rng: np.random.Generator) -> IntArray:
    """Deal records into buckets.

    Returns:
        Bucket of each record, shape (n,), 0 .. floor(n / l) - 1.

    Raises:
        RequirementError: more than n / l records share a value; the message names the largest l possible.

    >>> bucket = anatomize(np.array([0, 0, 1, 1, 2], dtype=np.int32), 2, np.random.default_rng(0))
    >>> sorted(np.bincount(bucket).tolist())
    [2, 3]
    """
    n = len(sensitive)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    if largest_l(sensitive) < least:
        most = int(np.bincount(sensitive).max())
        raise RequirementError(
            f"anatomy: l := {least} is not possible: one value of the sensitive column is in {most} of {n} rows; the "
            f"largest possible l is {largest_l(sensitive)}"
        )
    order, value = _by_value(sensitive, rng)
    left = _left_over(value, n % least, rng)
    buckets = n // least
    number = rng.permutation(buckets)
    result = np.empty(n, dtype=np.int64)
    dealt = np.delete(order, left)
    result[dealt] = number[np.arange(len(dealt)) % buckets]
    for row in order[left]:
        taken = np.zeros(buckets, dtype=bool)
        taken[result[dealt[sensitive[dealt] == sensitive[row]]]] = True
        result[row] = rng.choice(np.flatnonzero(~taken))
    _check(result, sensitive, least, buckets)
    return result


def _by_value(sensitive: CodeArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows sorted by value, values and the rows within a value in random order; and the place of each one's value."""
    index = rng.permutation(int(sensitive.max()) + 1)
    order = rng.permutation(len(sensitive))
    order = order[order_by(index[sensitive[order]])]
    return order, index[sensitive[order]]


def _left_over(value: IntArray, many: int, rng: np.random.Generator) -> IntArray:
    """Places of the last record of each of `many` values drawn at random, ascending."""
    last = np.append(np.flatnonzero(np.diff(value)), len(value) - 1)
    return np.sort(rng.choice(last, size=many, replace=False)).astype(np.int64)


def _check(bucket: IntArray, sensitive: CodeArray, least: int, buckets: int) -> None:
    sizes = np.bincount(bucket, minlength=buckets)
    pairs = bucket * (int(sensitive.max()) + 1) + sensitive
    pairs.sort()
    if sizes.min() < least or (pairs[1:] == pairs[:-1]).any():
        raise RequirementError(
            "anatomy: a finished bucket is too small or holds a value twice; nothing is released. This is an error of "
            "the package, not of the call"
        )


NAME = "anatomy"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Deal the records into buckets."""
    sensitive = table.sensitive[0]
    _refuse_null(sensitive)
    if table.repeated_person is not None:
        bucket = of_persons(table, float(params["l"]), rng)
    elif params["groups"] == "table":
        bucket = anatomize(sensitive.codes, params["l"], rng)
    else:
        bucket = near(table, params, rng)
    counts = counts_of(sensitive, bucket)
    exact = {attribute.name: Coded(attribute.name, attribute.codes) for attribute in table.qi}
    rows = np.arange(table.rows, dtype=np.int64)
    return {BUCKET.key: Whole(bucket + 1), **exact, sensitive.name: counts, ROWS: Source(rows)}


def near(table: CodedTable, params: Params, rng: np.random.Generator) -> IntArray:
    """Buckets dealt inside groups of similar rows, each l-diverse; numbered at random."""
    codes, least = table.sensitive[0].codes, params["l"]
    group = partition(table.qi, codes, FrequencyDiversity(float(least)), tick=tick, cut="sse", function=NAME)
    bucket = assign(group, codes, least, rng.permutation(table.rows))
    return np.asarray(rng.permutation(int(bucket.max(initial=-1)) + 1)[bucket], dtype=np.int64)


def of_persons(table: CodedTable, least: float, rng: np.random.Generator) -> IntArray:
    """Buckets of whole persons; numbered at random."""
    requirement = All((KAnonymity(ceil(least)), diverse_persons(least)))
    codes, person = table.sensitive[0].codes, table.repeated_person
    bucket = partition(table.qi, codes, requirement, person=person, tick=tick, cut="sse", function=NAME)
    return np.asarray(rng.permutation(int(bucket.max(initial=-1)) + 1)[bucket], dtype=np.int64)


def counts_of(sensitive: Attribute, bucket: IntArray) -> Counts:
    """Counts of the sensitive values of each bucket, values in their order."""
    buckets = int(bucket.max(initial=-1)) + 1
    group, code, count = count_cells(bucket, sensitive.codes, buckets, max(1, sensitive.domain))
    return Counts(sensitive.name, offsets_of(group, buckets), code.astype(np.int32), count, bucket)


def _refuse_null(sensitive: Attribute) -> None:
    if sensitive.null_code < 0:
        return
    rows = int((sensitive.codes == sensitive.null_code).sum())
    if rows:
        name = ident(sensitive.name)
        raise ColumnError(
            f"anatomy: '{sensitive.name}' is NULL in {rows} rows, and a MAP from value to count has no key for NULL; "
            "leave those rows out, or name the missing value in a view, and release that: CREATE VIEW v AS "
            f"SELECT * REPLACE (coalesce({name}::varchar, 'unknown') AS {name}) FROM ..., and label its columns"
        )


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """`bucket`, quasi-identifiers with their types, a MAP for the sensitive column, insensitive columns."""
    name = roles.one_sensitive(NAME).name
    return (
        ColumnPlan(BUCKET.key, Whole),
        *(ColumnPlan(info.name, Coded) for info in roles.qi),
        ColumnPlan(name, Counts),
        *(ColumnPlan(info.name, Source) for info in roles.keep),
    )


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """The rows of each value spread over the parts, or similar rows together."""
    _refuse_null(table.sensitive[0])
    if repeated:
        return cut_by_person(params["l"])
    diverse = FrequencyDiversity(float(params["l"]))
    return Cutting("deal by value" if params["groups"] == "table" else "cut", diverse, table.sensitive[0].codes)


METHOD = Method(
    name=NAME,
    summary="exact quasi-identifiers; sensitive values as counts of buckets with at least l different "
"values",
    paper="Xiao, X., Tao, Y. (2006), Anatomy: simple and effective privacy preservation",
    example="CREATE TABLE buckets AS FROM anatomy('people', 5)",
    smallest="l := 2",
    trials=("l := 1", "l := 3", "l := 2, groups := 'sse'"),
    formats=("buckets",),
    parameters=(
        Parameter("l", "minimum number of different sensitive values per bucket; whole number, 1 or more", "integer",
                  REQUIRED, low=1),
        Parameter(
            "groups", "which records share a bucket: any of the 'table', or similar ones ('sse': groups cut by "
"squared error; always used where individuals have several records)", "text", "table", ("table", "sse"),
        ),
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
    unit="person",
    sweeps=(Sweep("l := {l}", (2, 5, 10)),),
    parts=parts,
    finished=("rows", "buckets"),
)  # fmt: skip
