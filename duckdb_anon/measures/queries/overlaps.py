"""What share of each released cell each query of a workload asks for.

Uniform overlap (Zhang et al. 2007; Xiao and Tao 2006), for all queries at once:

* a single value: 0 or 1;
* an interval: number of asked values in it over its number of values, lengths if continuous;
* a set or a bag of values: share of its members, by count;
* a list of nodes (the values of one person): the sum over its nodes, for each of them is a row of the original;
* NULL: never asked for; unknown: the share of all that the other cells of the column cover.

For a SUM over the attribute itself a value counts what it is instead of 1, spread in the same way.

Cost: O(cells * n) for intervals, O(members * n) for sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from duckdb_anon.measures.queries.workload import BoolArray
from duckdb_anon.model.table import FloatArray, IntArray


@dataclass(frozen=True)
class Intervals:
    """Cells of an ordered attribute.

    Attributes:
        lower, upper: ends as positions on the attribute's number line, both inside, shape (cells,). NaN in
            `lower` only: the value NULL. NaN in both: could be anything.
        positions: places of the values that can be asked for, non-decreasing, shape (values,).
        codes: code of each of these values, shape (values,).
        step: distance of neighbouring values of a counted type (integers, dates), 0 for a measured one.
        valued: whether a value adds what it is instead of 1 (SUM over this attribute).
    """

    lower: FloatArray
    upper: FloatArray
    positions: FloatArray
    codes: IntArray
    step: float
    valued: bool = False

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Share (or mean value) of each cell that each query covers, shape (cells, n).

        Args:
            matches: whether query i asks for code c, shape (n, codes); every query asks for something.
            interval: whether queries ask for all values between their ends, or for the named codes only.
        """
        asked = matches[:, self.codes]
        if not asked.shape[1]:  # a column of nothing but NULL: no query on it finds anything
            return np.zeros((len(self.lower), len(matches)))
        lower, upper, unknown = self._filled()
        null = np.isnan(lower)
        if interval:
            low, high = _ends(asked, self.positions)
            first, last = np.maximum(lower[:, None], low), np.minimum(upper[:, None], high)
            with np.errstate(invalid="ignore"):  # ends that are infinite and alike are points, below
                inside = np.clip(last - first + self.step, 0, None)
            if self.valued:
                inside *= (first + last) / 2
        else:
            inside = self.step * self._members(self._weighed(asked), lower, upper)
        # NULL is one more value of a cell that could be anything
        with np.errstate(divide="ignore", invalid="ignore"):
            width = upper - lower + self.step * (1 + unknown)
            shares: FloatArray = inside / width[:, None]
        point = ((width == 0) | (np.isinf(lower) & (lower == upper))) & ~null
        if point.any():
            shares[point] = self._members(asked, lower[point], upper[point]) > 0
            if self.valued:
                shares[point] *= lower[point][:, None]
        shares[null] = 0.0
        return shares

    def _weighed(self, asked: BoolArray) -> FloatArray:
        """What each value adds where it is asked for."""
        weight = self.positions if self.valued else np.ones(len(self.positions))
        return asked * weight

    def _filled(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Let a cell that could be anything cover all that the other cells cover."""
        unknown = np.isnan(self.lower) & np.isnan(self.upper)
        if unknown.all():
            return self.lower, self.upper, unknown
        low, high = np.nanmin(self.lower), np.nanmax(np.where(np.isnan(self.lower), np.nan, self.upper))
        return np.where(unknown, low, self.lower), np.where(unknown, high, self.upper), unknown

    def _members(self, matches: BoolArray | FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
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


@dataclass(frozen=True)
class Lists:
    """Cells that are lists of nodes, the values of one person; each node is one row of the original.

    Attributes:
        nodes: the distinct nodes as cells of leaves.
        held: how often each cell has each node, shape (cells, nodes).
    """

    nodes: Members
    held: sparse.csr_matrix

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Expected rows (or their values' sum) of each cell that each query covers, shape (cells, n)."""
        found: FloatArray = self.held @ self.nodes.shares(matches, interval)
        return found

    @property
    def rows(self) -> FloatArray:
        """Rows of the original behind each cell, shape (cells,)."""
        return np.asarray(self.held.sum(axis=1)).ravel()


def _ends(matches: BoolArray, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    first = np.argmax(matches, axis=1)
    last = matches.shape[1] - 1 - np.argmax(matches[:, ::-1], axis=1)
    return positions[first], positions[last]
