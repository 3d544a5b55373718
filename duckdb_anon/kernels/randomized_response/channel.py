"""The randomizing channel of a column, its inverse, and what follows from them on a contingency table.

A channel over d values keeps a value with probability p and otherwise replaces it by one of the other d - 1 values,
each with probability q = (1 - p) / (d - 1) (Guo, Ying and Wu 2011, section III, equation 1). As a matrix it is
P = gain * I + q * J with J all ones and gain = p - q. So P y, its inverse and its entrywise square need only y and the
sum of y, and the Kronecker product of all channels is never built: one pass over the table per attribute, where the
paper's Lemma 2 needs a matrix product per attribute.

Arrays have one axis per attribute, axis k of length `channels[k].size`. Cost: O(cells) per attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import CodeArray, FloatArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.progress import tick

SINGULAR = 1e-9


@dataclass(frozen=True)
class RetentionChannel:
    """Randomized response over `size` values that keeps the true one with probability `p`.

    >>> channel = RetentionChannel(3, 0.6)
    >>> round(channel.q, 12), round(channel.gain, 12)
    (0.2, 0.4)
    """

    size: int  # number of values in the domain, at least 1
    p: float  # probability that the released value is the true one, in [0, 1]; a domain of one value has p = 1

    def __post_init__(self) -> None:
        """Refuse what is not a probability."""
        if self.size < 1 or not 0.0 <= self.p <= 1.0:
            raise ParameterError(f"a channel needs size >= 1 and 0 <= p <= 1, not {self.size} and {self.p}")
        if self.size == 1:
            object.__setattr__(self, "p", 1.0)

    @classmethod
    def of_gain(cls, size: int, gain: float) -> RetentionChannel:
        """Return the channel with p - q = `gain`: 1 leaves values alone, 0 makes the output independent of them."""
        return cls(size, min(1.0, gain + (1.0 - gain) / size))

    @property
    def q(self) -> float:
        """Probability of each wrong value."""
        return 0.0 if self.size == 1 else (1.0 - self.p) / (self.size - 1)

    @property
    def gain(self) -> float:
        """The eigenvalue p - q that all contrasts are multiplied by."""
        return self.p - self.q

    @property
    def is_identity(self) -> bool:
        """True when no value can change."""
        return self.q == 0.0

    @property
    def inverse_norm(self) -> float:
        """Squared Frobenius norm of the inverse: 1 + (size - 1) / gain^2; infinite when singular."""
        return 1.0 + (self.size - 1) / self.gain**2 if self.gain else float("inf")

    def distort(self, codes: CodeArray, rng: np.random.Generator) -> CodeArray:
        """Return `codes`, each in 0 .. size - 1, after one independent draw per row."""
        tick()
        if self.is_identity:
            return codes.copy()
        moved = np.flatnonzero(rng.random(len(codes)) >= self.p)
        shift = rng.integers(1, self.size, size=len(moved), dtype=np.int64)
        released = codes.copy()
        released[moved] = (codes[moved] + shift) % self.size
        return released


def transform(cells: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray:
    """Return (P_1 x .. x P_m) applied to `cells`: the expected table after randomization."""
    return _along_axes(cells, [(channel.gain, channel.q) for channel in channels])


def transform_squared(cells: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray:
    """Return the Kronecker product of the entrywise squares of the channels, applied to `cells`."""
    return _along_axes(cells, [(channel.p**2 - channel.q**2, channel.q**2) for channel in channels])


def inverse_terms(channel: RetentionChannel) -> tuple[float, float]:
    """Return (x, y) with P^-1 = x I + y J: x = 1 / gain, y = -q / gain."""
    if channel.is_identity:
        return 1.0, 0.0
    if abs(channel.gain) < SINGULAR:
        raise ParameterError(
            f"p = {channel.p:g} over {channel.size} values is 1/{channel.size}: the released values say nothing"
            f" about the true ones and nothing can be estimated; p must differ from {1 / channel.size:g}"
        )
    return 1.0 / channel.gain, -channel.q / channel.gain


def variance_growth(channels: Sequence[RetentionChannel]) -> float:
    """Return the product of ||P^-1||^2 / size: the sum of the squared weights of one released row in the estimate."""
    return float(np.prod([channel.inverse_norm / channel.size for channel in channels]))


def expected_squared_error(channels: Sequence[RetentionChannel], records: int) -> float:
    """Expected squared error of the estimated cell shares of a given table: trace (F / D - 1) / N of the covariance.

    F is the product of `inverse_norm`, D the number of cells, N that of the records.

    >>> round(expected_squared_error([RetentionChannel(2, 0.8), RetentionChannel(3, 0.7)], 100), 6)
    0.037925
    """
    return max(variance_growth(channels) - 1.0, 0.0) / max(records, 1)


def _along_axes(cells: FloatArray, terms: Sequence[tuple[float, float]]) -> FloatArray:
    """Apply x I + y J along every axis k, (x, y) = terms[k]."""
    result: NDArray[np.float64] = np.asarray(cells, dtype=np.float64)
    if result.ndim != len(terms):
        raise ValueError(f"{result.ndim} axes but {len(terms)} channels")
    for axis, (diagonal, constant) in enumerate(terms):
        if diagonal == 1.0 and constant == 0.0:
            continue
        tick()
        total = result.sum(axis=axis, keepdims=True)
        result = diagonal * result + constant * total
    return result


def project(estimate: FloatArray) -> FloatArray:
    """Return the distribution for a raw estimate of any shape, which may have negative cells: they become 0.

    >>> project(np.array([6.0, 6.0, -1.0])).tolist()
    [0.5, 0.5, 0.0]
    """
    clipped = np.maximum(np.asarray(estimate, dtype=np.float64) / estimate.sum(), 0.0)
    return np.asarray(clipped / clipped.sum(), dtype=np.float64)


def smooth(shares: FloatArray, records: float, kappa: float = 0.5) -> FloatArray:
    """Return (N q + kappa) / (N + kappa D): no cell is 0, so that KL and chi-squared stay finite."""
    return np.asarray((records * shares + kappa) / (records + kappa * shares.size), dtype=np.float64)
