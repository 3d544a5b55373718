"""Which values of a column are published as which, so that each is carried by at least k.

Ordered values: whatever lies above the upper code is published as the upper code, and as many as k carriers lie above
it (top coding); the same below (bottom coding); a largest or smallest value with k carriers of its own needs no code.
Between the codes values are taken from small to large until k carriers are together, and published as their median
(rounding); a value with k carriers stays, and rarer ones before it join it. Names: all with fewer than k carriers are
one, and where those are fewer than k together, the next rarer name joins them.
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


def coded(counts: IntArray, k: int, persons: IntArray | None = None) -> IntArray:
    """Published value of each value of an ordered column, both by place.

    Args:
        counts: carriers of each value, values in their order, shape (values,).
        k: fewest carriers of a published value; at most the number of carriers.
        persons: who they are, value after value, shape (sum of counts,); None where nobody carries two values.

    >>> coded(np.array([1, 2, 3, 1, 1, 1, 1]), 2).tolist()
    [2, 2, 2, 2, 4, 4, 4]
    >>> coded(np.array([1, 1, 9, 1, 1, 1, 1, 1, 8]), 2).tolist()
    [2, 2, 2, 3, 3, 6, 6, 6, 8]
    """
    target = np.empty(len(counts), dtype=np.int64)
    if len(counts):
        ids, seen = _numbered(counts, persons)
        _coded(counts.astype(np.int64), np.cumsum(counts) - counts, ids, seen, k, target)
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
def _coded(counts: Array, starts: Array, ids: Array, seen: Array, k: int, target: Array) -> None:
    many = len(counts)
    low, beyond = 0, 0
    if counts[0] < k:
        while low < many - 1 and beyond < k:
            beyond += _added(low, 1, counts, starts, ids, seen)
            low += 1
    high, beyond = many - 1, 0
    if counts[high] < k:
        while high > 0 and beyond < k:
            beyond += _added(high, 2, counts, starts, ids, seen)
            high -= 1
    if low >= high:
        _to_median(counts, 0, many, target)
        return
    for index in range(low + 1):
        target[index] = low
    for index in range(high, many):
        target[index] = high
    start, together, union, last = low + 1, 0, 3, -1
    for index in range(low + 1, high):
        together += _added(index, union, counts, starts, ids, seen)
        if together >= k:
            _to_median(counts, start, index + 1, target)
            last, start, together, union = start, index + 1, 0, union + 1
    if start < high and last >= 0:
        _to_median(counts, last, high, target)
    for index in range(start, high if last < 0 else start):
        target[index] = low


@compiled
def _to_median(counts: Array, start: int, stop: int, target: Array) -> None:
    """Publish the values start .. stop - 1 as the value of their middle carrier."""
    total = 0
    for index in range(start, stop):
        total += counts[index]
    middle, passed = start, counts[start]
    while 2 * passed < total:
        middle += 1
        passed += counts[middle]
    for index in range(start, stop):
        target[index] = middle


@compiled
def _grouped(counts: Array, starts: Array, ids: Array, seen: Array, k: int, order: Array, target: Array) -> None:
    together = 0
    for index in order:
        if counts[index] >= k and (together == 0 or together >= k):
            return
        together += _added(index, 1, counts, starts, ids, seen)
        target[index] = -1
