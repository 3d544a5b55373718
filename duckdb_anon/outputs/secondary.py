"""Secondary suppression: further cells are hidden, so that no hidden cell can be derived from totals.

A reader knows the linear relations between cells, the published ones exactly, and bounds of the others. The interval
that a linear program derives for each primary cell must contain the interval that the rules ask for (feasibility
intervals; Fischetti and Salazar, Management Science 47(7), 2001). Small tables get the fewest cells, by a mixed integer
program. In large ones a primary cell is hidden with the corners of a box in which amounts can be exchanged without a
change of any total (the hypercube of tau-Argus), or else with the cells of the cheapest exchange that a linear program
finds. Every table is audited at the end: a cell whose interval is too narrow makes further cells hidden, at worst all.
Cost: one linear program a primary cell at worst, over the atoms of the table; few where one exchange protects many.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EXACT = (60, 700)  # most cells, and cells times programs, of a table whose fewest cells are searched for
_SECONDS = 5.0  # time limit of that search
_OUTPUT = threading.Lock()
_SLACK = 1e-6  # relative to what the rules ask for


@dataclass(frozen=True)
class System:
    """Cells that are sums of atoms, which no cell divides."""

    members: Any  # sparse, cells x atoms: 1 where the cell contains the atom
    values: Floats  # of atoms
    hidden: Bools  # cells that are hidden already
    low: Floats  # of each cell, what a reader knows of it where it is hidden
    high: Floats
    least: Floats  # of primary cells, the derived interval must reach down to this, and up to `most`; NaN of others
    most: Floats
    nonnegative: bool  # whether a reader knows that no atom is negative
    fixed: Bools  # cells that are published already
    codes: NDArray[np.int64] | None = None  # atoms x keys; None where atoms are no boxes of keys
    sets: tuple[tuple[int, ...], ...] = ()  # keys of the published grouping sets

    @property
    def totals(self) -> Floats:
        """Values of the cells."""
        return np.asarray(self.members @ self.values)


def protect(system: System) -> Bools:
    """Cells to hide: those that are hidden, and others so that no primary one can be derived.

    Example:
        >>> cells = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])  # three counts and their total
        >>> inf, nan = np.inf, np.nan
        >>> least, most = np.array([1, nan, nan, nan]), np.array([9, nan, nan, nan])
        >>> hidden, low = np.array([True, False, False, False]), np.array([1.0, 10, 10, 10])
        >>> high = np.array([9, inf, inf, inf])
        >>> protect(System(scipy.sparse.csr_array(cells), np.array([3.0, 50, 20]), hidden, low, high, least, most, True,
        ...                np.zeros(4, bool))).tolist()
        [True, False, True, False]
    """
    hidden = system.hidden.copy()
    if np.isnan(system.least).all():
        return hidden
    system = _attainable(system)
    hidden = _fewest(system, hidden) if _is_small(system) else _boxes(system, hidden)
    for _ in range(len(hidden)):
        narrow = unprotected(system, hidden)
        if not narrow:
            return hidden
        more = hidden.copy()
        for cell, side in narrow:
            more |= _exchange(system, more, cell, side)
        if (more == hidden).all():
            break
        hidden = more
    return hidden | ~system.fixed


def _attainable(system: System) -> System:
    """The system with needs that can be met where every cell is hidden: parts of a primary cell are below it."""
    everything = system.hidden | ~system.fixed
    least, most = system.least.copy(), system.most.copy()
    for cell, side in unprotected(system, everything):
        end = interval(system, everything, cell)[side > 0]
        (most if side > 0 else least)[cell] = end
    return replace(system, least=least, most=most)


def unprotected(system: System, hidden: Bools) -> list[tuple[int, int]]:
    """Primary cells whose derived interval is too narrow, with the side: 1 above, -1 below. Exact."""
    return [(cell, side) for side in (1, -1) for cell in _unreached(system, hidden, side)]


def interval(system: System, hidden: Bools, cell: int) -> tuple[float, float]:
    """The interval that a reader derives for a cell."""
    ends = []
    for side in (-1, 1):
        found = _solve(system, hidden, -side * system.members[[cell]].toarray()[0])
        ends.append(float((system.members[[cell]] @ found)[0]) if found is not None else side * np.inf)
    return ends[0], ends[1]


def _asked(system: System, side: int) -> Floats:
    """How far each cell must be able to go from its value, to a side; NaN for no need."""
    return (system.most - system.totals) if side > 0 else (system.totals - system.least)


def _is_small(system: System) -> bool:
    needs = sum(int((_asked(system, side) > 0).sum()) for side in (1, -1))
    cells = int(system.members.shape[0])
    return cells <= _EXACT[0] and needs * cells <= _EXACT[1]


def _unreached(system: System, hidden: Bools, side: int) -> list[int]:
    """Cells that cannot go far enough to a side. Each solution is a witness for every cell that it moves far enough."""
    asked = _asked(system, side)
    pending = [int(cell) for cell in np.flatnonzero(asked > 0)]
    narrow: list[int] = []
    together = True
    while pending:
        rows = system.members[pending]
        found = _most_together(system, hidden, pending, side) if together and len(pending) > 1 else None
        if found is None:
            found = _solve(system, hidden, -side * system.members[[pending[0]]].toarray()[0])
            if found is None:  # without bounds
                pending.pop(0)
                continue
        moved = side * np.asarray(rows @ (found - system.values))
        enough = moved >= asked[pending] * (1 - _SLACK) - 1e-9
        if not enough.any():
            if together and len(pending) > 1:
                together = False
                continue
            narrow.append(pending[0])
            enough[0] = True
        elif not together and not enough[0]:
            narrow.append(pending[0])
            enough[0] = True
        pending = [cell for cell, is_enough in zip(pending, enough, strict=True) if not is_enough]
    return narrow


def _known(system: System, hidden: Bools) -> tuple[Any, Floats, Any, Floats]:
    """What a reader knows as equations and inequalities over the atoms."""
    published, bounded_up = ~hidden, hidden & np.isfinite(system.high)
    bounded_down = hidden & np.isfinite(system.low)
    members, totals = system.members, system.totals
    below = scipy.sparse.vstack([members[bounded_up], -members[bounded_down]], format="csr")
    limits = np.concatenate([system.high[bounded_up], -system.low[bounded_down]])
    return members[published], totals[published], below, limits


def _solve(system: System, hidden: Bools, objective: Floats) -> Floats | None:
    """Atoms that minimize an objective among those that a reader cannot rule out; None where there is no bound."""
    equal, totals, below, limits = _known(system, hidden)
    scale = max(float(np.abs(system.values).max()), 1.0)
    found = scipy.optimize.linprog(
        objective, below if below.shape[0] else None, limits / scale if below.shape[0] else None, equal,
        totals / scale, bounds=(0 if system.nonnegative else None, None), method="highs",
    )  # fmt: skip
    if found.status == 3:
        return None
    return np.asarray(found.x) * scale if found.status == 0 else system.values


def _most_together(system: System, hidden: Bools, cells: list[int], side: int) -> Floats | None:
    """Atoms that move as many cells as possible as far as is asked; None where no program can be solved."""
    equal, totals, below, limits = _known(system, hidden)
    scale = max(float(np.abs(system.values).max()), 1.0)
    count, atoms = len(cells), len(system.values)
    rows = system.members[cells]
    reach = scipy.sparse.hstack([-side * rows, scipy.sparse.eye_array(count)])
    every = scipy.sparse.vstack(
        [scipy.sparse.hstack([below, scipy.sparse.csr_array((below.shape[0], count))]), reach], format="csr"
    )
    right = np.concatenate([limits, -side * system.totals[cells]]) / scale
    asked = _asked(system, side)[cells]
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(atoms), -scale / asked]), every, right,
        scipy.sparse.hstack([equal, scipy.sparse.csr_array((equal.shape[0], count))], format="csr"), totals / scale,
        bounds=[(0 if system.nonnegative else None, None)] * atoms + [(0, each / scale) for each in asked],
        method="highs",
    )  # fmt: skip
    return np.asarray(found.x[:atoms]) * scale if found.status == 0 else None


def _costs(system: System, hidden: Bools) -> Floats:
    """Few cells first, then small ones."""
    totals = np.abs(system.totals)
    return np.where(hidden, 0.0, 1 + totals / (totals.sum() + 1))


def _fewest(system: System, hidden: Bools) -> Bools:
    """The cheapest cells to hide, by a mixed integer program; what is hidden already where none is found in time."""
    needs = [(int(cell), side, float(_asked(system, side)[cell])) for side in (1, -1)
             for cell in np.flatnonzero(_asked(system, side) > 0)]  # fmt: skip
    if not needs:  # no interval around a primary cell can be asked for
        return hidden
    cells, atoms = system.members.shape
    binaries = np.arange(cells)
    rows, low, high = [], [], []
    for number, (cell, side, asked) in enumerate(needs):
        pad = [scipy.sparse.csr_array((cells, atoms))] * len(needs)
        room = 4 * asked
        down = np.minimum(room, system.totals - np.where(np.isfinite(system.low), system.low, -np.inf))
        up = np.minimum(room, np.where(np.isfinite(system.high), system.high, np.inf) - system.totals)
        pad[number] = system.members
        moves = scipy.sparse.hstack(pad)
        rows.append(scipy.sparse.hstack([scipy.sparse.diags_array(-up / asked), moves]))
        rows.append(scipy.sparse.hstack([scipy.sparse.diags_array(-down / asked), -moves]))
        low += [np.full(2 * cells, -np.inf)]
        high += [np.zeros(2 * cells)]
        one = scipy.sparse.csr_array((1, atoms))
        goal = [one] * len(needs)
        goal[number] = side * system.members[[cell]]
        rows.append(scipy.sparse.hstack([scipy.sparse.csr_array((1, cells)), *goal]))
        low.append(np.array([1.0]))
        high.append(np.array([np.inf]))
    least = -system.values if system.nonnegative else np.full(atoms, -np.inf)
    lower = np.concatenate([hidden.astype(float), *(least / asked for *_, asked in needs)])
    upper = np.concatenate([np.where(system.fixed & ~hidden, 0.0, 1.0), np.full(atoms * len(needs), np.inf)])
    costs = np.where(hidden, 0.0, _costs(system, hidden))
    with _quiet():
        found = scipy.optimize.milp(
            np.concatenate([costs, np.zeros(atoms * len(needs))]),
            constraints=scipy.optimize.LinearConstraint(
                scipy.sparse.vstack(rows, format="csr"), np.concatenate(low), np.concatenate(high)
            ),
            integrality=np.concatenate([np.ones(cells), np.zeros(atoms * len(needs))]),
            bounds=(lower, upper),
            options={"time_limit": _SECONDS},
        )
    return hidden if found.x is None else hidden | (found.x[binaries] > 0.5)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without standard output of the process: HiGHS prints a line there where it repairs a solution."""
    with _OUTPUT, open(os.devnull, "wb") as nothing:
        kept = os.dup(1)
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _exchange(system: System, hidden: Bools, cell: int, side: int) -> Bools:
    """Cells of the cheapest exchange that moves a cell far enough; all cells where there is none."""
    asked = float(_asked(system, side)[cell])
    cells, atoms = system.members.shape
    free = np.flatnonzero(~hidden & ~system.fixed)
    moves = scipy.sparse.hstack([system.members, -system.members], format="csr")
    costs = scipy.sparse.csr_array((np.ones(len(free)), (free, np.arange(len(free)))), shape=(cells, len(free)))
    bounds = [(0, None)] * atoms + [(0, v if system.nonnegative else None) for v in system.values]
    up = np.where(hidden, system.high - system.totals, np.where(system.fixed, 0.0, np.inf))
    down = np.where(~hidden & system.fixed, 0.0, system.totals - system.low)
    rows, right = [], []
    for sign, room in ((1, up), (-1, down)):
        bounded = np.isfinite(room)
        rows.append(
            scipy.sparse.hstack([sign * moves[bounded], scipy.sparse.csr_array((int(bounded.sum()), len(free)))])
        )
        right.append(room[bounded])
        rows.append(scipy.sparse.hstack([sign * moves[free], -costs[free]]))
        right.append(np.zeros(len(free)))
    found = scipy.optimize.linprog(
        np.concatenate([np.full(2 * atoms, 1e-6), _costs(system, hidden)[free]]),
        scipy.sparse.vstack(rows, format="csr"), np.concatenate(right),
        scipy.sparse.hstack([side * moves[[cell]], scipy.sparse.csr_array((1, len(free)))], format="csr"), [asked],
        bounds=bounds + [(0, None)] * len(free), method="highs",
    )  # fmt: skip
    if found.status != 0:
        return ~system.fixed
    more = np.zeros(cells, bool)
    more[free] = found.x[2 * atoms :] > 1e-7 * max(asked, 1.0)
    return more


