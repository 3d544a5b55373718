"""Sorting and counting of small integers, the two operations every partition kernel is made of.

NumPy sorts plain int64 arrays several times faster than it computes an argsort, so an order is found by
packing (major, minor, row) into one integer. Cost: one sort of n integers, or one bincount where the
number of possible cells is small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.table import IntArray

_KEY_BITS = 62
# Counting into this many cells a row is still cheaper than sorting.
_DENSE = 8
Integers = NDArray[Any]


def order_by(major: Integers, minor: Integers, minor_bound: int) -> IntArray:
    """Return the stable order of rows by (major, minor).

    Args:
        major: non-negative integers, shape (n,).
        minor: integers in 0 .. minor_bound - 1, shape (n,).
        minor_bound: exclusive bound of `minor`.

    Returns:
        Row numbers, shape (n,), ties in the given order.

    >>> order_by(np.array([1, 0, 1]), np.array([2, 5, 1]), 6).tolist()
    [1, 2, 0]
    """
    n = len(major)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    row_bits = n.bit_length()
    bound = (int(major.max()) + 1) * minor_bound
    if bound.bit_length() + row_bits > _KEY_BITS:
        return np.lexsort((minor, major)).astype(np.int64)
    key = major.astype(np.int64)
    key *= minor_bound
    key += minor
    key <<= row_bits
    key |= np.arange(n)
    key.sort()
    key &= (1 << row_bits) - 1
    return key


def count_cells(group: Integers, code: Integers, groups: int, domain: int) -> tuple[IntArray, IntArray, IntArray]:
    """Count the rows of every occupied (group, code) cell.

    Args:
        group: group of each row, 0 .. groups - 1, shape (n,).
        code: code of each row, 0 .. domain - 1, shape (n,).
        groups: number of groups.
        domain: number of codes.

    Returns:
        Group, code and count of each occupied cell, sorted by (group, code).

    >>> [a.tolist() for a in count_cells(np.array([0, 1, 0]), np.array([3, 3, 3]), 2, 4)]
    [[0, 1], [3, 3], [2, 1]]
    """
    cells = groups * domain
    if cells <= _DENSE * len(group) + 4096:
        key = group.astype(np.int64)
        key *= domain
        key += code
        counts = np.bincount(key, minlength=cells)
        occupied = np.flatnonzero(counts)
        count = counts[occupied]
    else:
        key = group.astype(np.int32 if cells < 2**31 else np.int64)
        key *= key.dtype.type(domain)
        key += code.astype(key.dtype, copy=False)
        key.sort()
        first = run_starts(key)
        occupied = key[first].astype(np.int64)
        count = np.diff(first, append=len(key))
    cell_group = occupied // domain
    return cell_group, occupied - cell_group * domain, count


def count_runs(codes: Integers, starts: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Count the rows of every occupied (group, code) cell where the rows of a group are neighbours.

    Only codes between the smallest and largest of each group are counted, so small groups are cheap even
    where the domain is large.

    Args:
        codes: code of each row, shape (n,).
        starts: first row of each group.
        sizes: rows of each group, all positive.

    Returns:
        Group, code and count of each occupied cell, sorted by (group, code).

    >>> [a.tolist() for a in count_runs(np.array([3, 3, 9, 8]), np.array([0, 2]), np.array([2, 2]))]
    [[0, 1, 1], [3, 8, 9], [2, 1, 1]]
    """
    low = np.minimum.reduceat(codes, starts).astype(np.int64)
    high = np.maximum.reduceat(codes, starts).astype(np.int64)
    width = high - low + 1
    total = int(width.sum())
    if total > _DENSE * len(codes) + 4096:
        return count_cells(np.repeat(np.arange(len(starts)), sizes), codes, len(starts), int(high.max()) + 1)
    first = np.cumsum(width) - width
    counts = np.bincount(codes + np.repeat(first - low, sizes), minlength=total)
    occupied = np.flatnonzero(counts)
    group = np.repeat(np.arange(len(starts)), width)[occupied]
    return group, occupied - (first - low)[group], counts[occupied]


