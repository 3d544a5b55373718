"""Shares of the values in cells, by expectation maximization that stops where held-out rows gain nothing.

A round spreads the rows of each cell over its values by the shares so far, and counts them by value (Dempster, Laird
and Rubin 1977; for interval-censored values Turnbull 1976). Few rounds keep smooth values smooth, many give all rows to
few values. The release alone decides how many: the shares are learnt from half of its rows, round by round, as long as
the other half becomes likelier by `LEAST_GAIN` a row; as many rounds are then made with all rows.
Cost: about two passes over the cells for each round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duckdb_anon.model.coded_table import FloatArray, IntArray

MOST_ROUNDS, LEAST_GAIN = 30, 0.005
SET_ROUNDS = 1
"""Rounds for cells that list their values: these have no neighbours."""
_LOST = 1e-290


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

    if rounds is None:
        rounds = SET_ROUNDS if isinstance(cells, Lists) else _rounds(start, rows, mass, improved)
    shares: FloatArray = start
    for _ in range(rounds):
        shares = improved(shares, rows)
    return shares


def _rounds(
    start: FloatArray,
    rows: FloatArray,
    mass: Callable[[FloatArray], FloatArray],
    improved: Callable[[FloatArray, FloatArray], FloatArray],
) -> int:
    """Number of rounds after which held-out rows gain less than `LEAST_GAIN` by one more."""
    counts = np.round(np.minimum(rows, 2.0**53)).astype(np.int64)
    used = np.random.default_rng(0).binomial(counts, 0.5)
    held_out = counts - used

    def likelihood(shares: FloatArray) -> float:
        # values that no used row may have are left a little
        logs = np.log(np.maximum(mass(0.99 * shares + 0.01 * start), np.finfo(np.float64).tiny))
        return float((held_out * logs).sum() / max(1, held_out.sum()))

    shares, best = start, likelihood(start)
    for made in range(MOST_ROUNDS):
        shares = improved(shares, used.astype(np.float64))
        found = likelihood(shares)
        if found < best + LEAST_GAIN:
            return made
        best = found
    return MOST_ROUNDS
