"""Rows exchanged with rows of nearly the same rank (Moore 1996).

From the lowest rank up, each row that was not taken yet is paired with one drawn from those not taken among the next
`reach` ranks. Cost: linear (a partner is drawn by trying places; where few are left, they are counted).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.rng_streams import below, next_word
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import stop_flag

Array = NDArray[Any]
_TRIES = 64


def swapped_within(rows: IntArray, reach: int, rng: np.random.Generator) -> IntArray:
    """For each row the row whose value it takes.

    `rows`: rows by rank, shape (n,); `reach`: largest difference of two ranks, 0 or more. Returns: shape (n,): a
    permutation of range(n) that is its own inverse.

    >>> swapped_within(np.array([2, 0, 1]), 0, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    partner = np.full(len(rows), -1, dtype=np.int64)
    _pair(partner, reach, rng.integers(1, 2**63, size=1, dtype=np.uint64), stop_flag())
    source = np.empty(len(rows), dtype=np.int64)
    source[rows] = rows[partner]
    return source


@compiled
def _pair(partner: Array, reach: int, seed: Array, stop: Array) -> None:
    """Find a partner of each rank, the rank itself where none was left; `partner` comes in as -1 everywhere."""
    state = seed[0]
    n = len(partner)
    for i in range(n):
        if partner[i] >= 0:
            continue
        if stop[0] != 0:
            return
        width = min(reach, n - 1 - i)
        chosen = -1
        for _ in range(_TRIES if width > 0 else 0):
            state = next_word(state)
            index = i + 1 + below(state >> np.uint64(32), width)
            if partner[index] < 0:
                chosen = index
                break
        if chosen < 0:
            free = 0
            for j in range(i + 1, i + 1 + width):
                free += partner[j] < 0
            if free > 0:
                state = next_word(state)
                left = below(state >> np.uint64(32), free)
                for j in range(i + 1, i + 1 + width):
                    if partner[j] < 0:
                        if left == 0:
                            chosen = j
                            break
                        left -= 1
        if chosen < 0:
            partner[i] = i
        else:
            partner[i] = chosen
            partner[chosen] = i
