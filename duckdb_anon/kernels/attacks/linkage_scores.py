"""Scores of released records for target individuals, and the disclosure risk that follows from them.

An adversary has, for each target, a score of every distinct cell of every published column. The score of a record is
the sum over its cells. The adversary picks evenly among the records that score best (identity disclosure), and lets the
records vote on the sensitive value with their weights (attribute disclosure; record linkage by scores: Domingo-Ferrer
and Torra 2001; Torra and Domingo-Ferrer 2003). In a sliced release a bucket scores the mean over its rows of
exp(score), column set by column set; column sets multiply.

Equal records are scored once: a unit is a distinct record (or a bucket) of `size` released rows. An individual with
several rows in the original has several records; scores have a row a record, and `start` says where those of a target
begin. Columns of few distinct cells are joined, so that a record looks up the sum of several columns at once.
Cost: targets times rows times groups of joined columns, one lookup each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.release_table import BoolArray

TIE = 1e-9
BLOCK = 2048
"""Rows summed at a time, so that their sums stay in the fastest cache."""
NEGLIGIBLE = 30.0
"""A row this far below the best of its bucket adds e^-30 of it."""
MOST_COMBINATIONS = 4096
"""Combinations of one group of joined columns, so that their scores stay in the fastest cache."""


def joined_columns(numbers: Sequence[int], rows: int) -> list[list[int]]:
    """Choose which columns to join: largest first, each into the first group that has room.

    >>> joined_columns([13, 2, 79, 6, 9, 17, 95], 40_000)
    [[6, 5], [2, 0, 1], [4, 3]]
    """
    most = min(MOST_COMBINATIONS, rows // 16)
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
    """Cells of rows by groups of columns."""

    cells: CodeArray  # place of each row's combination among those of all groups, shape (groups, rows)
    first: IntArray  # first cell of each column among the cells of all columns
    number: IntArray  # distinct cells of each column
    groups: list[list[int]]  # columns of each group

    @classmethod
    def of(cls, cells: CodeArray, numbers: Sequence[int]) -> JoinedCells:
        """Join columns of few cells.

        `cells`: cell of each row in each column, shape (columns, rows); `numbers`: distinct cells of each column.
        """
        groups = joined_columns(numbers, cells.shape[1])
        index = np.zeros((len(groups), cells.shape[1]), dtype=np.int32)
        combinations = 0
        for g, columns in enumerate(groups):
            for a in columns:
                index[g] = index[g] * numbers[a] + cells[a]
            index[g] += combinations
            combinations += math.prod(numbers[a] for a in columns)
        number = np.asarray(numbers, dtype=np.int64)
        return cls(index, np.cumsum(number) - number, number, groups)

    def scores(self, local: FloatArray, active: BoolArray, floor: float) -> FloatArray:
        """Sum each row's scores for each target.

        `active`: columns the attacker knows of each target, shape (targets, columns); others add nothing; `floor`:
        least sum; lower ones are raised to it.

        Returns:
            Shape (targets, rows).
        """
        out = np.empty((len(local), self.cells.shape[1]))
        combine_rows(self.cells, self._joined(local, active), out)
        return np.maximum(out, floor, out=out)

    def _joined(self, local: FloatArray, active: BoolArray) -> FloatArray:
        """Sum of the scores of every combination of cells, for each target, shape (targets, combinations)."""
        found = []
        for columns in self.groups:
            total = np.zeros((len(local), 1))
            for a in columns:
                cells = slice(self.first[a], self.first[a] + self.number[a])
                scores = np.where(active[:, a, None], local[:, cells], 0.0)
                total = (total[:, :, None] + scores[:, None, :]).reshape(len(local), -1)
            found.append(total)
        return np.concatenate(found, axis=1)


@compiled
def combine_rows(cells: CodeArray, local: FloatArray, out: FloatArray) -> None:
    """Add up what each row's combinations have, for each target.

    `local`: shape (targets, combinations); `out`: shape (targets, rows), filled.
    """
    rows = out.shape[1]
    for t in range(out.shape[0]):
        for start in range(0, rows, BLOCK):
            end = min(start + BLOCK, rows)
            for j in range(start, end):
                out[t, j] = local[t, cells[0, j]]
            for a in range(1, cells.shape[0]):
                for j in range(start, end):
                    out[t, j] += local[t, cells[a, j]]


@compiled
def bucket_scores(scores: FloatArray, look: IntArray, start: IntArray, share: bool, out: FloatArray) -> None:
    """Score of each bucket for one column of a sliced release, whose rows stand bucket by bucket.

    Args:
        scores: score of each distinct row, shape (targets, distinct rows).
        look: which of them each row is, shape (rows,).
        start: first row of each bucket and the number of rows, shape (buckets + 1,).
        share: log of the mean of the rows' exponentials (a random cell of the bucket is the target's); else the best
            row.
        out: shape (targets, buckets); added to.
    """
    for t in range(scores.shape[0]):
        for b in range(len(start) - 1):
            best = -np.inf
            for j in range(start[b], start[b + 1]):
                best = max(best, scores[t, look[j]])
            if share and best > -np.inf:
                total = 0.0
                for j in range(start[b], start[b + 1]):
                    behind = best - scores[t, look[j]]
                    if behind < TIE:
                        total += 1.0
                    elif behind < NEGLIGIBLE:
                        total += np.exp(-behind)
                best += np.log(total / (start[b + 1] - start[b]))
            out[t, b] += best


def leave_out_groups(
    scores: FloatArray, start: IntArray, group_of_unit: IntArray, own_start: IntArray, own_group: IntArray
) -> None:
    """Set the score to minus infinity outside the groups of a target's own rows.

    Args:
        scores: shape (records, units), changed.
        start: first record of each target and the number of records, shape (targets + 1,).
        own_start: first own row of each target and their number, shape (targets + 1,).
        own_group: group of each of those rows.
    """
    for t in range(len(start) - 1):
        outside = ~np.isin(group_of_unit, own_group[own_start[t] : own_start[t + 1]])
        scores[start[t] : start[t + 1], outside] = -np.inf


@compiled
def own_share(
    scores: FloatArray, start: IntArray, size: FloatArray, own_start: IntArray, own_units: IntArray, out: FloatArray
) -> None:
    """Chance that a row picked evenly among the best is one of the target's own.

    Args:
        scores: shape (records, units); a target has one record, or several, each of which may fit any row.
        start: first record of each target and the number of records, shape (targets + 1,).
        size: released rows of each unit, shape (units,).
        own_start: first own row of each target and their number, shape (targets + 1,).
        own_units: unit of each of those rows; a target that was not released has none.
        out: shape (targets,): own rows that score best over all rows that do, each counted for every record it fits.
    """
    for t in range(len(out)):
        best = -np.inf
        for r in range(start[t], start[t + 1]):
            for u in range(len(size)):
                best = max(best, scores[r, u])
        hits, fitting = 0, 0.0
        if best > -np.inf:
            for r in range(start[t], start[t + 1]):
                for u in range(len(size)):
                    if scores[r, u] >= best - TIE:
                        fitting += size[u]
                for own in range(own_start[t], own_start[t + 1]):
                    if scores[r, own_units[own]] >= best - TIE:
                        hits += 1
        out[t] = hits / fitting if hits > 0 else 0.0


def votes(
    scores: FloatArray,
    start: IntArray,
    reach: float,
    carried: sparse.csr_matrix,
    tilt: FloatArray | None = None,
    normed: bool = True,
) -> FloatArray:
    """Votes of the units for each sensitive value, shape (targets, values).

    Args:
        scores: shape (records, units).
        start: first record of each target and the number of records, shape (targets + 1,); the records' votes add up.
        reach: 0: the best units vote evenly; else units vote with the exponential of their score, up to `reach` below
            the best of all records.
        carried: rows of each unit that carry each value, shape (units, values).
        tilt: factor of each value for each record, shape (records, values).
        normed: whether a unit's values share its weight after the tilt, as they did before.
    """
    best = np.maximum.reduceat(scores.max(axis=1), start[:-1])
    best = np.repeat(np.where(best == -np.inf, np.inf, best), np.diff(start))
    near = scores >= best[:, None] - max(reach, TIE)
    place = np.flatnonzero(near)
    voters = np.count_nonzero(near, axis=1)
    weight = np.exp(scores.ravel()[place] - np.repeat(best, voters)) if reach else np.ones(len(place))
    if tilt is not None and normed:
        before, after = np.asarray(carried.sum(axis=1)).ravel(), tilt @ carried.T
        shared = np.divide(before, after, out=np.zeros_like(after), where=after > 0)
        weight *= shared.ravel()[place]
    offsets = np.concatenate([[0], np.cumsum(voters)])
    found = (sparse.csr_matrix((weight, place % scores.shape[1], offsets), scores.shape) @ carried).toarray()
    return np.add.reduceat(found if tilt is None else found * tilt, start[:-1], axis=0)


def share_of_likeliest(votes: FloatArray, target: IntArray, value: IntArray) -> FloatArray:
    """Share of the values with most votes that are the target's, shape (targets,).

    `votes`: shape (targets, values); `target`, `value`: the values that are a target's.

    >>> share_of_likeliest(np.array([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]]), np.array([0, 1]), np.array([1, 1])).tolist()
    [0.5, 0.0]
    """
    likeliest = (votes > 0) & (votes >= votes.max(axis=1, keepdims=True) * (1 - TIE))
    right = np.bincount(target, likeliest[target, value], len(votes))
    return np.asarray(right / np.maximum(likeliest.sum(axis=1), 1))