def _boxes(system: System, hidden: Bools) -> Bools:
    """Hide with each primary cell the cheapest corners of a box, where atoms are cells of the finest grouping set."""
    codes = system.codes
    if codes is None or not system.sets or tuple(range(codes.shape[1])) not in system.sets:
        return hidden
    cell_of_atom = np.full(len(system.values), -1)
    single = np.flatnonzero(np.diff(system.members.indptr) == 1)
    cell_of_atom[system.members.indices[system.members.indptr[single]]] = single
    if (cell_of_atom < 0).any():
        return hidden
    shape = tuple(int(size) + 1 for size in codes.max(axis=0))
    if np.prod(shape, dtype=float) > 1e6:
        return hidden
    grid = np.full(shape, -1)
    grid[tuple(codes.T)] = np.arange(len(codes))
    totals, hidden = system.totals, hidden.copy()
    room_up, room_down = system.high - totals, totals - system.low
    alternating = _alternating(codes.shape[1], system.sets)
    for atom in np.argsort(system.values, kind="stable"):
        cell = cell_of_atom[atom]
        asked = [float(_asked_of(system, cell, side)) for side in (1, -1)]
        if not max(asked) > 0:
            continue
        best: tuple[float, NDArray[np.int64]] | None = None
        for dims in alternating:
            found = _box(system, hidden, grid, codes[atom], dims, cell_of_atom, (room_up, room_down), asked)
            best = found if best is None or (found is not None and found[0] < best[0]) else best
        if best is not None:
            hidden[best[1]] = True
    return hidden


