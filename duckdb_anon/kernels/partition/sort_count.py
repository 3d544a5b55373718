"""Sorting and counting of small integers, the two operations every partition kernel is made of.

NumPy sorts plain int64 arrays several times faster than it computes an argsort, so an order is found by
packing (major, minor, row) into one integer. Cost: one sort of n integers, or one bincount where the
number of possible cells is small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.array_ops import tally_groups
from duckdb_anon.kernels.row_keys import sort
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.progress import tick

_KEY_BITS = 62
# Counting into this many cells a row is still cheaper than sorting.
_DENSE = 8
Integers = NDArray[Any]


def order_by(major: Integers, minor: Integers | None = None, minor_bound: int = 1) -> IntArray:
    """Return the stable order of rows by (major, minor).

    Args:
        major: non-negative integers, shape (n,).
        minor: integers in 0 .. minor_bound - 1, shape (n,); None where `major` alone decides.
        minor_bound: exclusive bound of `minor`.

    Returns:
        Row numbers, shape (n,), ties in the given order.

    >>> order_by(np.array([1, 0, 1]), np.array([2, 5, 1]), 6).tolist()
    [1, 2, 0]
    >>> order_by(np.array([1, 0, 1])).tolist()
    [1, 0, 2]
    """
    tick()
    n = len(major)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    row_bits = n.bit_length()
    bound = (int(major.max()) + 1) * minor_bound
    if bound.bit_length() + row_bits > _KEY_BITS:
        return np.lexsort((major,) if minor is None else (minor, major)).astype(np.int64)
    key = major.astype(np.int64)
    if minor is not None:
        key *= minor_bound
        key += minor
    key <<= row_bits
    key |= np.arange(n)
    sort(key)
    key &= (1 << row_bits) - 1
    return key


def count_cells(group: Integers, code: Integers, groups: int, domain: int) -> tuple[IntArray, IntArray, IntArray]:
    """Count the rows of every occupied (group, code) cell.

    `code`: code of each row, 0 .. domain - 1, shape (n,). Returns group, code and count of each occupied cell, sorted
    by (group, code).

    >>> [a.tolist() for a in count_cells(np.array([0, 1, 0]), np.array([3, 3, 3]), 2, 4)]
    [[0, 1], [3, 3], [2, 1]]
    """
    tick()
    cells = groups * domain
    if cells <= _DENSE * len(group) + 4096:
        counts = np.zeros(cells, dtype=np.int32 if len(group) < 2**31 else np.int64)
        tally_groups(group, code, domain, counts)
        occupied = np.flatnonzero(counts)
        count = counts[occupied].astype(np.int64)
    else:
        key: Integers = group.astype(np.int32 if cells < 2**31 else np.int64)
        key *= key.dtype.type(domain)
        key += code.astype(key.dtype, copy=False)
        key.sort()
        first = run_starts(key)
        occupied = key[first].astype(np.int64)
        count = np.diff(first, append=len(key))
    cell_group = occupied // domain
    return cell_group, occupied - cell_group * domain, count


def most_frequent(group: Integers, code: Integers, domain: int) -> CodeArray:
    """Most frequent code of each group, of equally frequent ones the first; every group occupied.

    >>> most_frequent(np.array([0, 0, 1, 0]), np.array([2, 1, 3, 1]), 4).tolist()
    [1, 3]
    """
    pair, count = np.unique(group.astype(np.int64) * domain + code, return_counts=True)
    owner = pair // domain
    best = pair[np.lexsort((pair, -count, owner))]
    return np.asarray(best[np.searchsorted(owner, np.arange(int(group.max(initial=-1)) + 1))] % domain, dtype=np.int32)


def run_starts(values: Integers) -> IntArray:
    """Return where each run of equal neighbours starts.

    >>> run_starts(np.array([4, 4, 7, 4])).tolist()
    [0, 2, 3]
    """
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    starts: IntArray = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))
    return starts


def rank_in_run(sorted_keys: Integers) -> IntArray:
    """Return the rank of each entry among the equal keys around it.

    >>> rank_in_run(np.array([4, 4, 7])).tolist()
    [0, 1, 0]
    """
    first = run_starts(sorted_keys)
    return ranges(np.zeros_like(first), np.diff(first, append=len(sorted_keys)))


def offsets_of(group: Integers, groups: int) -> IntArray:
    """Return offsets, shape (groups + 1,), of the runs of a sorted group array (groups may be empty).

    >>> offsets_of(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.searchsorted(group, np.arange(groups + 1)).astype(np.int64)


def owners(offsets: IntArray) -> IntArray:
    """Return the run of each entry, from the offsets of the runs.

    >>> owners(np.array([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Concatenate the index ranges starts[i] .. starts[i] + sizes[i] - 1.

    >>> ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    total = int(sizes.sum())
    shift = starts - (np.cumsum(sizes) - sizes)
    places: IntArray = np.arange(total) + np.repeat(shift, sizes)
    return places
