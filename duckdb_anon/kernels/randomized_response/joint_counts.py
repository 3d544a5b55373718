"""Estimated counts of original rows for each combination of values of several randomized columns.

Inverting the channels is unbiased (Guo, Ying and Wu 2011, section III.B), but over several columns most inverted cells
are noise. Two steps reduce it:

1. a first estimate without that noise: the product of the columns' estimated marginals, improved by a few rounds of
   expectation maximization with the public channels (Dempster, Laird and Rubin 1977; for randomized response Agrawal
   and Aggarwal 2001) where the channels add much noise and cells are few compared with rows;
2. shrinkage of the inverted cells towards it (James and Stein 1961). The share of their distance that is noise is
   computed from the channels alone:
       estimate = first + max(0, 1 - noise / distance^2) * (inverted - first).

Inverted cells enter with their sign. All choices read the release alone. Cost: O(rounds * cells * columns).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, invert, transform, variance_growth
from duckdb_anon.model.coded_table import FloatArray, IntArray

ROUNDS = 9
NOISY = 15.0
"""Growth of a cell's variance from which on rounds of expectation maximization pay."""
ROWS_A_CELL = 2
MOST_CELLS = 1_000_000
CELLS_A_ROW = 10
LEAST_GAIN = 0.01


def joint_counts(codes: IntArray, rows: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray | None:
    """Estimate how many original rows have each combination of values.

    Args:
        codes: released codes of the distinct combinations, shape (combinations, columns).
        rows: how many released rows have each, shape (combinations,).
        channels: how each column was randomized; p = 1 for a column that was not.

    Returns:
        Rows of each combination, one axis per column; their sum is that of `rows`. None where inverting the columns is
        better: fewer than two of them are randomized, a channel is nearly singular, or cells are many compared with
        rows.

    Example:
        >>> import numpy as np
        >>> channels = [RetentionChannel(2, 0.8), RetentionChannel(2, 0.9)]
        >>> cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> estimate = joint_counts(cells, np.array([400.0, 100.0, 100.0, 400.0]), channels)
        >>> estimate.round().tolist()
        [[561.0, -61.0], [-61.0, 561.0]]
    """
    sizes = tuple(channel.size for channel in channels)
    cells, total = float(np.prod(sizes, dtype=np.float64)), float(rows.sum())
    invertible = all(abs(channel.gain) > LEAST_GAIN for channel in channels)
    several = sum(not channel.is_identity for channel in channels) > 1
    if not (invertible and several and total > 0 and cells <= min(MOST_CELLS, CELLS_A_ROW * total)):
        return None
    released = np.zeros(sizes)
    np.add.at(released, tuple(codes.T), rows)
    inverted = invert(released, channels)
    growth = variance_growth(channels)
    first = _independent(inverted)
    if growth >= NOISY and total >= ROWS_A_CELL * cells:
        first = _expectation_maximization(first, released, channels)
    distance = float(np.square(inverted - first).sum())
    noise = (growth - 1) * total
    weight = max(0.0, 1.0 - noise / distance) if distance > 0 else 0.0
    return np.asarray(first + weight * (inverted - first), dtype=np.float64)


def _independent(inverted: FloatArray) -> FloatArray:
    """Return the product of the columns' marginals, no value of them below half a row."""
    total = inverted.sum()
    product: FloatArray = np.full((1,) * inverted.ndim, total)
    for axis in range(inverted.ndim):
        marginal = inverted.sum(axis=tuple(other for other in range(inverted.ndim) if other != axis), keepdims=True)
        marginal = np.maximum(marginal, 0.5)
        product = product * (marginal / marginal.sum())
    return product


def _expectation_maximization(
    counts: FloatArray, released: FloatArray, channels: Sequence[RetentionChannel]
) -> FloatArray:
    """Improve `counts` by a few rounds; the channels are symmetric, so P also carries back."""
    for _ in range(ROUNDS):
        expected = transform(counts, channels)
        ratio = np.divide(released, expected, out=np.zeros_like(released), where=expected > 0)
        counts = counts * transform(ratio, channels)
    return counts
