"""Shares of the values inside generalized cells, learnt from all cells of a column.

A box says that a row's value is inside, not which value it is. Boxes of different rows overlap in different ways, so
together they tell more, see `held_out_em`. The first shares are even, so that the values of boxes which overlap with
nothing stay even.

Within one row the columns stay independent given the cells, as in uniform overlap (Xiao and Tao 2006).

Cost: O(rounds * (cells + ends)) for intervals, whatever their widths; O(rounds * members) for sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.held_out_em import SET_ROUNDS, Lists, Ranges, learn_shares
from duckdb_anon.model.coded_table import FloatArray, IntArray

NODE_ROUNDS = 3
"""Rounds for nodes of a hierarchy."""
_FAR = 2**62
_INFINITE = 2**31 - 1  # days of an infinite date
BoolArray = NDArray[np.bool_]
Ends = NDArray[Any]
"""Whole numbers of 64 bits or float64."""


@dataclass(frozen=True)
class ColumnScale:
    """The learnt distribution of an ordered column: its mass is even inside each segment between neighbouring ends."""

    starts: Ends  # where segments start, rising, shape (segments + 1,); the last one closes the last segment
    mass: FloatArray  # cumulative mass before each start, shape (segments + 1,)
    moment: FloatArray  # cumulative mass times distance of its values from `starts[0]`, shape (segments + 1,)
    step: int  # distance of neighbouring values of a counted type, 0 for a measured one

    def before(self, ends: Ends) -> tuple[FloatArray, FloatArray]:
        """Mass and moment of all values less than each end.

        `ends`: any places on the number line.
        """
        inside = np.clip(ends, self.starts[0], self.starts[-1])
        at = np.clip(np.searchsorted(self.starts, inside, side="right") - 1, 0, len(self.starts) - 2)
        width = (self.starts[at + 1] - self.starts[at]).astype(np.float64)
        into = (inside - self.starts[at]).astype(np.float64)
        mass = (self.mass[at + 1] - self.mass[at]) * into / width
        middle = (self.starts[at] - self.starts[0]).astype(np.float64) + (into - self.step) / 2
        return self.mass[at] + mass, self.moment[at] + mass * middle


def learnt_scale(
    lower: Ends, upper: Ends, rows: FloatArray, step: int, rounds: int | None = None
) -> ColumnScale | None:
    """Learn how the values of an ordered column are spread."""
    ends = upper + step
    known = (ends > lower) & (rows > 0)
    if not known.any():
        return None
    lower, ends, rows = lower[known], ends[known], rows[known]
    order = np.lexsort((ends, lower))  # held-out rows are drawn cell by cell
    lower, ends, rows = lower[order], ends[order], rows[order]
    starts = np.unique(np.concatenate([lower, ends]))
    first, last = np.searchsorted(starts, lower), np.searchsorted(starts, ends)
    with np.errstate(over="ignore"):
        width = np.diff(starts).astype(np.float64)
    if not np.isfinite(width.sum()):  # a line longer than numbers are has no shares
        return None
    mass = learn_shares(Ranges(first, last - 1), rows, width, rounds)
    covered = np.cumsum(np.bincount(first, minlength=len(starts)) - np.bincount(last, minlength=len(starts)))[:-1] > 0
    # what rounding took from a value that some box holds is given back, so that no box is without mass
    mass = np.where(covered, np.maximum(mass, 1e-300), 0.0)
    middle = (starts[:-1] - starts[0]).astype(np.float64) + (width - step) / 2
    total, moment = (np.concatenate([[0.0], np.cumsum(one)]) for one in (mass, mass * middle))
    return ColumnScale(starts, total, moment, step)


@dataclass(frozen=True)
class Boxes:
    """The distinct cells of an ordered column."""

    lower: Ends  # lower, upper: their ends, both inside; anything where `null` or `unknown`
    upper: Ends
    null: BoolArray  # whether the cell is the value NULL
    unknown: BoolArray  # whether the cell could be anything
    rows: FloatArray  # how many rows have it
    step: int  # 1 for whole numbers and days, 0 for a measured type
    dated: bool = False  # whether they are days, of which the last and the first are infinite

    @property
    def known(self) -> BoolArray:
        """Whether both ends are known and finite."""
        far = np.isfinite(self.lower) & np.isfinite(self.upper)
        if self.step:
            far &= (self.lower > -_FAR) & (self.upper < _FAR)
        if self.dated:
            far &= (np.abs(self.lower) < _INFINITE) & (np.abs(self.upper) < _INFINITE)
        return far & ~self.null & ~self.unknown

    def scale(self) -> ColumnScale | None:
        """How the values of the column are spread."""
        known = self.known
        return learnt_scale(self.lower[known], self.upper[known], np.maximum(self.rows[known], 0), self.step)

    def filled(self) -> Boxes:
        """Let a cell that could be anything cover all that the others cover."""
        ended = ~self.null & ~self.unknown
        if not self.unknown.any() or not ended.any():
            return self
        lower = np.where(self.unknown, self.lower[ended].min(), self.lower)
        upper = np.where(self.unknown, self.upper[ended].max(), self.upper)
        return replace(self, lower=lower, upper=upper)

    def means(
        self,
        pieces: Ends,
        slope: float,
        shift: float,
        null: bool,
        scale: ColumnScale | None = None,
    ) -> FloatArray:
        """Mean of slope * value + shift over each cell, 0 for values outside all pieces.

        Args:
            pieces: asked values, lowest and highest of each interval, both inside, disjoint, shape (pieces, 2).
            slope: factor of the value.
            shift: what is added.
            null: whether NULL is asked for; it adds the shift where nothing is asked of the value, nothing elsewhere.
            scale: what `scale()` gave, where it is known already.

        Returns:
            Shape (cells,).
        """
        scale = scale or self.scale()
        boxes = self.filled()
        total = np.zeros(len(self.lower))
        for low, high in pieces:
            total += boxes._mean(low, high, (slope, shift), scale)
        of_null = shift if null and not slope else 0.0
        if self.step:  # NULL is one more value of a cell that could be anything
            size = (boxes.upper - boxes.lower).astype(np.float64) + 1
            total = np.where(self.unknown, (total * size + of_null) / (size + 1), total)
        return np.where(self.null, of_null, total)

    def _mean(
        self,
        low: np.int64 | np.float64,
        high: np.int64 | np.float64,
        factors: tuple[float, float],
        scale: ColumnScale | None,
    ) -> FloatArray:
        """The same of one piece."""
        slope, shift = factors
        first, last = np.maximum(self.lower, low), np.minimum(self.upper, high)
        ends = [self.lower.astype(np.float64), self.upper.astype(np.float64)]
        missing = np.isnan(ends[0])
        point = (self.lower == self.upper) | missing
        with np.errstate(all="ignore"):
            width = ends[1] - ends[0]
            finite = np.isfinite(width) & (self.known | self.unknown | (not self.dated))
            size = np.maximum(last.astype(np.float64) - first.astype(np.float64) + self.step, 0)
            even = np.where(last < first, 0.0, size / (width + self.step))
            middle = (first.astype(np.float64) + last.astype(np.float64)) / 2
        # NaN is the greatest number; an infinite box has its ends for values
        inside = [np.where((one >= low) & (one <= high), 1.0, 0.0) for one in (self.lower, self.upper)]
        share = np.where(finite, even, (inside[0] + inside[1]) / 2)
        share = np.where(point, np.where(missing, float(high == np.inf), inside[0]), share)
        value = np.where(finite, middle, np.where(inside[0] > 0, ends[0], ends[1]))
        value = np.where(point, ends[0], value)
        if scale is not None:
            mass_of_cell = scale.before(self.upper + self.step)[0] - scale.before(self.lower)[0]
            # where no row is, as noisy counts may have it, nothing is learnt
            learnt = (self.known | self.unknown) & ~point & (mass_of_cell > 0)
            (upto, upto_moment), (after, after_moment) = scale.before(last + self.step), scale.before(first)
            with np.errstate(all="ignore"):
                part = np.where(last < first, 0.0, upto - after)
                share = np.where(learnt, np.clip(part / mass_of_cell, 0, 1), share)
                middle = float(scale.starts[0]) + (upto_moment - after_moment) / part
                value = np.where(learnt & (part > 0), np.clip(middle, first, last), value)
        with np.errstate(all="ignore"):
            of_value = np.where(share > 0, share * slope * value, 0.0) if slope else 0.0
        return share * shift + of_value

    def sizes(self, most: int) -> IntArray:
        """How many values each cell of a counted type has, NULL among them; 0 where they are more than `most`.

        None has any where all of them together have more than ten times as many: their list would fill the memory.

        `most`: greatest number of values of a cell that are listed.
        """
        boxes = self.filled()
        with np.errstate(all="ignore"):
            size = np.minimum(boxes.upper.astype(np.float64) - boxes.lower.astype(np.float64) + 1, most + 1.0)
        # an infinite date is alone in its box, or with the other one
        infinite = np.full(len(size), self.dated) & ~self.known & ~self.unknown
        size = np.where(infinite, np.where(boxes.lower == boxes.upper, 1, 2), size)
        size = np.where(self.null, 1, np.where(size > most, 0, size + self.unknown)).astype(np.int64)
        return size if size.sum() <= 10 * most else np.zeros_like(size)

    def values(self, most: int) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
        """The values of each cell of whole numbers.

        `most`: greatest number of values of a cell that are listed. Returns values, one cell after another; where cells
        start; which values are NULL; which cells have too many.
        """
        size, boxes = self.sizes(most), self.filled()
        offsets, cell, place = _listed(size)
        null = self.null[cell] | (self.unknown[cell] & (place == size[cell] - 1))
        return boxes.lower.astype(np.int64)[cell] + np.where(null, 0, place), offsets, null, size == 0

    def weights(self, most: int) -> tuple[FloatArray, IntArray]:
        """Weight of each value of each cell of a counted type, one cell after another, and where cells start.

        A cell that could be anything has NULL for its last value.

        `most`: greatest number of values of a cell that are listed; others have no weights.
        """
        scale, boxes, size = self.scale(), self.filled(), self.sizes(most)
        offsets, cell, place = _listed(size)
        weight = 1.0 / size[cell]
        learnt = (self.known | self.unknown)[cell]
        if scale is None or not learnt.any():
            return weight, offsets
        cell, place = cell[learnt], place[learnt]
        null = self.unknown[cell] & (place == size[cell] - 1)
        value = boxes.lower[cell] + place
        mass = np.where(null, 0.0, scale.before(value + 1)[0] - scale.before(value)[0])
        total = np.bincount(cell, mass, len(size))[cell]
        of_values = np.where(self.unknown[cell], (size[cell] - 1) / size[cell], 1.0)
        with np.errstate(all="ignore"):
            found = np.where(total > 0, mass / total * of_values, weight[learnt])
        weight[learnt] = np.where(null, 1 / size[cell], found)
        return weight, offsets


def _listed(size: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Where cells start in a list of their values; the cell of each value, and its place in it."""
    offsets = np.concatenate([[0], np.cumsum(size)])
    cell = np.repeat(np.arange(len(size)), size)
    return offsets, cell, np.arange(len(cell)) - offsets[cell]


