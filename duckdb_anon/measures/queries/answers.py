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

from duckdb_anon.engine.interrupt import tick
from duckdb_anon.measures.queries.workload import Workload
from duckdb_anon.model.table import CodeArray, FloatArray, IntArray

_BLOCK = 4096


def exact_answers(workload: Workload, codes: Sequence[CodeArray], weights: FloatArray) -> FloatArray:
    """Sum the weights of the rows that satisfy each query.

    Args:
        workload: n queries.
        codes: code of each row, one array an attribute of the workload, in its order.
        weights: what a row adds, shape (rows,) or (rows, m) for m sums at once (1 for COUNT, the value for
            SUM).

    Returns:
        Shape (n,) or (n, m).
    """
    flat = weights.ndim == 1
    columns = weights[:, None] if flat else weights
    if len(columns) == 0:
        answers = np.zeros((workload.n, columns.shape[1]))
        return answers[:, 0] if flat else answers
    group, first = group_rows(codes)
    groups = len(first)
    sums = np.stack([np.bincount(group, columns[:, j], minlength=groups) for j in range(columns.shape[1])], axis=1)
    bits = [packed(m) for m in workload.matches]
    answers = np.zeros((workload.n, columns.shape[1]))
    for start in range(0, groups, _BLOCK):
        tick()
        rows = first[start : start + _BLOCK]
        asked = bits[0][codes[0][rows]]
        for table, column in zip(bits[1:], codes[1:], strict=True):
            asked &= table[column[rows]]
        spread = np.unpackbits(asked, axis=1, count=workload.n)
        answers += spread.T.astype(np.float64) @ sums[start : start + _BLOCK]
    return answers[:, 0] if flat else answers


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
