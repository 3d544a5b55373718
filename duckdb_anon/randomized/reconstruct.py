"""Estimating the original table from a randomized one: cells, standard errors, projection.

With `released` the counts of a randomized table, P^-1 released is an unbiased estimate of the original counts
(Guo, Ying and Wu 2011, section III.B). It sums to the number of rows but may be negative in places: the raw
estimate is right for sums and queries, the projected one for measures that need a distribution.

Variances. With the table held fixed, what a user comparing with the original table sees, the covariance of
the counts is P^-1 diag(P pi) P^-T - diag(pi), times N; with the records themselves a sample of a population
(equation 2 of the paper) it is P^-1 (diag(P pi) - P pi (P pi)^T) P^-T, times N. Their diagonals need one
inverse and one squared inverse, by mode products. Both are estimated from the released counts without bias
(the second up to 1/N).

Cost: O(attributes * cells).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from duckdb_anon.randomized.channel import Channel, invert, invert_squared
from duckdb_anon.randomized.occupied import joint_key
from duckdb_anon.table import CodeArray, FloatArray

Projection = Literal["clip", "euclidean"]


def count_cells(columns: Sequence[CodeArray], sizes: Sequence[int]) -> FloatArray:
    """Return how many rows hold each combination of codes, one axis per column."""
    if not columns:
        raise ValueError("no columns to count")
    key = joint_key(columns, sizes, len(columns[0]))
    return np.bincount(key, minlength=int(np.prod(sizes))).reshape(sizes).astype(np.float64)


def count_variance(released: FloatArray, channels: Sequence[Channel], population: bool) -> FloatArray:
    """Return the estimated variance of each estimated count.

    Args:
        released: counts of the randomized table, one axis per channel.
        channels: the channel of each axis.
        population: true adds the sampling of the records themselves; false is the error against the original
            table, and 0 for cells of attributes that were left alone.

    Returns:
        Array shaped like `released`; estimates below zero are returned as 0.
    """
    estimate = invert(released, channels)
    spread = invert_squared(released, channels)
    taken = estimate**2 / max(released.sum(), 1.0) if population else estimate
    return np.maximum(spread - taken, 0.0)


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
    """Return (N q + kappa) / (N + kappa D): no cell is 0, so that KL and chi-squared stay finite."""
    return np.asarray((records * shares + kappa) / (records + kappa * shares.size), dtype=np.float64)
