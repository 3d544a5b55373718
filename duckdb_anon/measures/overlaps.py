"""What share of each released cell each query of a workload asks for.

Uniform overlap (Zhang et al. 2007; Xiao and Tao 2006), for all queries at once:

* a single value: 0 or 1;
* an interval: number of asked values in it over its number of values, lengths if continuous;
* a set or a bag of values: share of its members, by count;
* NULL: never asked for; unknown: the share of all that the other cells of the column cover.

Cost: O(cells * n) for intervals, O(members * n) for sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.measures.workload import BoolArray
from duckdb_anon.table import FloatArray, IntArray


@dataclass(frozen=True)
class Intervals:
    """Cells of an ordered attribute.

    Attributes:
        lower, upper: ends as positions on the attribute's number line, both inside, shape (cells,). NaN in
            `lower` only: the value NULL. NaN in both: could be anything.
        positions: places of the values that can be asked for, non-decreasing, shape (values,).
        codes: code of each of these values, shape (values,).
        step: distance of neighbouring values of a counted type (integers, dates), 0 for a measured one.
    """

    lower: FloatArray
    upper: FloatArray
    positions: FloatArray
    codes: IntArray
    step: float

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Share of each cell that each query covers, shape (cells, n).

        Args:
            matches: whether query i asks for code c, shape (n, codes); every query asks for something.
            interval: whether queries ask for all values between their ends, or for the named codes only.
        """
        asked = matches[:, self.codes]
        lower, upper, unknown = self._filled()
        null = np.isnan(lower)
        if interval:
            low, high = _ends(asked, self.positions)
            inside = np.minimum(upper[:, None], high) - np.maximum(lower[:, None], low) + self.step
        else:
            inside = self.step * self._members(asked, lower, upper)
        # NULL is one more value of a cell that could be anything
        width = upper - lower + self.step * (1 + unknown)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.clip(inside, 0, None) / width[:, None]
        point = (width == 0) & ~null
        if point.any():
            shares[point] = self._members(asked, lower[point], upper[point]) > 0
        shares[null] = 0.0
        return shares

    def _filled(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Let a cell that could be anything cover all that the other cells cover."""
        unknown = np.isnan(self.lower) & np.isnan(self.upper)
        if unknown.all():
            return self.lower, self.upper, unknown
        low, high = np.nanmin(self.lower), np.nanmax(np.where(np.isnan(self.lower), np.nan, self.upper))
        return np.where(unknown, low, self.lower), np.where(unknown, high, self.upper), unknown

    def _members(self, matches: BoolArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        before = np.zeros((matches.shape[0], matches.shape[1] + 1))
        np.cumsum(matches, axis=1, out=before[:, 1:])
        first = np.searchsorted(self.positions, lower, side="left")
        last = np.searchsorted(self.positions, upper, side="right")
        counts: FloatArray = (before[:, last] - before[:, first]).T
        return counts


@dataclass(frozen=True)
class Members:
    """Cells that are sets or bags of codes, single values included.

    Attributes:
        offsets: members of cell c are entries offsets[c] .. offsets[c + 1] - 1, shape (cells + 1,).
        codes: code of each member, -1 for one nobody can ask for.
        counts: how often it stands in the cell; 1 in a set.
        values: what a member adds instead of 1, by code (SUM over this attribute); None for COUNT.
    """

    offsets: IntArray
    codes: IntArray
    counts: FloatArray
    values: FloatArray | None = None

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Share (or mean value) of each cell that each query covers, shape (cells, n)."""
        asked = np.zeros((len(self.codes) + 1, len(matches)))
        known = np.flatnonzero(self.codes >= 0)
        asked[known] = matches.T[self.codes[known]]
        scale = np.zeros(len(self.codes) + 1)
        scale[known] = self.counts[known]
        if self.values is not None:
            scale[known] *= self.values[self.codes[known]]
        asked *= scale[:, None]
        starts = self.offsets[:-1]
        total = np.add.reduceat(np.append(self.counts, 0.0), starts)
        sums: FloatArray = np.add.reduceat(asked, starts, axis=0)
        filled = np.diff(self.offsets) > 0
        sums[~filled] = 0.0
        return sums / np.where(filled, total, 1.0)[:, None]


def _ends(matches: BoolArray, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    first = np.argmax(matches, axis=1)
    last = matches.shape[1] - 1 - np.argmax(matches[:, ::-1], axis=1)
    return positions[first], positions[last]
