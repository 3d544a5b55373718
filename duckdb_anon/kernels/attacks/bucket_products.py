"""Scores of the buckets of a sliced release: in each bucket a cell at random is the target's.

What a bucket says of a target is the mean over its rows of exp(score), part by part; parts multiply. Rows of a part
that look alike score alike, so each distinct one is scored once, as a product of factors exp(score of a cell), and a
row looks it up: no exponential a row, and a logarithm only for buckets that can still count. Factors are relative to
the best cell of their column, which `logs_within` adds again. Cost: targets times rows times parts, each one lookup.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

FAINT = 1e-250
"""A best product below this has lost too much to rounding."""


@compiled
def bucket_means(factors: FloatArray, look: CodeArray, start: IntArray, out: FloatArray) -> None:
    """Multiply each bucket by the mean of its rows' factors.

    Args:
        factors: of each distinct row of a part, shape (records, distinct rows).
        look: which of them each row is, rows bucket by bucket, shape (rows,).
        start: first row of each bucket and the number of rows, shape (buckets + 1,).
        out: shape (records, buckets); multiplied.
    """
    for t in range(out.shape[0]):
        for b in range(len(start) - 1):
            total = 0.0
            for j in range(start[b], start[b + 1]):
                total += factors[t, look[j]]
            out[t, b] *= total / (start[b + 1] - start[b])


@compiled
def row_products(units: FloatArray, factors: FloatArray, look: CodeArray, start: IntArray, out: FloatArray) -> None:
    """Multiply what is said of each row's bucket by its own factor.

    Args:
        units: products of each bucket; minus infinity for what is left out, shape (records, buckets).
        factors: as for `bucket_means`.
        look: the same.
        start: the same.
        out: shape (records, rows); filled.
    """
    for t in range(out.shape[0]):
        for b in range(len(start) - 1):
            for j in range(start[b], start[b + 1]):
                out[t, j] = units[t, b] * factors[t, look[j]] if units[t, b] > 0.0 else units[t, b]


@compiled
def logs_within(products: FloatArray, offset: FloatArray, reach: float) -> bool:
    """Take logarithms where they can count, in place; minus infinity elsewhere.

    Args:
        products: shape (records, units), minus infinity for what is left out.
        offset: added to the logarithms of each record, shape (records,).
        reach: units may be that far below the best of their record.

    Returns:
        Whether every record that has a unit left keeps a best one above `FAINT`; else nothing may be made of them.
    """
    for t in range(products.shape[0]):
        best = -np.inf
        for j in range(products.shape[1]):
            best = max(best, products[t, j])
        if best == -np.inf:
            continue
        if not best > FAINT:
            return False
        least = best * np.exp(-reach)
        for j in range(products.shape[1]):
            products[t, j] = np.log(products[t, j]) + offset[t] if products[t, j] >= least else -np.inf
    return True
