"""Derivatives of the disclosure risk by the gains of the channels, for the search of optimal parameters.

With P = a I + q J and q = (1 - a) / d, every derivative of a mode product is again a mode product, so the
gradient costs one pass over the QI table per attribute beyond the risk itself. Notation follows risk.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, transform, transform_squared
from duckdb_anon.kernels.randomized_response.contingency import Occupied
from duckdb_anon.kernels.randomized_response.risk import RiskModel
from duckdb_anon.model.coded_table import FloatArray, IntArray


def rec_qi_gradient(
    table: Occupied, qi: Sequence[RetentionChannel], wanted: IntArray
) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Return the reconstruction probability of the QI cells `wanted` and its derivative by each gain.

    Channels must have gains strictly between 0 and 1, or be identities (whose derivative is not returned).

    Args:
        table: occupied cells.
        qi: channels of the quasi-identifiers.
        wanted: numbers of the QI cells.
    """
    shares = table.dense_qi()
    at = tuple(table.cell_codes[:, wanted])
    prior = table.cell_share[wanted]
    released = transform(shares, qi)
    inverse = np.divide(1.0, released, out=np.zeros_like(released), where=released > 0)
    back = transform_squared(inverse, qi)
    slopes = {}
    for axis, channel in enumerate(qi):
        if channel.is_identity:
            continue
        # released = a y + q sum(y), so its derivative y - mean(y) follows from released itself
        change = (released - released.mean(axis=axis, keepdims=True)) / channel.gain
        through_release = transform_squared(change * inverse**2, qi)[at]
        slopes[axis] = prior * (_own_axis_slope(back, channel, axis)[at] - through_release)
    return prior * back[at], slopes


def _own_axis_slope(back: FloatArray, channel: RetentionChannel, axis: int) -> FloatArray:
    """Differentiate one factor s I + r J of a product of squared channels by that channel's gain."""
    s, r, ds, dr = _square_terms(channel)
    plain_sum = back.sum(axis=axis, keepdims=True) / (s + channel.size * r)
    return np.asarray(ds * (back - r * plain_sum) / s + dr * plain_sum, dtype=np.float64)


def _square_terms(channel: RetentionChannel) -> tuple[float, float, float, float]:
    """Return s, r of the squared channel s I + r J, and their derivatives by the gain."""
    a, q, d = channel.gain, channel.q, channel.size
    return a * a + 2 * a * q, q * q, 2 * a + 2 * q - 2 * a / d, -2 * q / d


def rec_sensitive_gradient(
    model: RiskModel, table: Occupied, channel: RetentionChannel
) -> tuple[FloatArray, FloatArray]:
    """Return the reconstruction probability of every pair's sensitive value and its derivative by the gain.

    Args:
        model: what an attacker believes.
        table: occupied cells.
        channel: channel of the sensitive attribute.
    """
    prior, group, of_pair = model.sensitive_prior(table)
    s, r, ds, dr = _square_terms(channel)
    inverse = 1.0 / (channel.gain * prior + channel.q)
    falling = (prior - 1.0 / channel.size) * inverse**2
    absent = table.sensitive_size - np.bincount(group)
    total = np.bincount(group, inverse) + absent / channel.q
    total_falling = np.bincount(group, falling) - absent / (channel.size * channel.q**2)
    value = prior * (s * inverse + r * total[group])
    slope = prior * (ds * inverse - s * falling + dr * total[group] - r * total_falling[group])
    return value[of_pair], slope[of_pair]