def look_up(key: IntArray, value: IntArray, wanted: IntArray, bound: int) -> IntArray:
    """Return the value that belongs to each wanted key.

    Args:
        key: different integers in 0 .. bound - 1, sorted.
        value: what belongs to each, of the same shape.
        wanted: keys, all of which occur in `key`.
        bound: exclusive bound of the keys.

    >>> look_up(np.array([2, 5]), np.array([7, 8]), np.array([5, 5, 2]), 6).tolist()
    [8, 8, 7]
    """
    if bound > _DENSE * len(wanted) + 4096:
        return value[np.searchsorted(key, wanted)]
    table = np.empty(bound, dtype=value.dtype)
    table[key] = value
    return table[wanted]


def part_sizes(part: Integers, sizes: IntArray, parts: int) -> IntArray:
    """Return the rows of each part of each group, shape (groups, parts).

    Args:
        part: part of each row, 0 .. parts - 1, rows of a group being neighbours.
        sizes: rows of each group, all positive.
        parts: exclusive bound of the parts.

    >>> part_sizes(np.array([1, 0, 1]), np.array([2, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    if parts == 2 and len(part):
        second = np.add.reduceat(part, np.cumsum(sizes) - sizes, dtype=np.int64)
        return np.stack((sizes - second, second), axis=1)
    child = np.repeat(np.arange(len(sizes)) * parts, sizes) + part
    return np.bincount(child, minlength=len(sizes) * parts).reshape(-1, parts)


def stable_order(part: Integers, sizes: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    """Return the order of rows by (group, part), ties kept, and the sizes of the occupied cells.

    Args:
        part: part of each row, 0 .. parts - 1, rows of a group being neighbours.
        sizes: rows of each group, all positive.
        parts: exclusive bound of the parts.

    >>> [a.tolist() for a in stable_order(np.array([1, 0, 1]), np.array([2, 1]), 2)]
    [[1, 0, 2], [1, 1, 1]]
    """
    by_part = part_sizes(part, sizes, parts)
    cells = by_part.ravel()
    if parts > _DENSE:
        return order_by(np.repeat(np.arange(len(sizes)), sizes), part, parts), cells[cells > 0]
    starts = (np.cumsum(cells) - cells).reshape(by_part.shape)
    order = np.empty(len(part), dtype=np.int64)
    for number in range(parts):
        order[ranges(starts[:, number], by_part[:, number])] = np.flatnonzero(part == number)
    return order, cells[cells > 0]


def order_by_part(part: Integers, sizes: IntArray, parts: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the order of rows by (part, group), ties kept, and group and size of the occupied cells.

    It is cheaper than `stable_order`, as rows of one part need not be put between those of another.

    Args:
        part: part of each row, 0 .. parts - 1, rows of a group being neighbours.
        sizes: rows of each group, all positive.
        parts: exclusive bound of the parts.

    >>> [a.tolist() for a in order_by_part(np.array([1, 0, 1]), np.array([2, 1]), 2)]
    [[1, 0, 2], [0, 0, 1], [1, 1, 1]]
    """
    cells = part_sizes(part, sizes, parts).T
    if parts > _DENSE:
        order = np.argsort(part, kind="stable")
    else:
        order = np.concatenate([np.flatnonzero(part == number) for number in range(parts)])
    return order, np.nonzero(cells)[1], cells[cells > 0]


def run_starts(values: Integers) -> IntArray:
    """Return where each run of equal neighbours starts.

    >>> run_starts(np.array([4, 4, 7, 4])).tolist()
    [0, 2, 3]
    """
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    starts: IntArray = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))
    return starts


def offsets_of(group: Integers, groups: int) -> IntArray:
    """Return offsets, shape (groups + 1,), of the runs of a sorted group array (groups may be empty).

    >>> offsets_of(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.searchsorted(group, np.arange(groups + 1)).astype(np.int64)


def ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Concatenate the index ranges starts[i] .. starts[i] + sizes[i] - 1.

    >>> ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    total = int(sizes.sum())
    shift = starts - (np.cumsum(sizes) - sizes)
    places: IntArray = np.arange(total) + np.repeat(shift, sizes)
    return places
