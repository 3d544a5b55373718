"""Shares of the values in cells of a column, learnt from all cells together, and what follows from them.

A cell does not say which of its values a row has. Cells of different rows overlap, so together they tell more. A round
of expectation maximization spreads the rows of each cell over its values by the shares so far, and counts them by value
(Dempster, Laird and Rubin 1977; for interval-censored values Turnbull 1976). Many rounds give all rows to few values,
so the release alone decides how many, from even shares on: they are learnt from half of its rows as long as the other
half becomes likelier by `LEAST_GAIN` a row. Shares of ordered values are smoothed after each round (Silverman et al.
1990) unless heaps explain the other half better; where smooth shares hardly do, they stay even. Columns of a row stay
independent given the cells, as in uniform overlap (Xiao and Tao 2006).
Cost: O(rounds * (cells + ends)) for intervals, whatever their widths; O(rounds * members) for sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import FloatArray, IntArray

MOST_ROUNDS, LEAST_GAIN = 30, 0.005
HEAPS_GAIN, SHAPE_GAIN, SMOOTHINGS = 0.1, 0.25, 3
"""Gains a row for which heaps are learnt in place of a smooth shape, and a smooth shape in place of none."""
SET_ROUNDS = 1
"""Rounds for cells that list their values: these have no neighbours."""
NODE_ROUNDS = 3
"""Rounds for nodes of a hierarchy."""
_LOST = 1e-290
_FAR = 2**62
BoolArray = NDArray[np.bool_]
Step = Callable[[FloatArray, FloatArray], FloatArray]
"""Shares after one more round with the rows of each cell."""
Ends = NDArray[Any]
"""Whole numbers of 64 bits or float64."""


@dataclass(frozen=True)
class Ranges:
    """Cells that are ranges of atoms, `first` .. `last`, both inside, shape (cells,)."""

    first: IntArray
    last: IntArray


@dataclass(frozen=True)
class Lists:
    """Cells that are weighted lists of atoms: cell i has places `offsets[i]` .. `offsets[i + 1]` of both arrays.

    A weight is the probability of the cell given the atom, up to a factor.
    """

    offsets: IntArray
    atoms: IntArray
    weights: FloatArray

    @property
    def cell(self) -> IntArray:
        """The cell of each place."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def learn_shares(cells: Ranges | Lists, rows: FloatArray, widths: FloatArray, rounds: int | None = None) -> FloatArray:
    """Share of each atom, learnt from even shares on.

    Args:
        cells: distinct cells.
        rows: rows with each cell, not negative.
        widths: number of values of each atom.
        rounds: how often shares are improved; None lets held-out rows decide, once for cells that are lists.

    Returns:
        Shares that sum to 1, shape (atoms,).

    >>> cells = Ranges(np.array([0, 1]), np.array([1, 1]))
    >>> learn_shares(cells, np.array([2.0, 2.0]), np.ones(2), rounds=1).tolist()
    [0.25, 0.75]
    """
    many, start = len(widths), widths / widths.sum()

    def mass(shares: FloatArray) -> FloatArray:
        if isinstance(cells, Lists):
            return np.bincount(cells.cell, shares[cells.atoms] * cells.weights, len(rows)).astype(np.float64)
        before = np.concatenate([[0.0], np.cumsum(shares)])
        return np.asarray(before[cells.last + 1] - before[cells.first])

    def spread(weight: FloatArray) -> FloatArray:
        if isinstance(cells, Lists):
            return np.bincount(cells.atoms, cells.weights * weight[cells.cell], many).astype(np.float64)
        change = np.bincount(cells.first, weight, many + 1) - np.bincount(cells.last + 1, weight, many + 1)
        return np.asarray(np.cumsum(change)[:-1])

    def improved(shares: FloatArray, counts: FloatArray) -> FloatArray:
        of_cell = mass(shares)
        lost = of_cell <= _LOST * np.maximum(counts, 1.0)  # compared with the mass of others
        wanted = np.divide(counts, of_cell, out=np.zeros(len(counts)), where=~lost)
        found: FloatArray = shares * np.maximum(spread(wanted), 0.0)
        total = float(found.sum())
        return np.asarray(found / total) if total > 0 else shares

    step: Step = improved
    if rounds is None:
        step, rounds = _chosen(start, rows, mass, improved) if isinstance(cells, Ranges) else (improved, SET_ROUNDS)
    shares: FloatArray = start
    for _ in range(rounds):
        shares = step(shares, rows)
    return shares


def _chosen(
    start: FloatArray, rows: FloatArray, mass: Callable[[FloatArray], FloatArray], improved: Step
) -> tuple[Step, int]:
    """How shares are improved, and how often: not at all, smoothed, or freely, as held-out rows decide."""
    counts = np.round(np.minimum(rows, 2.0**53)).astype(np.int64)
    used = np.random.default_rng(0).binomial(counts, 0.5)
    held_out = counts - used

    def likelihood(shares: FloatArray) -> float:
        # values that no used row may have are left a little
        logs = np.log(np.maximum(mass(0.99 * shares + 0.01 * start), np.finfo(np.float64).tiny))
        return float((held_out * logs).sum() / max(1, held_out.sum()))

    def smoothly(shares: FloatArray, counts: FloatArray) -> FloatArray:
        return _smoothed(improved(shares, counts), start)

    even = likelihood(start)

    def ended(step: Step) -> tuple[int, float]:
        shares, best = start, even
        for made in range(MOST_ROUNDS):
            shares = step(shares, used.astype(np.float64))
            found = likelihood(shares)
            if found < best + LEAST_GAIN:
                return made, best
            best = found
        return MOST_ROUNDS, best

    (smooth_rounds, smooth), (free_rounds, free) = ended(smoothly), ended(improved)
    if free >= smooth + HEAPS_GAIN:
        return improved, free_rounds
    return smoothly, smooth_rounds if smooth >= even + SHAPE_GAIN else 0


