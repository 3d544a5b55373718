"""Numbering rows: which of them agree in several code columns, and which lists hold the same members.

Every number is exact: equal numbers mean equal rows. Numbers follow the order of the columns, first one slowest, so
they do not depend on the order of the rows. Cost: one pass where the columns have few combinations, else a sort of n
integers (two where 62 bits do not tell the combinations apart).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.kernels.thread_pool import parallel_map, threads
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import tick

_MOST = 2**62
_BLOCK, _LARGE = 1 << 15, 1 << 17


class Keys(NamedTuple):
    """Different rows, in order."""

    of_row: IntArray  # number of each row, 0, 1, 2, ... without gaps, shape (n,)
    first: IntArray  # the first row with each number, shape (numbers,)

    @property
    def number(self) -> int:
        """How many different rows there are."""
        return len(self.first)

    def as_they_come(self) -> Keys:
        """The same rows numbered in the order in which they come, `first` ascending."""
        order = np.argsort(self.first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return Keys(rank[self.of_row], self.first[order])


def keys_of(columns: Sequence[NDArray[Any]], sizes: Sequence[int] | None = None) -> Keys:
    """Number the different rows of several columns.

    Args:
        columns: whole numbers, shape (n,) each, one column or more.
        sizes: exclusive bounds of the numbers from 0, where they are known.

    Example:
        >>> keys = keys_of([np.array([7, -1, 7]), np.array([2, 2, 2])])
        >>> keys.of_row.tolist(), keys.first.tolist()
        ([1, 0, 1], [1, 0])
    """
    of_row = compact(joint(columns, sizes))
    return Keys(of_row, _first_rows(of_row))


def joint(columns: Sequence[NDArray[Any]], sizes: Sequence[int] | None = None, rows: int = 0) -> IntArray:
    """One number a row, equal for equal rows and in the order of the columns, with gaps.

    `columns`: as for `keys_of`; or none, for `rows` rows that are all equal; `rows`: how many rows there are where
    there is no column.
    """
    tick()
    if sizes is not None and columns and prod(int(size) for size in sizes) < _MOST:
        return _joint_of_few(columns, sizes)
    key, span = np.zeros(len(columns[0]) if columns else rows, dtype=np.int64), 1
    for k, column in enumerate(columns):
        lowest = min(0, int(column.min(initial=0))) if sizes is None else 0
        size = int(column.max(initial=0)) - lowest + 1 if sizes is None else int(sizes[k])
        if span * size >= _MOST:
            # combinations that occur are never more than rows, so numbering them anew leaves room
            key = compact(key)
            span = int(key.max(initial=-1)) + 1
            if span * size >= _MOST:
                column, lowest = compact(column), 0
                size = int(column.max(initial=-1)) + 1
        key = key * np.int64(size) + (column.astype(np.int64) - lowest)
        span *= size
    return key


def _joint_of_few(columns: Sequence[NDArray[Any]], sizes: Sequence[int]) -> IntArray:
    """As `joint`, of known sizes whose product fits; some rows at a time, which stay in the cache for all columns."""
    key = columns[0].astype(np.int64)
    for low in range(0, len(key), _BLOCK):
        block = key[low : low + _BLOCK]
        for column, size in zip(columns[1:], sizes[1:], strict=True):
            block *= int(size)
            block += column[low : low + _BLOCK]
    return key


def sort(numbers: IntArray) -> None:
    """Sort in place: parts of them side by side, and then the sorted parts, which takes a pass.

    >>> numbers = np.array([3, 1, 2])
    >>> sort(numbers)
    >>> numbers.tolist()
    [1, 2, 3]
    """
    parts = threads() if len(numbers) >= _LARGE else 1
    size = -(-len(numbers) // parts)
    parallel_map(lambda part: numbers[part * size : (part + 1) * size].sort(), range(parts))
    if parts > 1:
        numbers.sort(kind="stable")


def compact(numbers: NDArray[Any]) -> IntArray:
    """Renumber 0, 1, 2, ... in their order.

    >>> compact(np.array([40, 7, 40])).tolist()
    [1, 0, 1]
    """
    tick()
    few = 4 * len(numbers) + 1024
    if numbers.dtype.kind in "iu" and int(numbers.min(initial=0)) >= 0 and int(numbers.max(initial=0)) <= few:
        # marking is cheaper than sorting where there are few possible numbers
        used = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.bool_)
        used[numbers] = True
        number: IntArray = (np.cumsum(used, dtype=np.int64) - 1)[numbers]
        return number
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64, copy=False)


def keys_of_lists(offsets: IntArray, *members: NDArray[Any]) -> Keys:
    """Number the different lists, in whatever order each has its members.

    Args:
        offsets: list i has entries offsets[i] .. offsets[i + 1] - 1, shape (lists + 1,).
        *members: one or more whole numbers an entry, such as codes, or codes and counts; they count together.

    Example:
        >>> keys_of_lists(np.array([0, 2, 3, 5]), np.array([4, 9, 4, 9, 4])).of_row.tolist()
        [1, 0, 1]
    """
    sizes = np.diff(offsets)
    entry = joint(members) if len(members) > 1 else np.asarray(members[0], dtype=np.int64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if ((np.diff(entry) < 0) & (np.diff(owner) == 0)).any():
        entry = entry[np.lexsort((entry, owner))]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(8 * offsets)), pa.py_buffer(np.ascontiguousarray(entry))]
    lists = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(sizes), buffers)
    number = lists.dictionary_encode().indices.to_numpy()
    return keys_of([_in_order(offsets, entry, _first_rows(number))[number]])


def _first_rows(number: NDArray[Any]) -> IntArray:
    """The first row with each number."""
    first = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return first


def _in_order(offsets: IntArray, entry: IntArray, which: IntArray) -> IntArray:
    """Numbers of different lists that are sorted inside, shorter ones first, those of one length by their bytes."""
    sizes = np.diff(offsets)[which]
    number, used = np.zeros(len(which), dtype=np.int64), 0
    for size in np.unique(sizes).tolist():
        same_size = np.flatnonzero(sizes == size)
        if size:
            # lists of one length, as rows of bytes
            table = np.ascontiguousarray(entry[offsets[which[same_size]][:, None] + np.arange(size)])
            number[same_size] = used + compact(table.view(np.dtype((np.void, 8 * size))).ravel())
        else:
            number[same_size] = used
        used = int(number[same_size].max()) + 1
    return number
