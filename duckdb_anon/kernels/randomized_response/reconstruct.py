"""From raw estimates of the original's cells to distributions.

P^-1 times the released counts is an unbiased estimate of the original counts (Guo, Ying and Wu 2011, section
III.B). It sums to the number of rows but may be negative in places: the raw estimate is right for sums and
queries, the projected one for measures that need a distribution. Cost: O(cells), times log for 'euclidean'.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from duckdb_anon.model.coded_table import FloatArray

Projection = Literal["clip", "euclidean"]


def project(estimate: FloatArray, how: Projection = "clip") -> FloatArray:
    """Return non-negative shares close to a raw estimate of counts or shares.

    Args:
        estimate: raw counts or shares with a positive sum, any shape.
        how: 'clip' sets negatives to 0 and divides by the sum; 'euclidean' is the nearest point of the
            simplex in squared distance.

    Returns:
        Shares of the same shape, summing to 1.

    >>> import numpy as np
    >>> project(np.array([6.0, 5.0, -1.0]), 'euclidean').round(3).tolist()
    [0.55, 0.45, 0.0]
    """
    shares = np.asarray(estimate, dtype=np.float64) / estimate.sum()
    if how == "clip":
        kept = np.maximum(shares, 0.0)
        return np.asarray(kept / kept.sum(), dtype=np.float64)
    falling = np.sort(shares, axis=None)[::-1]
    surplus = (np.cumsum(falling) - 1.0) / np.arange(1, falling.size + 1)
    shift = surplus[np.flatnonzero(falling > surplus)[-1]]
    return np.asarray(np.maximum(shares - shift, 0.0), dtype=np.float64)


def smooth(shares: FloatArray, records: float, kappa: float = 0.5) -> FloatArray:
    """Return (N q + kappa) / (N + kappa D): no cell is 0, so that KL and chi-squared stay finite.

    Args:
        shares: shares of the cells, some of them below 0.
        records: number of records.
        kappa: weight of the even distribution, in records.
    """
    return np.asarray((records * shares + kappa) / (records + kappa * shares.size), dtype=np.float64)
