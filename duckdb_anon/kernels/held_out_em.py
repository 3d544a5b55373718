"""Shares of values that cells may stand for, by expectation maximisation that stops where held-out rows gain nothing.

A round spreads the rows of each cell over its values by the shares so far, and counts what came together (Dempster,
Laird and Rubin 1977; for interval-censored values Turnbull 1976). Few rounds keep smooth values smooth, many give all
rows to few values. How many are made is told by the release alone: half of its rows are learnt from, round by round,
as long as the other half becomes likelier by `LEAST_GAIN` a row; as many rounds are then made with all rows.
Cost: about two passes over the cells for each round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duckdb_anon.model.coded_table import FloatArray

MOST_ROUNDS, LEAST_GAIN = 30, 0.005
_LOST = 1e-290


def learnt(
    start: FloatArray,
    rows: FloatArray,
    mass: Callable[[FloatArray], FloatArray],
    gathered: Callable[[FloatArray], FloatArray],
    rounds: int | None = None,
) -> FloatArray:
    """Learn the shares of values.

    Args:
        start: shares to begin with, summing to 1, shape (values,).
        rows: rows with each cell, not negative, shape (cells,).
        mass: the sum of the shares of each cell's values.
        gathered: for each value the sum of a number for each cell that holds it.
        rounds: number of rounds; None lets held-out rows tell it.

    Returns:
        Shares that sum to 1.

    >>> halves = np.array([[1.0, 1.0], [0.0, 1.0]])  # one cell holds both values, the other the second one
    >>> learnt(np.array([0.5, 0.5]), np.array([2.0, 2.0]), lambda p: halves @ p, lambda w: halves.T @ w, 1).tolist()
    [0.25, 0.75]
    """

    def improved(shares: FloatArray, counts: FloatArray) -> FloatArray:
        of_cell = mass(shares)
        lost = of_cell <= _LOST * np.maximum(counts, 1.0)  # beside the mass of others
        asked = np.divide(counts, of_cell, out=np.zeros(len(counts)), where=~lost)
        found = shares * np.maximum(gathered(asked), 0.0)
        return found / found.sum() if found.sum() > 0 else shares

    if rounds is None:
        rounds = _rounds(start, rows, mass, improved)
    shares = start
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
