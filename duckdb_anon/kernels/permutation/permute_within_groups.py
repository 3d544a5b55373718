"""Each column permuted inside each group, every permutation equally likely and independent of all others.

Guarantee: an adversary who knows the groups and every original value does not learn which released row belongs to
whom: given the release, each of a group's rows is a member's with probability 1 / |group|. The histograms of every
group stay exact. Cost: linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.rng_streams import spawn_generators
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.progress import tick

Array = NDArray[Any]


def rows_by_group(group_of_row: IntArray) -> tuple[IntArray, IntArray]:
    """Rows group after group, ascending inside a group, and where each group starts (and n at the end).

    >>> [part.tolist() for part in rows_by_group(np.array([1, 0, 1]))]
    [[1, 0, 2], [0, 1, 3]]
    """
    tick()
    sizes = np.bincount(group_of_row)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows: IntArray = np.empty(len(group_of_row), dtype=np.int32 if len(group_of_row) < 2**31 else np.int64)
    _deal(group_of_row, starts.copy(), rows)
    return rows, starts


def permuted(group_of_row: IntArray, columns: int, rng: np.random.Generator) -> IntArray:
    """For each row and column the row of the same group whose value it takes.

    `columns`: how many columns to permute, each on its own. Returns source rows, shape (columns, n); each row of it is
    a permutation inside the groups.

    >>> rows = permuted(np.array([0, 0, 1]), 2, np.random.default_rng(0))
    >>> rows[:, 2].tolist(), np.sort(rows[0]).tolist()
    ([2, 2], [0, 1, 2])
    """
    rows, starts = rows_by_group(group_of_row)
    source = np.empty((columns, len(rows)), dtype=rows.dtype)
    each = spawn_generators(rng, columns)
    parallel_map(lambda c: _shuffle(rows, starts, each[c].random(len(rows)), rows.copy(), source[c]), range(columns))
    return source


def permuted_codes(codes: CodeArray, source: IntArray, group_of_row: IntArray) -> CodeArray | None:
    """Return the codes of a column after it was permuted, or None where that did not stay inside the groups.

    `codes`: codes of the column, shape (n,); `source`: row whose code each row takes, shape (n,).

    >>> permuted_codes(np.array([7, 8, 9], np.int32), np.array([2, 1, 0]), np.array([0, 1, 0])).tolist()
    [9, 8, 7]
    >>> permuted_codes(np.array([7, 8, 9], np.int32), np.array([1, 0, 2]), np.array([0, 1, 0])) is None
    True
    """
    tick()
    taken, seen = np.empty_like(codes), np.zeros(len(codes), dtype=np.bool_)
    return taken if _taken(codes, source, group_of_row, seen, taken) else None


@compiled
def _taken(codes: Array, source: Array, group: Array, seen: Array, taken: Array) -> bool:
    """Take each row's code from its source; return whether every row was a source once, in its group."""
    for i in range(len(source)):
        row = source[i]
        if seen[row] or group[row] != group[i]:
            return False
        seen[row] = True
        taken[i] = codes[row]
    return True


@compiled
def _deal(group: Array, index: Array, rows: Array) -> None:
    """Put each row at the next place of its group."""
    for i in range(len(group)):
        rows[index[group[i]]] = i
        index[group[i]] += 1


@compiled
def _shuffle(rows: Array, starts: Array, chance: Array, taken: Array, source: Array) -> None:
    """Shuffle each group (Fisher and Yates, in Durstenfeld's order); `taken`: a copy of the rows, which is shuffled.

    `chance`: a number in [0, 1) for each row.
    """
    for g in range(len(starts) - 1):
        lo = starts[g]
        for i in range(starts[g + 1] - 1, lo, -1):
            j = lo + int(chance[i] * (i - lo + 1))
            taken[i], taken[j] = taken[j], taken[i]
    for i in range(len(rows)):
        source[rows[i]] = taken[i]
