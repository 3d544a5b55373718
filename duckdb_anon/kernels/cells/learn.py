"""Shares of the atoms of a line, learnt from all cells of a column together, and what follows from them.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.cells import Lists, Ranges
from duckdb_anon.kernels.cells.line import Line
from duckdb_anon.model.coded_table import FloatArray

MOST_ROUNDS, LEAST_GAIN = 30, 0.005
HEAPS_GAIN, SHAPE_GAIN, SMOOTHINGS = 0.1, 0.25, 3
"""Gains a row for which heaps are learnt in place of a smooth shape, and a smooth shape in place of none."""
SET_ROUNDS, NODE_ROUNDS, CHANNEL_ROUNDS = 1, 3, 200
"""Rounds for cells that list their values, which have no neighbours, for nodes of a hierarchy in queries, and for
values of a channel, whose likelihood has one maximum."""
_LOST = 1e-290
_FAR = 2**62
Step = Callable[[FloatArray, FloatArray], FloatArray]
"""Shares after one more round with the rows of each cell."""
Ends = NDArray[Any]
"""Whole numbers of 64 bits or float64."""


def learn_shares(cells: Ranges, rows: FloatArray, widths: FloatArray, rounds: int | None = None) -> FloatArray:
    """Share of each atom, learnt from even shares on.

    Args:
        cells: distinct cells.
        rows: rows with each cell, not negative.
        widths: number of values of each atom.
        rounds: how often shares are improved; None lets held-out rows decide, once for cells that are lists.

    Returns:
        Shares that sum to 1, shape (atoms,).

    >>> cells = Ranges(Line.of_widths(np.ones(2)), np.array([0, 1]), np.array([1, 1]))
    >>> learn_shares(cells, np.array([2.0, 2.0]), np.ones(2), rounds=1).tolist()
    [0.25, 0.75]
    """
    start = widths / widths.sum()

    def improved(shares: FloatArray, counts: FloatArray) -> FloatArray:
        of_cell = cells.mass(shares)
        lost = of_cell <= _LOST * np.maximum(counts, 1.0)  # compared with the mass of others
        wanted = np.divide(counts, of_cell, out=np.zeros(len(counts)), where=~lost)
        found: FloatArray = shares * np.maximum(cells.sums(wanted, len(widths)), 0.0)
        total = float(found.sum())
        return np.asarray(found / total) if total > 0 else shares

    step: Step = improved
    if rounds is None:
        step, rounds = (improved, SET_ROUNDS) if cells.several else _chosen(start, rows, cells, improved)
    shares: FloatArray = start
    for _ in range(rounds):
        shares = step(shares, rows)
    return shares


def _chosen(start: FloatArray, rows: FloatArray, cells: Ranges, improved: Step) -> tuple[Step, int]:
    """How shares are improved, and how often: not at all, smoothed, or freely, as held-out rows decide."""
    counts = np.round(np.minimum(rows, 2.0**53)).astype(np.int64)
    used = np.random.default_rng(0).binomial(counts, 0.5)
    held_out = counts - used

    def likelihood(shares: FloatArray) -> float:
        # values that no used row may have are left a little
        logs = np.log(np.maximum(cells.mass(0.99 * shares + 0.01 * start), np.finfo(np.float64).tiny))
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


def learnt_density(lower: Ends, upper: Ends, rows: FloatArray, step: int) -> tuple[Ends, FloatArray]:
    """Learn how the values of an ordered column are spread, from its distinct cells.

    Every cell lies in segments with a share, and neighbours have different ones. There are none where no cell holds
    several values, or where one reaches to infinity.

    Args:
        lower, upper: ends of cells, both inside.
        rows: how many rows have each.
        step: 1 for whole numbers and days, 0 for a measured type.

    Returns:
        Starts of segments, the last one where they end, and the share of records per unit in each of them.
    """
    nothing = lower[:0], np.zeros(0)
    near = np.isfinite(lower) & np.isfinite(upper)
    if step:
        near &= (lower > -_FAR) & (upper < _FAR)
    if not near.all() or not (lower < upper).any():
        return nothing
    wide = upper + step > lower  # of a measured type points have no density
    lower, ends, rows = lower[wide], upper[wide] + step, rows[wide]
    order = np.lexsort((ends, lower))  # held-out rows are drawn cell by cell
    order = order[rows[order] > 0]
    starts = np.unique(np.concatenate([lower, ends]))
    with np.errstate(over="ignore"):
        width = np.diff(starts).astype(np.float64)
    first, last = np.searchsorted(starts, lower), np.searchsorted(starts, ends) - 1
    if not np.isfinite(width.sum()) or not len(order):  # a line longer than numbers are has no shares
        return nothing
    line = Line.of_widths(width)
    mass = learn_shares(Ranges(line, first[order], last[order]), rows[order], width)
    # what rounding took from a value that some box holds is given back, so that no box is without mass
    covered = Ranges(line, first, last).sums(np.ones(len(first)), len(width)) > 0
    density = np.where(covered, np.maximum(mass, 1e-200) / width, 0.0)
    continued = 1 + np.flatnonzero(np.isclose(density[1:], density[:-1], rtol=1e-12, atol=0.0))
    return np.delete(starts, continued), np.delete(density, continued)


def member_weights(cells: Lists, rows: FloatArray) -> FloatArray:
    """Weights of the members of sets of atoms, adding up to 1 in each of them, shape (members,).

    A set lists the values that its rows have, so each of them is given one of these rows, and the others are spread by
    the learnt shares. `rows`: how many rows have each set.
    """
    size, of_set = np.diff(cells.offsets), cells.cell_of_range
    weight = member_shares(cells, rows, SET_ROUNDS)[cells.first]
    listed = np.where(rows >= size, 1 / np.maximum(rows, 1), 0.0)[of_set]
    return np.asarray(listed + (1 - listed * size[of_set]) * weight / np.bincount(of_set, weight)[of_set])


def member_shares(cells: Lists, rows: FloatArray, rounds: int) -> FloatArray:
    """Learnt share of each atom that is listed, shape (atoms,).

    Args:
        cells: lists of atoms; a weight is how likely a member is in its cell before anything is learnt, up to a factor.
        rows: how many rows have each.
        rounds: how often shares are improved.
    """
    atoms = int(cells.first.max(initial=-1)) + 1
    return np.asarray(np.maximum(learn_shares(cells, np.maximum(rows, 0.0), np.ones(atoms), rounds), 1e-200))
