"""Passes over rows that numpy makes by way of a copy of its places, or while it holds the GIL.

numpy widens places of 32 bits before it looks anything up by them, and `bincount` holds the GIL. Compiled, both are one
pass that other threads can work beside. Cost: linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.thread_pool import parallel_blocks
from duckdb_anon.model.coded_table import IntArray

Array = NDArray[Any]


def gathered(values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """The values at some places, `values[places]`.

    `values`: of any numbers, shape (n,); `places`: whole numbers in 0 .. n - 1, shape (m,); not looked at whether they
    are. Returns an array of the values' type, shape (m,).

    >>> gathered(np.array([7, 8, 9]), np.array([2, 0], np.int32)).tolist()
    [9, 7]
    """
    found = np.empty(len(places), dtype=values.dtype)
    _gather(values, places, found)
    return found


@compiled
def _gather(values: Array, places: Array, found: Array) -> None:
    for i in range(len(places)):
        found[i] = values[places[i]]


@compiled
def tally(code: Array, counts: Array) -> None:
    """Count rows by code, as numpy's `bincount` does while it holds the GIL.

    `code`: code of each row, 0 or more, shape (n,); `counts`: what was counted before, shape (codes,).

    >>> counts = np.zeros(2, np.int64)
    >>> tally(np.array([1, 0, 1]), counts)
    >>> counts.tolist()
    [1, 2]
    """
    for i in range(len(code)):
        counts[code[i]] += 1


@compiled
def tally_groups(group: Array, code: Array, domain: int, counts: Array) -> None:
    """Count rows by group and code, a group's codes side by side in `counts`.

    >>> counts = np.zeros(4, np.int64)
    >>> tally_groups(np.array([1, 0, 1]), np.array([1, 0, 1]), 2, counts)
    >>> counts.tolist()
    [1, 0, 0, 2]
    """
    for i in range(len(group)):
        counts[group[i] * domain + code[i]] += 1


def number_groups(first: NDArray[np.int8], row: NDArray[Any]) -> IntArray:
    """Group of each row, numbered from 0 in the order in which the rows of a group stand together.

    >>> number_groups(np.array([1, 0, 1], np.int8), np.array([2, 0, 1])).tolist()
    [0, 1, 0]
    """
    group = np.empty(len(row), dtype=np.int64)

    def fill(low: int, high: int) -> None:
        _number(first[low:high], row[low:high], int(np.count_nonzero(first[:low])) - 1, group)

    parallel_blocks(fill, len(row))
    return group


@compiled
def _number(first: Array, row: Array, number: int, group: Array) -> None:
    for i in range(len(first)):
        number += first[i]
        group[row[i]] = number
