"""Many small MuCo linear programs at once, each solved exactly.

A column of a random output table is feasible iff it is a mixture of *rays*: mass at most delta on any record,
one in all, all of it published as one value (for delta = 1/K a ray is K records and their median). So the
program of Li et al. (2020), section 4 reads: weights on rays that cover every record once, at least cost. It
has one equation a class and a great many columns, of which the best one is found by sorting: given prices of
the classes, the most profitable ray for an output value takes the classes in order of price minus distance.
This is the simplex method with column generation, run in step for a batch of programs as array operations.

The end is certified: with no profitable ray left the prices are a dual solution, and no cover is cheaper than
what the prices add up to. A program that does not get there is reported, not returned as solved.

Cost: about 2r pivots of O(r^2 log r) for r classes; r is at most the group size and usually far below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import FloatArray, IntArray

_PROFIT = 1e-10
_PIVOT = 1e-9
_REFRESH = 64
_POLL = 8
_KEPT = 2e-9


@dataclass(frozen=True)
class Rays:
    """Weighted rays that cover every record of every program of a batch once.

    Attributes:
        weight: shape (batch, rays).
        mass: mass of each ray on each class, shape (batch, rays, classes), rows sum to 1.
        solved: whether the cover is certified to be a cheapest one, shape (batch,).
    """

    weight: FloatArray
    mass: FloatArray
    solved: NDArray[np.bool_]


class _Batch:
    """State of the programs still running: one basis of r rays each."""

    def __init__(self, distance: FloatArray, count: FloatArray, delta: float) -> None:
        batch, classes = count.shape
        scale = distance.max(axis=(1, 2))
        scale[scale == 0.0] = 1.0
        self.number = np.arange(batch)
        # Among equally cheap tables the one in which fewest records keep their value serves best.
        self.distance = distance / scale[:, None, None] + _KEPT * np.eye(classes)
        self.count = count
        self.capacity = count * delta
        # Distinct tiny amounts on the right-hand side keep degenerate programs from cycling; the weights
        # returned are computed from the true counts. The same amounts in every batch: a result does not depend
        # on which programs share it.
        self.level: FloatArray = count + 1e-7 * np.random.default_rng(0).random(classes)
        self.inverse = np.broadcast_to(np.eye(classes), (batch, classes, classes)).copy()
        self.mass = self.inverse.copy()
        penalty = 8.0 * (1.0 + 1.0 / delta)
        self.cost = np.full((batch, classes), penalty)
        self.real = np.zeros((batch, classes), dtype=bool)

    def keep(self, which: IntArray) -> None:
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
        at = np.arange(len(value))
        mass = np.zeros_like(self.cost)
        np.put_along_axis(mass, order[at, value], taken[at, value], -1)
        return profit[at, value], mass, np.einsum("bg,bg->b", mass, self.distance[at, value])

    def pivot(self, mass: FloatArray, cost: FloatArray) -> None:
        """Let one ray a program enter its basis."""
        at = np.arange(len(mass))
        step = np.matmul(self.inverse, mass[:, :, None])[:, :, 0]
        usable = step > _PIVOT
        ratio = np.where(usable, self.level, np.inf) / np.where(usable, step, 1.0)
        out = ratio.argmin(axis=1)
        amount = np.maximum(ratio[at, out], 0.0)
        self.level = self.level - amount[:, None] * step
        self.level[at, out] = amount
        row = self.inverse[at, out] / step[at, out][:, None]
        self.inverse -= step[:, :, None] * row[:, None, :]
        self.inverse[at, out] = row
        self.mass[at, out] = mass
        self.cost[at, out] = cost
        self.real[at, out] = True

    def refresh(self) -> bool:
        """Recompute the inverse from the basis, lest rounding errors pile up; False if one is singular."""
        try:
            self.inverse = np.linalg.inv(np.swapaxes(self.mass, 1, 2)).astype(np.float64)
        except np.linalg.LinAlgError:
            return False
        return True


def cheapest_rays(
    distance: FloatArray, count: FloatArray, delta: float, tick: Callable[[], None] | None = None
) -> Rays:
    """Solve a batch of programs of equal width.

    Args:
        distance: distance of classes, shape (batch, classes, classes).
        count: records in each class, positive, shape (batch, classes).
        delta: largest share of one record in a column, in (0, 1].
        tick: called now and then; may raise to stop the work.

    Returns:
        A cheapest cover of each program (Rays), or `solved` False where none was certified.

    >>> rays = cheapest_rays(np.array([[[0.0, 3.0], [3.0, 0.0]]]), np.array([[1.0, 1.0]]), 0.5)
    >>> float(rays.weight.sum()), bool(rays.solved[0])
    (2.0, True)
    """
    batch, classes = count.shape
    mass_found = np.zeros((batch, classes, classes))
    result = Rays(np.zeros((batch, classes)), mass_found, np.zeros(batch, dtype=bool))
    running = _Batch(distance, count, delta)
    for turn in range(1, 200 + 20 * classes):
        profit, mass, cost = running.best_ray()
        done = profit < _PROFIT
        if done.any():
            _finish(running, np.flatnonzero(done), result)
            left = np.flatnonzero(~done)
            if not len(left):
                break
            running.keep(left)
            mass, cost = mass[left], cost[left]
        running.pivot(mass, cost)
        if tick is not None and turn % _POLL == 0:
            tick()
        if turn % _REFRESH == 0 and not running.refresh():
            break
    return result


def _finish(running: _Batch, done: IntArray, result: Rays) -> None:
    """Write the finished programs into the result; solved only if no ray of the start carries weight."""
    number = running.number[done]
    weight = np.matmul(running.inverse[done], running.count[done][:, :, None])[:, :, 0]
    sound = (weight > -1e-7).all(axis=1) & ((np.abs(weight) < 1e-7) | running.real[done]).all(axis=1)
    weight = np.where(running.real[done], np.maximum(weight, 0.0), 0.0)
    mass = running.mass[done]
    result.weight[number] = weight
    result.mass[number] = mass
    result.solved[number] = sound
