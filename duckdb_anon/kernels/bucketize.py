"""Dealing all records of a table into buckets of l or more, no sensitive value twice in a bucket.

Guarantee: every bucket has at least l records with pairwise different sensitive values, so the share of each
value is at most 1/l; checked on the result. Source: Xiao and Tao (2006), Anatomy, algorithm Anatomize: while l
values are left, a bucket takes one record of each of the l most frequent ones; the fewer than l records left over
join buckets that lack their value. That always makes floor(n / l) buckets. Departure: the same number of
buckets with the same properties is dealt in one go. With b = floor(n / l) buckets and no value in more than b
records, the records sorted by value are dealt round and round, the p-th to bucket p mod b, and the records of one
value never meet. Values, and the records within a value, are in random order; left over are the last
records of n mod l values drawn at random, and each joins a random bucket that lacks its value.

Cost: one sort of the rows.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.partition.sort_count import order_by
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError


def largest_l(sensitive: CodeArray) -> int:
    """Largest l for which at most n / l records share a sensitive value, 0 for no records.

    >>> largest_l(np.array([0, 0, 1, 2, 3], dtype=np.int32))
    2
    """
    return int(len(sensitive) // np.bincount(sensitive).max()) if len(sensitive) else 0


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
