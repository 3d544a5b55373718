"""Exact answers of a workload on a table of rows, all queries at once.

Each query is one bit. The bits of a row are the AND, over the attributes, of the bits its code has: a table
lookup and a few machine words a row, whatever the number of queries. Only then are the bits spread out and
summed with the rows' weights. Identical rows are added up first.

Cost: O(rows * attributes * n / 64) for the bits and O(distinct rows * n) for the sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.table import CodeArray, IntArray

_BLOCK = 4096


def group_rows(codes: Sequence[CodeArray]) -> tuple[IntArray, IntArray]:
    """Number the distinct combinations of codes.

    Returns:
        group of each row, and a row of each group.
    """
    key = np.zeros(len(codes[0]), dtype=np.int64)
    size = 1
    for column in codes:
        width = int(column.max(initial=0)) + 2
        if size > 2**62 // width:
            # combinations that occur are never more than rows, so numbering them anew leaves room
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = int(key.max(initial=0)) + 1
        key = key * width + (column.astype(np.int64) + 1)
        size *= width
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group.astype(np.int64), first.astype(np.int64)


def packed(matches: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack queries into bits, shape (domain + 1, n / 8); the extra last row (code -1) matches nothing."""
    bits = np.packbits(matches.T, axis=1)
    return np.vstack([bits, np.zeros((1, bits.shape[1]), dtype=np.uint8)])
