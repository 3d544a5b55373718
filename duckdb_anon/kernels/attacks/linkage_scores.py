"""Cells of several columns as one: what a row scores is then looked up a few times instead of once a column.

The score of a row is a sum over its columns, so columns of few distinct cells are joined: every combination of their
cells gets the sum of their scores, once a target, and a row looks up its combination. Cost: combinations a target, at
most `SMALL` a group of columns and a sixteenth of the rows, against a lookup a row and column that is saved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.attacks.linkage import row_scores
from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.release_table import BoolArray

SMALL = 4096
"""Combinations of one group of columns: their scores stay in the fastest cache."""


def joined_columns(numbers: Sequence[int], rows: int) -> list[list[int]]:
    """Choose which columns to join: largest first, each into the first group that has room.

    Args:
        numbers: distinct cells of each column.
        rows: rows that are looked up for each target.

    >>> joined_columns([13, 2, 79, 6, 9, 17, 95], 40_000)
    [[6, 5], [2, 0, 1], [4, 3]]
    """
    most = min(SMALL, rows // 16)
    groups: list[list[int]] = []
    sizes: list[int] = []
    for a in sorted(range(len(numbers)), key=lambda a: -numbers[a]):
        room = [g for g, size in enumerate(sizes) if size * numbers[a] <= most]
        if room:
            groups[room[0]].append(a)
            sizes[room[0]] *= numbers[a]
        else:
            groups.append([a])
            sizes.append(numbers[a])
    return groups


@dataclass(frozen=True)
class JoinedCells:
    """Cells of rows by groups of columns.

    Attributes:
        cells: place of each row's combination among those of all groups, shape (groups, rows).
        first: first cell of each column among the cells of all columns.
        number: distinct cells of each column.
        columns: columns of all groups, group by group.
        start: first of each group in `columns` and their number, shape (groups + 1,).
        combinations: of all groups.
    """

    cells: CodeArray
    first: IntArray
    number: IntArray
    columns: IntArray
    start: IntArray
    combinations: int

    @classmethod
    def of(cls, cells: CodeArray, numbers: Sequence[int]) -> JoinedCells:
        """Join columns of few cells.

        Args:
            cells: cell of each row in each column, shape (columns, rows).
            numbers: distinct cells of each column.
        """
        groups = joined_columns(numbers, cells.shape[1])
        place = np.zeros((len(groups), cells.shape[1]), dtype=np.int32)
        combinations = 0
        for g, columns in enumerate(groups):
            for a in columns:
                place[g] = place[g] * numbers[a] + cells[a]
            place[g] += combinations
            combinations += math.prod(numbers[a] for a in columns)
        number = np.asarray(numbers, dtype=np.int64)
        return cls(
            place, np.cumsum(number) - number, number, np.concatenate(groups).astype(np.int64),
            np.cumsum([0, *map(len, groups)]), combinations,
        )  # fmt: skip

    def scores(self, local: FloatArray, active: BoolArray, floor: float) -> FloatArray:
        """Sum each row's scores for each target.

        Args:
            local: score of each cell for each target, shape (targets, cells of all columns).
            active: columns the attacker knows of each target, shape (targets, columns); others add nothing.
            floor: least sum; lower ones are raised to it.

        Returns:
            Shape (targets, rows).
        """
        each = np.empty((len(local), self.combinations))
        joined_scores(local, active, self.first, self.number, self.columns, self.start, each)
        out = np.empty((len(local), self.cells.shape[1]))
        row_scores(self.cells, each, floor, out)
        return out

    def factors(self, local: FloatArray, active: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Exponentials of the same sums, each relative to the sum of the best cells.

        Args:
            local: as for `scores`, finite.
            active: as for `scores`.

        Returns:
            Factors in [0, 1], shape (targets, rows), and the sum of the best cells' scores, shape (targets,).
        """
        best = np.maximum.reduceat(local, self.first, axis=1)
        each = np.empty((len(local), self.combinations))
        relative = local - np.repeat(best, self.number, axis=1)
        joined_scores(relative, active, self.first, self.number, self.columns, self.start, each)
        np.exp(each, out=each)
        out = np.empty((len(local), self.cells.shape[1]))
        row_factors(self.cells, each, out)
        return out, np.where(active, best, 0.0).sum(axis=1)


@compiled
def joined_scores(
    local: FloatArray,
    active: BoolArray,
    first: IntArray,
    number: IntArray,
    columns: IntArray,
    start: IntArray,
    out: FloatArray,
) -> None:
    """Sum the scores of every combination of cells, for each target.

    Args:
        local: score of each cell for each target, shape (targets, cells of all columns).
        active: columns the attacker knows of each target, shape (targets, columns); others add nothing.
        first: first cell of each column in `local`.
        number: distinct cells of each column.
        columns: columns of all groups, group by group.
        start: first of each group in `columns` and their number, shape (groups + 1,).
        out: shape (targets, combinations of all groups).
    """
    for t in range(local.shape[0]):
        begin = 0
        for g in range(len(start) - 1):
            size = 1
            out[t, begin] = 0.0
            for k in range(start[g], start[g + 1]):
                a = columns[k]
                # backwards, so that no sum is overwritten before it was spread
                for i in range(size - 1, -1, -1):
                    so_far = out[t, begin + i]
                    for c in range(number[a] - 1, -1, -1):
                        out[t, begin + i * number[a] + c] = so_far + (local[t, first[a] + c] if active[t, a] else 0.0)
                size *= number[a]
            begin += size


@compiled
def row_factors(cells: CodeArray, local: FloatArray, out: FloatArray) -> None:
    """Multiply each row's factors for each target.

    Args:
        cells: as for `linkage.row_scores`.
        local: factor of each cell for each target, shape (targets, cells of all groups).
        out: shape (targets, rows).
    """
    for t in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[t, j] = local[t, cells[0, j]]
        for a in range(1, cells.shape[0]):
            for j in range(out.shape[1]):
                out[t, j] *= local[t, cells[a, j]]
