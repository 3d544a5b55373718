"""How many original rows have each combination of values, estimated from several randomized columns together.

Inverting the channels is unbiased (Guo, Ying and Wu 2011, section III.B), and over several columns so noisy that most
cells are noise. The cells together tell more than each alone:

1. a first estimate without noise: the product of the columns' own distributions, improved by a few rounds of
   expectation maximisation with the known channels (Dempster, Laird and Rubin 1977; for randomized response Agrawal and
   Aggarwal 2001),
       p(x) <- p(x) * sum over released y of P(y | x) * rows(y) / (P p)(y),
   where the channels add much noise and cells are few against rows; elsewhere rounds would fit the noise;
2. shrinkage towards it (James and Stein 1961): the inverted cells lie around it as far as the association of the
   columns and the noise together. The noise's part is known from the channels alone, so the rest is association:
       estimate = first + max(0, 1 - noise / distance^2) * (inverted - first).

Nothing is cut off at 0 before it is summed: inverted cells enter with their sign. All choices read the release alone.
Cost: O(rounds * cells * columns), cells being all combinations of values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms, transform
from duckdb_anon.model.coded_table import FloatArray, IntArray

ROUNDS = 9
NOISY = 15.0
"""From this growth of a cell's variance on, rounds are worth their while."""
ROWS_A_CELL = 2
MOST_CELLS = 1_000_000
CELLS_A_ROW = 10
LEAST_GAIN = 0.01


def joint_counts(codes: IntArray, rows: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray | None:
    """Estimate how many original rows have each combination of values.

    Args:
        codes: released codes of the distinct combinations, shape (combinations, columns).
        rows: how many released rows have each, shape (combinations,).
        channels: how each column was randomized; p = 1 for one that is as it was.

    Returns:
        Rows of each combination, one axis a column; their sum is that of `rows`. None where the columns are better
        inverted: fewer than two of them are randomized, a channel hardly tells anything, or cells are many against
        rows.

    Example:
        >>> import numpy as np
        >>> channels = [RetentionChannel(2, 0.8), RetentionChannel(2, 0.9)]
        >>> cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> found = joint_counts(cells, np.array([400.0, 100.0, 100.0, 400.0]), channels)
        >>> found.round().tolist()
        [[561.0, -61.0], [-61.0, 561.0]]
    """
    sizes = tuple(channel.size for channel in channels)
    size, total = float(np.prod(sizes, dtype=np.float64)), float(rows.sum())
    told = all(abs(channel.gain) > LEAST_GAIN for channel in channels)
    several = sum(not channel.is_identity for channel in channels) > 1
    if not (told and several and total > 0 and size <= min(MOST_CELLS, CELLS_A_ROW * total)):
        return None
    released = np.zeros(sizes)
    np.add.at(released, tuple(codes.T), rows)
    inverted = along(released, channels)
    growth = variance_growth(channels)
    first = _independent(inverted)
    if growth >= NOISY and total >= ROWS_A_CELL * size:
        first = _improved(first, released, channels)
    distance = float(np.square(inverted - first).sum())
    noise = (growth - 1) * total
    kept = max(0.0, 1.0 - noise / distance) if distance > 0 else 0.0
    return np.asarray(first + kept * (inverted - first), dtype=np.float64)


def along(released: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray:
    """Invert the channels: P^-1 applied to a contingency table.

    Args:
        released: one axis a column.
        channels: how each was randomized.
    """
    found = released
    for axis, channel in enumerate(channels):
        own, other = inverse_terms(channel)
        found = own * found + other * found.sum(axis=axis, keepdims=True)
    return found


def variance_growth(channels: Sequence[RetentionChannel]) -> float:
    """How many times the squared weights of a released row are 1: the product of ||P^-1||^2 / size.

    The expected squared error of the inverted cells is (this - 1) * rows, whatever the original (section 2 of the
    paper, with the table fixed).

    Args:
        channels: how each column was randomized.
    """
    return float(np.prod([channel.inverse_norm / channel.size for channel in channels]))


def _independent(inverted: FloatArray) -> FloatArray:
    """The product of the columns' own distributions, none of them below half a row."""
    total = inverted.sum()
    found: FloatArray = np.full((1,) * inverted.ndim, total)
    for axis in range(inverted.ndim):
        own = inverted.sum(axis=tuple(other for other in range(inverted.ndim) if other != axis), keepdims=True)
        own = np.maximum(own, 0.5)
        found = found * (own / own.sum())
    return found


def _improved(counts: FloatArray, released: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray:
    """A few rounds of expectation maximisation; the channels are symmetric."""
    for _ in range(ROUNDS):
        expected = transform(counts, channels)
        ratio = np.divide(released, expected, out=np.zeros_like(released), where=expected > 0)
        counts = counts * transform(ratio, channels)
    return counts
