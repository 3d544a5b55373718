"""What share of each released cell each query of a workload asks for.

For all queries at once, with the shares of values that `kernels.cell_shares` learns from all cells of the column:

* a single value: 0 or 1;
* an interval: share of its asked values, which is number over number where nothing is learnt (uniform overlap, Zhang et
  al. 2007; Xiao and Tao 2006);
* a set of values: share of its members; a bag: by count;
* a list of nodes (the values of one person): the sum over its nodes, for each of them is a row of the original;
* NULL: never asked for; unknown: the share of all that the other cells of the column cover, less that of NULL.

For a SUM over the attribute itself a value counts what it is instead of 1, spread in the same way.

Cost: O(cells * n) for intervals, O(members * n) for others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.cell_shares import Boxes, ColumnScale
from duckdb_anon.measures.queries.workload import BoolArray
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.learnt import OF_NULL, OF_RARE_NULL


@dataclass(frozen=True)
class Intervals:
    """Cells of an ordered attribute.

    Attributes:
        lower, upper: ends as positions on the attribute's number line, both inside, shape (cells,). NaN in
            `lower` only: the value NULL. NaN in both: could be anything.
        positions: places of the values that can be asked for, non-decreasing, shape (values,).
        codes: code of each of these values, shape (values,).
        step: distance of neighbouring values of a counted type (integers, dates), 0 for a measured one.
        rows: how many rows have each cell, shape (cells,).
        valued: whether a value adds what it is instead of 1 (SUM over this attribute).
    """

    lower: FloatArray
    upper: FloatArray
    positions: FloatArray
    codes: IntArray
    step: float
    rows: FloatArray
    valued: bool = False

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Share (or mean value) of each cell that each query covers, shape (cells, n).

        Args:
            matches: whether query i asks for code c, shape (n, codes); every query asks for something.
            interval: whether queries ask for all values between their ends, or for the named codes only.
        """
        requested = matches[:, self.codes]
        if not requested.shape[1]:  # a column of nothing but NULL: no query on it finds anything
            return np.zeros((len(self.lower), len(matches)))
        boxes = self._boxes()
        filled = boxes.filled()
        scale = boxes.scale()
        finite = (boxes.known | boxes.unknown) & np.isfinite(filled.lower) & np.isfinite(filled.upper)
        point = filled.lower == filled.upper
        if interval:
            low, high = _ends(requested, self.positions)
            inside = self._learnt(filled, scale, low, high)
        else:
            inside = self._named(filled, scale, requested)
        at = finite & point if not self.step else np.zeros(len(point), dtype=bool)
        at |= ~finite & ~boxes.null
        if at.any():
            inside[at] = self._members(requested, filled.lower[at], filled.upper[at]) > 0
            if self.valued:
                inside[at] *= filled.lower[at][:, None]
        inside[boxes.unknown] *= 1 - (OF_NULL if boxes.null.any() else OF_RARE_NULL)
        inside[boxes.null] = 0.0
        return inside

    def _boxes(self) -> Boxes:
        null = np.isnan(self.lower) & ~np.isnan(self.upper)
        unknown = np.isnan(self.lower) & np.isnan(self.upper)
        lower, upper = (np.where(np.isnan(node), 0.0, node) for node in (self.lower, self.upper))
        return Boxes(lower, upper, null, unknown, self.rows, int(self.step))

    def _learnt(self, boxes: Boxes, scale: ColumnScale | None, low: FloatArray, high: FloatArray) -> FloatArray:
        """Share (or mean value) of each cell between the ends of each query."""
        lower, upper = boxes.lower[:, None], boxes.upper[:, None]
        first, last = np.maximum(lower, low), np.minimum(upper, high)
        with np.errstate(all="ignore"):
            share = np.clip(last - first + self.step, 0, None) / (upper - lower + self.step)
            value = (first + last) / 2
            if scale is not None:
                start, all_ = (scale.before(node)[0][:, None] for node in (boxes.lower, boxes.upper + self.step))
                after, after_moment = scale.before(first)
                upto, upto_moment = scale.before(last + self.step)
                part = np.where(last < first, 0.0, upto - after)
                # where no row is, as noisy counts may have it, nothing is learnt
                learnt = np.isfinite(upper - lower) & (all_ > start)
                share = np.where(learnt, np.clip(part / (all_ - start), 0, 1), share)
                if self.valued:
                    middle = float(scale.starts[0]) + (upto_moment - after_moment) / part
                    value = np.where(learnt & (part > 0), np.clip(middle, first, last), value)
            return np.where(share > 0, share * value, 0.0) if self.valued else share

    def _named(self, boxes: Boxes, scale: ColumnScale | None, requested: BoolArray) -> FloatArray:
        """The same of the named values."""
        weight: FloatArray = self.positions if self.valued else np.ones(len(self.positions))
        if not self.step:
            return np.zeros((len(boxes.lower), len(requested)))
        with np.errstate(all="ignore"):
            even = (
                self._members(requested * weight, boxes.lower, boxes.upper) / (boxes.upper - boxes.lower + 1)[:, None]
            )
            if scale is None:
                return np.asarray(even, dtype=np.float64)
            finite = np.where(np.isfinite(self.positions), self.positions, scale.starts[0])
            weight = weight * (scale.before(finite + 1)[0] - scale.before(finite)[0])
            total = (scale.before(boxes.upper + 1)[0] - scale.before(boxes.lower)[0])[:, None]
            return np.where(total > 0, self._members(requested * weight, boxes.lower, boxes.upper) / total, even)

    def _members(self, matches: BoolArray | FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        before = np.zeros((matches.shape[0], matches.shape[1] + 1))
        np.cumsum(matches, axis=1, out=before[:, 1:])
        first = np.searchsorted(self.positions, lower, side="left")
        last = np.searchsorted(self.positions, upper, side="right")
        counts: FloatArray = (before[:, last] - before[:, first]).T
        return counts


@dataclass(frozen=True)
class SpreadCells:
    """Cells with the share of each value.

    Attributes:
        weight: how many of each value a cell stands for, shape (cells, codes).
        values: what a value adds instead of 1, by code (SUM over this attribute); None for COUNT.
    """

    weight: sparse.csr_matrix
    values: FloatArray | None = None

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Expected records (or their values' sum) of each cell that each query covers, shape (cells, n)."""
        requested = matches.T.astype(np.float64)
        if self.values is not None:
            requested *= self.values[:, None]
        found: FloatArray = self.weight @ requested
        return found

    @property
    def records(self) -> FloatArray:
        """Rows of the original behind each cell, shape (cells,)."""
        return np.asarray(self.weight.sum(axis=1)).ravel()


def _ends(matches: BoolArray, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    first = np.argmax(matches, axis=1)
    last = matches.shape[1] - 1 - np.argmax(matches[:, ::-1], axis=1)
    return positions[first], positions[last]