def _asked_of(system: System, cell: int, side: int) -> float:
    total = float((system.members[[cell]] @ system.values)[0])
    return float(system.most[cell]) - total if side > 0 else total - float(system.least[cell])


def _alternating(keys: int, sets: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """Smallest sets of keys along which amounts can be exchanged without a change of any published total."""
    coarser = [set(chosen) for chosen in sets if len(chosen) < keys]
    found: list[tuple[int, ...]] = []
    for count in range(1, keys + 1):
        for dims in combinations(range(keys), count):
            if all(set(dims) - chosen for chosen in coarser) and not any(set(small) <= set(dims) for small in found):
                found.append(dims)
    return found


def _box(
    system: System, hidden: Bools, grid: NDArray[np.int64], at: NDArray[np.int64], dims: tuple[int, ...],
    cell_of_atom: NDArray[np.int64], rooms: tuple[Floats, Floats], asked: list[float],
) -> tuple[float, NDArray[np.int64]] | None:  # fmt: skip
    """Cost and cells of the cheapest box with a corner at an atom, along some keys; None where none is wide enough."""
    index: list[Any] = [slice(None) if key in dims else int(code) for key, code in enumerate(at)]
    plane = grid[tuple(index)]
    home = [int(at[key]) for key in dims]
    costs = np.zeros(plane.shape)
    wide = np.ones(plane.shape, bool)
    price = _costs(system, hidden)
    corners = []
    for signs in product((0, 1), repeat=len(dims)):
        if not any(signs):
            continue
        # the corner that has the other code along the keys with a sign, the atom's own along the rest
        view = plane[tuple(slice(None) if sign else slice(place, place + 1)
                           for sign, place in zip(signs, home, strict=True))]  # fmt: skip
        there = view >= 0
        cells = np.where(there, cell_of_atom[view], 0)
        up, down = rooms if sum(signs) % 2 == 0 else rooms[::-1]
        costs = costs + np.where(there, price[cells], np.inf)
        wide = wide & there & (up[cells] >= asked[0]) & (down[cells] >= asked[1])
        corners.append((signs, view))
    for axis, place in enumerate(home):
        wide[tuple(place if other == axis else slice(None) for other in range(len(home)))] = False
    costs = np.where(wide, costs, np.inf)
    best = int(np.argmin(costs))
    if not np.isfinite(costs.flat[best]):
        return None
    chosen = np.unravel_index(best, costs.shape)
    atoms = [
        view[tuple(int(c) if sign else 0 for sign, c in zip(signs, chosen, strict=True))] for signs, view in corners
    ]
    return float(costs.flat[best]), cell_of_atom[np.array(atoms)]
