"""Counts with Gaussian noise, and histograms of single columns under zero-concentrated differential privacy (zCDP).

A column of numbers is cut into sixteen equal parts of its bounds; each part with a large noisy count is cut again.
Without bounds it starts from powers of two of either sign, of which those with a small noisy count are dropped. A
column of names has a cell for each leaf of its hierarchy; without one a name is shown if its noisy count exceeds a
threshold, which a name of one individual passes with a probability of delta. What the functions return beside cells of
records depends on noisy counts alone.

Source: zCDP: Bun and Steinke (2016); delta: Canonne, Kamath and Steinke (2020), section 3; thresholds: Korolova et al.
(2009); nearest counts: Duchi et al. (2008). Cost: one pass over the records a level of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms
from duckdb_anon.model.coded_table import FloatArray, IntArray

_LEVELS = 3  # of the grid, the parts of one being those of the one before, cut
_PARTS = 16
_CUT = 16  # a part is cut whose noisy count is so many standard deviations
_CLEAR = 4.0  # standard deviations from which on a count that may well be 0 is taken for one
_POWERS = range(-20, 63)  # of two, where no bounds are known


@dataclass(frozen=True)
class Names:
    """A column of names as cells, the last one NULL."""

    cell: IntArray  # of each record
    cells: int
    ordered: bool = False  # whether neighbouring cells are alike
    found: bool = False  # whether cells are those that occur, so that one of few records must not be shown


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, NaN where NULL."""

    number: FloatArray  # of each record
    bounds: tuple[float, float] | None  # known without the table
    whole: bool


@dataclass(frozen=True)
class Histogram:
    """A column after its noisy counts: all but `cell` may be shown."""

    cell: IntArray  # of each record
    counts: FloatArray  # of each cell, none negative, of all records together; the last cell is NULL
    ordered: bool
    edges: FloatArray | None = None  # of a column of numbers: where each cell but the last starts, and the end


@dataclass(frozen=True)
class NoisyCounts:
    """Counts of one table; every use is put down in the ledger, which holds rho of zCDP."""

    ledger: Ledger
    each: int  # maximum number of records of an individual
    mechanisms: Mechanisms

    def ask(self, counts: IntArray, rho: float, distance: float | None = None) -> tuple[IntArray, float]:
        """Counts with noise for at most rho, and its standard deviation.

        `distance`: largest Euclidean distance between the counts of neighbouring tables; a record is in one cell.
        """
        far = float(self.each) if distance is None else distance
        scale = float(far / np.sqrt(2 * rho))
        while True:
            noisy, loss = self.mechanisms.gaussian(counts.astype(np.int64), scale, far)
            if loss <= rho:
                break
            scale *= 1 + 2.0**-40
        self.ledger.steps.append(Fraction(loss))
        return noisy, scale


def rho_of(epsilon: float, delta: float) -> float:
    """Largest rho for which rho-zCDP is (epsilon, delta)-differential privacy.

    >>> 0.024 < rho_of(1.0, 1e-6) < 0.025
    True
    """
    low, high = 0.0, float(epsilon)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low


