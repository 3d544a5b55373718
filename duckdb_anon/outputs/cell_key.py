"""Cell keys: consistent noise for counts, sums and means, which the same population has in whatever query.

Each individual (each row without a person column) has a record key, a hash of a secret and of its content. The sum of
the keys of a cell, modulo 2^64, is the cell's key, which looks up the noise: for counts in a table of probabilities by
the count (Thompson, Broadfoot and Elazar, Joint UNECE/Eurostat Work Session, 2013), for sums times the largest
individual's contribution (Giessing and Tent, UNECE, 2019, with one contribution and the multiplier 1, since with a
smaller one the sum of a column of zeros and ones would be an exact count). Noise is
unbiased, has the policy's variance and largest deviation, and of all such distributions the largest entropy (Marley and
Leaver, 2011). A count of 0 stays 0 and none is negative. Departure: a mean is the published sum over the published
count. Margins are published as they are: they do not add up. Cost: the query, and a hash for each row.
"""

from __future__ import annotations

import functools
import secrets

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.model.quoting import literal

Floats = NDArray[np.float64]
STEPS = 20
"""Noise of sums is in units of 1/20."""


def probabilities(deviations: Floats, variance: float) -> Floats:
    """The distribution of noise with the largest entropy.

    Args:
        deviations: possible noise, with a negative and a positive one.
        variance: of the noise, at most the largest that a mean of 0 allows.

    Example:
        >>> probabilities(np.arange(-2.0, 3), 1.0).round(3).tolist()
        [0.064, 0.245, 0.383, 0.245, 0.064]
    """
    if variance >= -deviations.min() * deviations.max():  # the two ends alone
        ends = np.zeros(len(deviations))
        ends[[0, -1]] = np.array([deviations[-1], -deviations[0]]) / (deviations[-1] - deviations[0])
        return ends
    moments = np.array([deviations / deviations.max(), (deviations**2 - variance) / deviations.max() ** 2])

    def chances(weights: Floats) -> Floats:
        exponents = weights @ moments
        parts = np.exp(exponents - exponents.max())
        return np.asarray(parts / parts.sum())

    def curvature(weights: Floats) -> Floats:
        part = chances(weights)
        return np.asarray((moments * part) @ moments.T - np.outer(moments @ part, moments @ part))

    # the dual: the moments of exponential weights are 0 where the sum of weights is smallest
    weights = scipy.optimize.minimize(
        lambda weights: float(scipy.special.logsumexp(weights @ moments)), np.zeros(2), method="trust-exact",
        jac=lambda weights: moments @ chances(weights), hess=curvature,
    ).x  # fmt: skip
    for _ in range(3):  # to the last digits
        weights = weights - np.linalg.solve(curvature(weights), moments @ chances(weights))
    return chances(weights)


@functools.lru_cache(maxsize=8)
def count_table(variance: float, deviation: int) -> Floats:
    """Probabilities of noise from -`deviation` to `deviation` of counts 0, 1, ...; the last one is of all larger."""
    table = np.zeros((deviation + 1, 2 * deviation + 1))
    table[0, deviation] = 1
    for count in range(1, deviation + 1):
        table[count, deviation - count :] = probabilities(np.arange(-count, deviation + 1.0), variance)
    return table


@functools.lru_cache(maxsize=8)
def sum_table(variance: float, deviation: int) -> Floats:
    """Probabilities of noise from -`deviation` to `deviation` in steps of 1/20."""
    return probabilities(np.arange(-deviation * STEPS, deviation * STEPS + 1) / STEPS, variance)


def new_secret() -> str:
    """A secret for record keys."""
    return secrets.token_hex(16)


def record_key(secret: str, value: str) -> str:
    """SQL of the key of a record from a hash of what it is."""
    return f"md5_number_lower({literal(secret)} || {value}::varchar)"


def uniform(key: str, name: str) -> str:
    """SQL of a number in [0, 1) from a sum of record keys, another one for each `name`."""
    return f"md5_number_lower((coalesce({key}, 0) % {1 << 64})::varchar || {literal(name)}) / {float(1 << 64)!r}"


def noise_of_count(count: str, number: str, variance: float, deviation: int) -> str:
    """SQL of the noise of a count, by a number in [0, 1)."""
    rows = (_listed(row) for row in count_table(variance, deviation))
    row = f"[{', '.join(rows)}][least({count}, {deviation}) + 1]"
    return f"(len(list_filter({row}, lambda p: p <= {number})) - {deviation})"


def noise_of_sum(number: str, variance: float, deviation: int) -> str:
    """SQL of the noise of a sum, in units of the largest contribution."""
    row = _listed(sum_table(variance, deviation))
    places = f"len(list_filter({row}, lambda p: p <= {number}))"
    return f"(({places} - {deviation * STEPS}) / {STEPS})"


def _listed(chances: Floats) -> str:
    """SQL of the cumulative probabilities below which the next deviation begins."""
    return f"[{', '.join(f'{each:.12f}' for each in np.cumsum(chances)[:-1])}]::double[]"
