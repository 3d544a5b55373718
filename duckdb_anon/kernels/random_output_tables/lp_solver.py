"""From linear programs to random output tables: a batched simplex method, with HiGHS as the fallback.

A column of a random output table is feasible iff it is a mixture of *rays*: mass at most delta on any record, one in
all, all of it published as one value (for delta = 1/K a ray is K records and their median). So the program of Li et al.
(2020), section 4 reads: weights on rays that cover every record once, at least cost. It has one equation per class and
very many columns, of which the best is found by sorting: given prices of the classes, the most profitable ray for an
output value takes the classes in order of price minus distance. This is column generation, run in step for a batch of
programs. The end is certified: with no profitable ray left the prices are a dual solution. A program that does not get
there is solved by HiGHS.

Each ray is published as the value nearest to its records. Cost: about 2r pivots of O(r^2 log r) for r classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.random_output_tables.lp_grouping import spread
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import FloatArray, IntArray, Kind
from duckdb_anon.model.errors import RequirementError

_TIE = 1e-9
_BATCH_CELLS = 300_000
_WIDEST_SIMPLEX = 60
_PROFIT = 1e-10
_PIVOT = 1e-9
_REFRESH = 64
_POLL = 8
_STAY_PENALTY = 2e-9
"""Added to the distance of a value to itself: of equally cheap rays the one with fewest unchanged records is taken."""


def random_output_tables(kind: Kind, gaps: FloatArray, count: IntArray, delta: float) -> FloatArray:
    """Return the table of each program.

    Args:
        kind: how gaps combine to distances.
        gaps: shape (programs, classes - 1).
        count: records in each class, shape (programs, classes).
        delta: largest share of one record in a column.

    Returns:
        Probability that a record of class g is published as class j, shape (programs, classes, classes).
    """
    programs, classes = count.shape
    table = np.zeros((programs, classes, classes))
    table[:] = np.eye(classes)
    if classes == 1:
        return table
    # Where every class can hide its own records the identity is a table of cost 0.
    open_programs = np.flatnonzero((count * delta < 1.0 - 1e-12).any(axis=1))
    size = max(1, _BATCH_CELLS // classes**2)
    for start in range(0, len(open_programs), size):
        batch = open_programs[start : start + size]
        progress.say("random output tables", start / len(open_programs))
        progress.tick()
        table[batch] = _solve_batch(spread(kind, gaps[batch]), count[batch].astype(np.float64), delta)
    return table


def _solve_batch(distance: FloatArray, count: FloatArray, delta: float) -> FloatArray:
    weight, mass = np.zeros_like(count), np.zeros_like(distance)
    solved = np.zeros(len(count), dtype=bool)
    if count.shape[1] <= _WIDEST_SIMPLEX:
        rays = cheapest_rays(distance, count, delta)
        weight, mass, solved = rays.weight, rays.mass, rays.solved
    for program in np.flatnonzero(~solved):
        progress.tick()
        weight[program], mass[program] = cheapest_columns(distance[program], count[program], delta)
    table = np.matmul(np.swapaxes(weight[:, :, None] * mass, 1, 2), _nearest_values(distance, mass))
    table[table < _TIE] = 0.0
    return np.asarray(table / table.sum(axis=2, keepdims=True))


def _nearest_values(distance: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the shares in which each ray is published as each class, at least cost; shape as `mass`.

    Of equally near values, the one that fewest records have.
    """
    cost = np.matmul(mass, distance)
    slack = _TIE * distance.max(axis=(1, 2))[:, None, None]
    tied = cost <= cost.min(axis=2, keepdims=True) + slack
    lightest = np.where(tied, mass, np.inf).min(axis=2, keepdims=True)
    share = (tied & (mass <= lightest + _TIE)).astype(np.float64)
    return np.asarray(share / share.sum(axis=2, keepdims=True))


@dataclass(frozen=True)
class Rays:
    """Weighted rays that cover every record of every program of a batch once."""

    weight: FloatArray  # shape (batch, rays)
    mass: FloatArray  # mass of each ray on each class, shape (batch, rays, classes), rows sum to 1
    solved: NDArray[np.bool_]  # whether the cover is certified to be a cheapest one, shape (batch,)


def cheapest_rays(distance: FloatArray, count: FloatArray, delta: float) -> Rays:
    """Solve a batch of programs of equal width.

    >>> rays = cheapest_rays(np.array([[[0.0, 3.0], [3.0, 0.0]]]), np.array([[1.0, 1.0]]), 0.5)
    >>> float(rays.weight.sum()), bool(rays.solved[0])
    (2.0, True)
    """
    batch, classes = count.shape
    result = Rays(np.zeros((batch, classes)), np.zeros((batch, classes, classes)), np.zeros(batch, dtype=bool))
    running = _Batch(distance, count, delta)
    for turn in range(1, 200 + 20 * classes):
        profit, mass, cost = running.best_ray()
        done = profit < _PROFIT
        if done.any():
            running.finish(np.flatnonzero(done), result)
            left = np.flatnonzero(~done)
            if not len(left):
                break
            running.restrict_to(left)
            mass, cost = mass[left], cost[left]
        running.pivot(mass, cost)
        if turn % _POLL == 0:
            progress.tick()
        if turn % _REFRESH == 0 and not running.refresh():
            break
    return result


