"""The randomizing channel of one attribute, and products of channels over a contingency table.

A channel over d values keeps a value with probability p and otherwise replaces it by one of the other d - 1,
each with probability q = (1 - p) / (d - 1) (Guo, Ying and Wu 2011, section III, equation 1). As a matrix it
is P = gain * I + q * J with J all ones and gain = p - q, so P y, its inverse and its entrywise square need
only y and the sum of y: the Kronecker product of all channels is never built. One pass over the table per
attribute, where the paper's Lemma 2 needs a matrix product per attribute.

Arrays hold one axis per attribute, axis k of length `channels[k].size`. Cost: O(cells) per attribute.
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

    Attributes:
        size: number of values in the domain, at least 1.
        p: probability that the released value is the true one, in [0, 1]; a domain of one value has p = 1.

    >>> channel = RetentionChannel(3, 0.6)
    >>> round(channel.q, 12), round(channel.gain, 12)
    (0.2, 0.4)
    """

    size: int
    p: float

    def __post_init__(self) -> None:
        """Refuse what is not a probability."""
        if self.size < 1 or not 0.0 <= self.p <= 1.0:
            raise ParameterError(f"a channel needs size >= 1 and 0 <= p <= 1, not {self.size} and {self.p}")
        if self.size == 1:
            object.__setattr__(self, "p", 1.0)  # a single value can only stay what it is

    @classmethod
    def of_gain(cls, size: int, gain: float) -> RetentionChannel:
        """Return the channel with p - q = `gain`: 1 leaves values alone, 0 forgets them."""
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
        """Return `codes` (each in 0..size-1) after one independent draw a row.

        Args:
            codes: true codes, shape (n,).
            rng: the source of randomness; always advanced by the same amount for the same n.
        """
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
    return _along_axes(cells, [(c.gain, c.q) for c in channels])


def transform_squared(cells: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray:
    """Return the Kronecker product of the entrywise squares of the channels, applied to `cells`."""
    return _along_axes(cells, [(c.p**2 - c.q**2, c.q**2) for c in channels])


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


def expected_squared_error(channels: Sequence[RetentionChannel], records: int, concentration: float = 1.0) -> float:
    """Return the expected squared error of the estimated cell shares (trace of the covariance).

    Args:
        channels: one an attribute.
        records: number of rows N.
        concentration: 1 holds the table fixed, trace (F / D - 1) / N with F the product of `inverse_norm` and D the
            number of cells; the sum of the squared shares of the cells adds the sampling of the records from a
            population (equation 2 of the paper), trace (F / D - sum) / N.

    >>> round(expected_squared_error([RetentionChannel(2, 0.8), RetentionChannel(3, 0.7)], 100), 6)
    0.037925
    """
    norm = float(np.prod([c.inverse_norm / c.size for c in channels]))
    return max(norm - concentration, 0.0) / max(records, 1)


def _along_axes(cells: FloatArray, terms: Sequence[tuple[float, float]]) -> FloatArray:
    """Apply x I + y J along every axis k, (x, y) = terms[k]."""
    result: NDArray[np.float64] = np.asarray(cells, dtype=np.float64)
    if result.ndim != len(terms):
        raise ValueError(f"{result.ndim} axes but {len(terms)} channels")
    for axis, (own, other) in enumerate(terms):
        if own == 1.0 and other == 0.0:
            continue
        tick()
        total = result.sum(axis=axis, keepdims=True)
        result = own * result + other * total
    return result