def _smoothed(shares: FloatArray, widths: FloatArray) -> FloatArray:
    """Shares as dense as their neighbourhood: the value itself counts twice, those beside it once."""

    def around(values: FloatArray) -> FloatArray:
        padded = np.concatenate([[0.0], values, [0.0]])
        return np.asarray(padded[:-2] + 2 * padded[1:-1] + padded[2:])

    for _ in range(SMOOTHINGS):
        shares = around(shares) / around(widths) * widths
    return np.asarray(shares / shares.sum())


@dataclass(frozen=True)
class ColumnScale:
    """The learnt distribution of an ordered column: its mass is even inside each segment between neighbouring ends."""

    starts: Ends  # where segments start, rising, shape (segments + 1,); the last one closes the last segment
    mass: FloatArray  # cumulative mass before each start, shape (segments + 1,)

    def before(self, ends: Ends) -> FloatArray:
        """Mass of all values less than each end.

        `ends`: any places on the number line.
        """
        inside = np.clip(ends, self.starts[0], self.starts[-1])
        at = np.clip(np.searchsorted(self.starts, inside, side="right") - 1, 0, len(self.starts) - 2)
        width = (self.starts[at + 1] - self.starts[at]).astype(np.float64)
        into = (inside - self.starts[at]).astype(np.float64)
        return np.asarray(self.mass[at] + (self.mass[at + 1] - self.mass[at]) * into / width)


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
    return ColumnScale(starts, np.concatenate([[0.0], np.cumsum(mass)]))


@dataclass(frozen=True)
class Boxes:
    """The distinct cells of an ordered column."""

    lower: Ends  # lower, upper: their ends, both inside
    upper: Ends
    rows: FloatArray  # how many rows have it
    step: int  # 1 for whole numbers and days, 0 for a measured type

    def density(self) -> tuple[Ends, FloatArray]:
        """Starts of segments, the last one where they end, and the share of records per unit in each of them.

        Every cell lies in segments with a share, and neighbours have different ones. There are none where no cell holds
        several values, or where one reaches to infinity.
        """
        near = np.isfinite(self.lower) & np.isfinite(self.upper)
        if self.step:
            near &= (self.lower > -_FAR) & (self.upper < _FAR)
        scale = learnt_scale(self.lower, self.upper, np.maximum(self.rows, 0), self.step) if near.all() else None
        if scale is None or not (self.lower < self.upper).any():
            return self.lower[:0], np.zeros(0)
        wide = self.upper + self.step > self.lower
        lower, ends = self.lower[wide], self.upper[wide] + self.step
        starts = np.unique(np.concatenate([lower, ends]))
        change = np.bincount(np.searchsorted(starts, lower), minlength=len(starts))
        change = change - np.bincount(np.searchsorted(starts, ends), minlength=len(starts))
        mass = np.maximum(np.diff(scale.before(starts)), 1e-200)
        density = np.where(np.cumsum(change)[:-1] > 0, mass / np.diff(starts).astype(np.float64), 0.0)
        continued = 1 + np.flatnonzero(np.isclose(density[1:], density[:-1], rtol=1e-12, atol=0.0))
        return np.delete(starts, continued), np.delete(density, continued)


def member_weights(codes: IntArray, offsets: IntArray, rows: FloatArray) -> FloatArray:
    """Weights of the members of sets, adding up to 1 in each of them.

    A set lists the values that its rows have, so each of them is given one of these rows, and the others are spread by
    the learnt shares.

    Args:
        codes: code of each member from 0, one set after another, shape (members,).
        offsets: where sets start, shape (sets + 1,).
        rows: how many rows have each set.

    Returns:
        Shape (members,).
    """
    size = np.diff(offsets)
    of_set = np.repeat(np.arange(len(size)), size)
    weight = member_shares(codes, np.ones(len(codes)), offsets, rows, SET_ROUNDS)[codes]
    listed = np.where(rows >= size, 1 / np.maximum(rows, 1), 0.0)[of_set]
    return np.asarray(listed + (1 - listed * size[of_set]) * weight / np.bincount(of_set, weight)[of_set])


def member_shares(codes: IntArray, prior: FloatArray, offsets: IntArray, rows: FloatArray, rounds: int) -> FloatArray:
    """Learnt share of each code, shape (codes,).

    Args:
        codes, offsets, rows: as `member_weights` takes them, of sets or of nodes.
        prior: how likely a member is in its cell before anything is learnt, up to a factor; 0 stays 0.
        rounds: how often shares are improved.
    """
    values = int(codes.max(initial=-1)) + 1
    shares = learn_shares(Lists(offsets, codes, prior), np.maximum(rows, 0.0), np.ones(values), rounds)
    return np.asarray(np.maximum(shares, 1e-200))