class _Batch:
    """State of the programs still running: one basis of r rays each."""

    def __init__(self, distance: FloatArray, count: FloatArray, delta: float) -> None:
        batch, classes = count.shape
        scale = distance.max(axis=(1, 2))
        scale[scale == 0.0] = 1.0
        self.number = np.arange(batch)
        self.distance = distance / scale[:, None, None] + _STAY_PENALTY * np.eye(classes)
        self.count = count
        self.capacity = count * delta
        # Distinct tiny amounts on the right-hand side prevent degenerate programs from cycling; the weights
        # returned are computed from the true counts. The same amounts in every batch: a result does not depend
        # on which programs share it.
        self.level: FloatArray = count + 1e-7 * np.random.default_rng(0).random(classes)
        self.inverse = np.broadcast_to(np.eye(classes), (batch, classes, classes)).copy()
        self.mass = self.inverse.copy()
        penalty = 8.0 * (1.0 + 1.0 / delta)
        self.cost = np.full((batch, classes), penalty)
        self.real = np.zeros((batch, classes), dtype=bool)

    def restrict_to(self, which: IntArray) -> None:
        """Drop the programs outside `which`."""
        for name, value in vars(self).items():
            setattr(self, name, value[which])

    def best_ray(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return profit (batch,), mass (batch, classes) and cost (batch,) of the most profitable rays."""
        price = np.matmul(self.cost[:, None, :], self.inverse)
        loss = self.distance - price
        order = np.argsort(loss, axis=-1)
        room = np.take_along_axis(np.broadcast_to(self.capacity[:, None, :], loss.shape), order, -1)
        before = np.cumsum(room, axis=-1) - room
        taken = np.clip(1.0 - before, 0.0, room)
        profit = -np.einsum("bvg,bvg->bv", taken, np.take_along_axis(loss, order, -1))
        value = profit.argmax(axis=1)
        program = np.arange(len(value))
        mass = np.zeros_like(self.cost)
        np.put_along_axis(mass, order[program, value], taken[program, value], -1)
        return profit[program, value], mass, np.einsum("bg,bg->b", mass, self.distance[program, value])

    def pivot(self, mass: FloatArray, cost: FloatArray) -> None:
        """Let one ray per program enter its basis."""
        program = np.arange(len(mass))
        step = np.matmul(self.inverse, mass[:, :, None])[:, :, 0]
        usable = step > _PIVOT
        ratio = np.where(usable, self.level, np.inf) / np.where(usable, step, 1.0)
        out = ratio.argmin(axis=1)
        amount = np.maximum(ratio[program, out], 0.0)
        self.level = self.level - amount[:, None] * step
        self.level[program, out] = amount
        row = self.inverse[program, out] / step[program, out][:, None]
        self.inverse -= step[:, :, None] * row[:, None, :]
        self.inverse[program, out] = row
        self.mass[program, out] = mass
        self.cost[program, out] = cost
        self.real[program, out] = True

    def refresh(self) -> bool:
        """Recompute the inverse from the basis before rounding errors pile up; False if one is singular."""
        try:
            self.inverse = np.linalg.inv(np.swapaxes(self.mass, 1, 2)).astype(np.float64)
        except np.linalg.LinAlgError:
            return False
        return True

    def finish(self, done: IntArray, result: Rays) -> None:
        """Write finished programs into the result; solved only if no ray of the start carries weight."""
        number, real = self.number[done], self.real[done]
        weight = np.matmul(self.inverse[done], self.count[done][:, :, None])[:, :, 0]
        result.solved[number] = (weight > -1e-7).all(axis=1) & ((np.abs(weight) < 1e-7) | real).all(axis=1)
        result.weight[number] = np.where(real, np.maximum(weight, 0.0), 0.0)
        result.mass[number] = self.mass[done]


def cheapest_columns(distance: FloatArray, count: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
    """Solve one program with HiGHS.

    Variables are x_gj, the probability that a record of class g is published as j, and the column totals s_j: minimize
    sum_gj c_g d_gj x_gj subject to sum_j x_gj = 1, s_j = sum_g c_g x_gj and 0 <= x_gj <= delta s_j.
    """
    # the solver is rarely needed, and importing it takes longer than opening a database
    from scipy import sparse
    from scipy.optimize import linprog

    classes = len(count)
    cells = classes * classes
    unit = sparse.identity(classes, format="csr")
    ones = np.ones((1, classes))
    row_sums = sparse.hstack([sparse.kron(unit, ones), sparse.csr_matrix((classes, classes))])
    column_sums = sparse.hstack([sparse.kron(count[None, :], unit), -unit])
    capped = sparse.hstack([sparse.identity(cells), sparse.kron(np.ones((classes, 1)), -delta * unit)])
    answer = linprog(
        np.concatenate([(count[:, None] * distance).ravel(), np.zeros(classes)]),
        A_ub=capped.tocsr(),
        b_ub=np.zeros(cells),
        A_eq=sparse.vstack([row_sums, column_sums]).tocsr(),
        b_eq=np.concatenate([np.ones(classes), np.zeros(classes)]),
        method="highs",
        # A column may have little mass, and delta bounds shares of it: the default of 1e-7 is too coarse.
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        raise RequirementError(
            f"muco: a group of {count.sum():.0f} records has no random output table at delta {delta:.6g}"
        )
    table = np.maximum(answer.x[:cells].reshape(classes, classes), 0.0)
    table /= table.sum(axis=1, keepdims=True)
    weight = count @ table
    used = weight > 1e-9
    mass = np.where(used, (count[:, None] * table) / np.where(used, weight, 1.0), unit.toarray())
    return np.where(used, weight, 0.0), mass.T
