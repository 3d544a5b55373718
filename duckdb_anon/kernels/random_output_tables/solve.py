"""From programs to random output tables.

Each cheapest ray of a program is published in one of two ways: everything as the value nearest to all its
records (the optimum of Li et al. 2020, section 4), or every record as a member of the ray drawn in proportion
to mass, which keeps the expected histogram of the group exactly as it was. Both keep each record's share of a
column at or below delta, and so does every mixture. `balance` b publishes (1 - b) of the first and b of the
second. Departure from the paper: it knows the first only (b = 0). The optimum is seldom unique, and equally
cheap tables differ in what they reveal and in what they keep. Here, of equally cheap rays those that let
fewer records keep their value are taken. Where several values are equally near to a ray, b = 0 publishes the
one that fewest of its records have, b > 0 shares it out in proportion to the records, which keeps the
histogram.

What b does was measured on the paper's census table in groups cut by loss, l = 10, unchanged records exchanged,
1,000 sums under predicates on four attributes, three seeds. Mean relative error at delta 1/5, 1/7 and 1/10:
.025 .034 .066 at b = 0, .020 .024 .037 at .5, .020 .024 .033 at .6, .021 .025 .030 at .75, .024 .028 .033 at 1.
Counts under two or three predicates gain up to b = .75 and beyond. Measured disclosure does not depend on b.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duckdb_anon.kernels.random_output_tables.distance import spread
from duckdb_anon.kernels.random_output_tables.linear_program import cheapest_columns
from duckdb_anon.kernels.random_output_tables.lp_solver import cheapest_rays
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import FloatArray, IntArray, Kind

_TIE = 1e-9
_BATCH_CELLS = 300_000
_ONE_BY_ONE = 60


def random_output_tables(
    kind: Kind,
    gaps: FloatArray,
    count: IntArray,
    delta: float,
    balance: float,
    tick: Callable[[], None] | None = None,
) -> FloatArray:
    """Return the table of each program.

    Args:
        kind: how gaps combine to distances.
        gaps: shape (programs, classes - 1).
        count: records in each class, shape (programs, classes).
        delta: largest share of one record in a column.
        balance: share published as a uniform member of the ray, in [0, 1].
        tick: called now and then; may raise to stop the work.

    Returns:
        Probability that a record of class g is published as class j, shape (programs, classes, classes).
    """
    programs, classes = count.shape
    table = np.zeros((programs, classes, classes))
    table[:] = np.eye(classes)
    # Where every class can hide its own records the identity is a table of cost 0.
    open_programs = np.flatnonzero((count * delta < 1.0 - 1e-12).any(axis=1))
    if classes == 1:
        return table
    size = max(1, _BATCH_CELLS // classes**2)
    for start in range(0, len(open_programs), size):
        some = open_programs[start : start + size]
        progress.say("random output tables", start / len(open_programs))
        distance = spread(kind, gaps[some])
        table[some] = _solve_batch(distance, count[some].astype(np.float64), delta, balance, tick)
        if tick is not None:
            tick()
    return table


def _solve_batch(
    distance: FloatArray,
    count: FloatArray,
    delta: float,
    balance: float,
    tick: Callable[[], None] | None,
) -> FloatArray:
    weight, mass = np.zeros_like(count), np.zeros_like(distance)
    solved = np.zeros(len(count), dtype=bool)
    if count.shape[1] <= _ONE_BY_ONE:
        rays = cheapest_rays(distance, count, delta, tick)
        weight, mass, solved = rays.weight, rays.mass, rays.solved
    # Very wide programs, and the rare one that was not certified, are left to a general solver.
    for program in np.flatnonzero(~solved):
        weight[program], mass[program] = cheapest_columns(distance[program], count[program], delta)
        if tick is not None:
            tick()
    published = (1.0 - balance) * _nearest_values(distance, mass, balance > 0.0) + balance * mass
    table = np.matmul(np.swapaxes(weight[:, :, None] * mass, 1, 2), published)
    table[table < _TIE] = 0.0
    return np.asarray(table / table.sum(axis=2, keepdims=True))


def _nearest_values(distance: FloatArray, mass: FloatArray, keep_histogram: bool) -> FloatArray:
    """Return the shares in which each ray is published as each class, at least cost; shape as `mass`."""
    cost = np.matmul(mass, distance)
    slack = _TIE * distance.max(axis=(1, 2))[:, None, None]
    tied = cost <= cost.min(axis=2, keepdims=True) + slack
    if keep_histogram:
        share = tied * np.maximum(mass, 1e-12)
    else:
        lightest = np.where(tied, mass, np.inf).min(axis=2, keepdims=True)
        share = (tied & (mass <= lightest + _TIE)).astype(np.float64)
    return np.asarray(share / share.sum(axis=2, keepdims=True))