def delta_of(rho: float, epsilon: float) -> float:
    """A delta for which rho-zCDP is (epsilon, delta)-differential privacy."""
    if rho <= 0:
        return 0.0
    alpha = 1 + np.logspace(-3, 6, 4000)  # every alpha above 1 proves one; the least is taken
    exponent = (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
    return float(np.exp(min(exponent.min(), 0.0)))


def nearest(counts: FloatArray, size: float) -> FloatArray:
    """The nearest counts without negative ones that add up to `size`; -inf stays 0.

    >>> nearest(np.array([3.0, 1.0, -1.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    falling = np.sort(counts[np.isfinite(counts)], axis=None)[::-1]
    if len(falling) == 0 or size <= 0:
        return np.zeros_like(counts)
    excess = (np.cumsum(falling) - size) / np.arange(1, len(falling) + 1)
    result: FloatArray = np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
    return result


def of_names(column: Names, asked: NoisyCounts, rho: float, size: float, delta: float) -> Histogram:
    """Histogram of names; `delta`: chance that a name is shown because of one individual."""
    noisy, scale = asked.ask(np.bincount(column.cell, minlength=column.cells), rho)
    least = np.full(column.cells, -np.inf)
    if column.found:
        # an individual has `each` records, so as many names; 1 more for noise that is whole
        least[:] = asked.each + 1 + scale * np.sqrt(2 * np.log(asked.each / delta))
    least[-1] = _CLEAR * scale
    counts = nearest(np.where(noisy > least, noisy, -np.inf).astype(np.float64), size)
    if not counts.any():
        counts[-1] = size  # no name can be shown
    return Histogram(column.cell, counts, column.ordered)


def of_numbers(column: Numbers, asked: NoisyCounts, rho: float, size: float) -> Histogram:
    """Histogram of numbers on a grid that is finer where noisy counts are large."""
    edges = _first_edges(column)
    levels = _LEVELS + (column.bounds is None)
    counts = variance = np.zeros(0)
    parent = np.zeros(0, dtype=np.int64)
    for level in range(levels):
        cells = len(edges)  # with the one of NULL
        noisy, scale = asked.ask(np.bincount(_cell(column, edges), minlength=cells), rho / levels)
        if level == 0:
            clear = np.append(np.full(cells - 1, -np.inf if column.bounds else _CLEAR * scale), _CLEAR * scale)
            counts = nearest(np.where(noisy > clear, noisy, -np.inf).astype(np.float64), size)
            variance = np.full(cells, scale**2)
        else:
            counts, variance = _finer(counts, variance, noisy.astype(np.float64), scale, parent, size)
        if level < levels - 1:
            edges, parent = _cut(edges, counts > _CUT * scale, whole=column.whole)
    if not counts.any():
        counts[-1] = size
    return Histogram(_cell(column, edges), counts, True, edges)


def _first_edges(column: Numbers) -> FloatArray:
    if column.bounds is not None:
        return _parts(column.bounds[0], column.bounds[1] + column.whole, whole=column.whole)
    powers = [2.0**p for p in _POWERS if p >= 0 or not column.whole]
    # -1, 0 and 1 have cells of their own where numbers are whole
    return np.unique([*(1 - p if column.whole else -p for p in powers), 0.0, *powers])


def _parts(low: float, high: float, *, whole: bool) -> FloatArray:
    edges = np.linspace(low, high, _PARTS + 1)
    return np.unique(np.floor(edges)) if whole else np.unique(edges)


def _cell(column: Numbers, edges: FloatArray) -> IntArray:
    """Cell of each record; numbers beyond the ends are in the first or the last one."""
    place = np.clip(np.searchsorted(edges, column.number, side="right") - 1, 0, len(edges) - 2)
    return np.where(np.isnan(column.number), len(edges) - 1, place).astype(np.int64)


def _cut(edges: FloatArray, large: NDArray[np.bool_], *, whole: bool) -> tuple[FloatArray, IntArray]:
    """Edges of finer cells, and the cell that each was part of."""
    finer, parent = [edges[:1]], []
    for c in range(len(edges) - 1):
        ends = _parts(edges[c], edges[c + 1], whole=whole)[1:] if large[c] else edges[c + 1 : c + 2]
        finer.append(ends)
        parent += [c] * len(ends)
    return np.concatenate(finer), np.array([*parent, len(edges) - 1])


def _finer(
    counts: FloatArray, variance: FloatArray, noisy: FloatArray, scale: float, parent: IntArray, size: float
) -> tuple[FloatArray, FloatArray]:
    """Counts of parts that add up to those of their cells, about which both levels are heard by their precision."""
    parts = np.bincount(parent, minlength=len(counts))
    sums, of_sums = np.bincount(parent, weights=noisy, minlength=len(counts)), parts * scale**2
    # a cell that was dropped stays so
    both = (counts * of_sums + sums * variance) / (variance + of_sums)
    both = nearest(np.where(counts > 0, both, -np.inf), size)
    ends = np.cumsum(parts)
    found = [
        nearest(noisy[end - many : end] + (total - summed) / many, total)
        for end, many, total, summed in zip(ends, parts, both, sums, strict=True)
    ]
    whole = (variance * of_sums / (variance + of_sums))[parent]
    return np.concatenate(found), np.where(parts[parent] == 1, whole, scale**2)


def drawn(histogram: Histogram, cells: IntArray, rng: np.random.Generator, *, whole: bool) -> FloatArray:
    """A number of each cell, evenly from it; NaN for NULL."""
    assert histogram.edges is not None  # noqa: S101 -- of a column of numbers
    edges = histogram.edges
    inside = np.minimum(cells, len(edges) - 2)
    number = edges[inside] + rng.random(len(cells)) * np.diff(edges)[inside]
    number = np.floor(number) if whole else number
    return np.where(cells == len(edges) - 1, np.nan, number)