def member_weights(codes: IntArray, prior: FloatArray | None, offsets: IntArray, rows: FloatArray) -> FloatArray:
    """Weights of the members of cells that list their values, adding up to 1 in each cell.

    A set lists the values that its rows have, so each of them is given one of these rows, and the others are spread by
    the learnt shares.

    Args:
        codes: code of each member from 0, one cell after another, shape (members,).
        prior: how likely it is in its cell before anything is learnt, up to a factor; 0 stays 0. None for sets.
        offsets: where cells start, shape (cells + 1,).
        rows: how many rows have each cell.

    Returns:
        Shape (members,).
    """
    if prior is None:
        weight = _spread(codes, np.ones(len(codes)), offsets, rows, SET_ROUNDS)
        size = np.diff(offsets)
        listed = np.repeat(np.where(rows >= size, 1 / np.maximum(rows, 1), 0.0), size)
        return np.asarray(listed + (1 - listed * np.repeat(size, size)) * weight)
    return _spread(codes, prior, offsets, rows, NODE_ROUNDS)


def _spread(codes: IntArray, prior: FloatArray, offsets: IntArray, rows: FloatArray, rounds: int) -> FloatArray:
    """Weights of members by learnt shares, adding up to 1 in each cell."""
    cells, values = Lists(offsets, codes, prior), int(codes.max(initial=-1)) + 1
    cell = cells.cell
    shares = learn_shares(cells, np.maximum(rows, 0.0), np.ones(values), rounds)
    weight = prior * np.maximum(shares, 1e-300)[codes]
    total, even = np.bincount(cell, weight)[cell], np.bincount(cell, prior)[cell]
    with np.errstate(all="ignore"):
        return np.asarray(np.where(total > 0, weight / total, np.where(even > 0, prior / even, 0.0)))
