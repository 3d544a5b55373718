"""Which values of a column are published as which, so that each is carried by at least k.

Ordered values: rare ones are taken from small to large until k carriers are together, and published as their mean
(microaggregation), so that sums stay; a value with k carriers stays, whatever lies around it. Where all rare ones
have fewer than k carriers, each is published as the frequent value before it. Names: all with fewer than k carriers
are one, and where those are fewer than k together, the next rarer name joins them.
A carrier is a row, or a person where persons have several rows. Cost: linear in the pairs of carrier and value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import IntArray

Array = NDArray[Any]
OTHER = -1
"""In place of a value: the name all rare ones share."""


def joined(counts: IntArray, k: int, persons: IntArray | None = None) -> IntArray:
    """Place of the value that each value of an ordered column is published as; less than `OTHER` for a mean.

    Values of one negative number are published together, as their mean.

    Args:
        counts: carriers of each value, values in their order, shape (values,).
        k: fewest carriers of a published value; at most the number of carriers.
        persons: who they are, value after value, shape (sum of counts,); None where nobody carries two values.

    >>> joined(np.array([1, 2, 3, 1, 1, 1]), 2).tolist()
    [-2, 1, 2, -2, -3, -3]
    >>> joined(np.array([1, 9, 8]), 4).tolist()
    [1, 1, 2]
    """
    target = np.arange(len(counts), dtype=np.int64)
    ids, seen = _numbered(counts, persons)
    _joined(counts.astype(np.int64), np.cumsum(counts) - counts, ids, seen, k, target)
    return target


def grouped(counts: IntArray, k: int, persons: IntArray | None = None) -> IntArray:
    """Published name of each name, `OTHER` for those that share one.

    `counts`: carriers of each name; `k`: fewest carriers of a published name; at most the number of carriers.

    >>> grouped(np.array([2, 1, 3]), 2).tolist()
    [-1, -1, 2]
    """
    ids, seen = _numbered(counts, persons)
    target = np.arange(len(counts), dtype=np.int64)
    order = np.argsort(counts, kind="stable").astype(np.int64)
    _grouped(counts.astype(np.int64), np.cumsum(counts) - counts, ids, seen, k, order, target)
    return target


def _numbered(counts: IntArray, persons: IntArray | None) -> tuple[IntArray, IntArray]:
    """Persons numbered from 0 (none: nobody is met twice), and the last union each was met in."""
    if persons is None:
        return np.empty(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    found, ids = np.unique(persons, return_inverse=True)
    return ids.astype(np.int64), np.zeros(len(found), dtype=np.int64)


@compiled
def _added(index: int, union: int, counts: Array, starts: Array, ids: Array, seen: Array) -> int:
    """How many carriers a value adds to a union."""
    if len(seen) == 0:
        return int(counts[index])
    more = 0
    for i in range(starts[index], starts[index] + counts[index]):
        if seen[ids[i]] != union:
            seen[ids[i]] = union
            more += 1
    return more


@compiled
def _joined(counts: Array, starts: Array, ids: Array, seen: Array, k: int, target: Array) -> None:
    group, union, together = -2, 1, 0
    for index in range(len(counts)):
        if counts[index] < k:
            target[index] = group
            together += _added(index, union, counts, starts, ids, seen)
            if together >= k:
                group, union, together = group - 1, union + 1, 0
    if together == 0:
        return
    # too few are left: they join the group before them, or where there is none, frequent values
    frequent = 0
    while group == -2 and counts[frequent] < k:
        frequent += 1
    for index in range(len(counts)):
        if counts[index] >= k:
            frequent = index
        elif target[index] == group:
            target[index] = group + 1 if group < -2 else frequent


@compiled
def _grouped(counts: Array, starts: Array, ids: Array, seen: Array, k: int, order: Array, target: Array) -> None:
    together = 0
    for index in order:
        if counts[index] >= k and (together == 0 or together >= k):
            return
        together += _added(index, 1, counts, starts, ids, seen)
        target[index] = -1
