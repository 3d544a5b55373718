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
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled, compiled_with_arrays
from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray

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
        return cls(index, groups)

    def scores(
        self, of_column: Sequence[NDArray[Any]], active: BoolArray, labels: Sequence[tuple[IntArray, FloatArray]] = ()
    ) -> FloatArray:
        """Sum each row's scores for each target, shape (targets, rows).

        `of_column`: score of each cell of each column for each target, none where labels alone count; `active`: columns
        the attacker knows of each target, shape (targets, columns); others add nothing; `labels`: a label of each row,
        and the score of each label for each target.
        """
        cells, found = [], []
        if of_column:
            cells, found = [*self.cells], [self._joined(columns, of_column, active) for columns in self.groups]
        for label, score in labels:
            cells.append((label + sum(each.shape[1] for each in found)).astype(np.int32))
            found.append(score)
        out = np.empty((len(active), self.cells.shape[1]))
        combine_rows(np.stack(cells), np.concatenate(found, axis=1, dtype=np.float64), out)
        return out

    @staticmethod
    def _joined(columns: Sequence[int], of_column: Sequence[NDArray[Any]], active: BoolArray) -> FloatArray:
        """Sum of the scores of every combination of cells of some columns, shape (targets, combinations)."""
        parts = [of_column[a] if active[:, a].all() else np.where(active[:, a, None], of_column[a], 0) for a in columns]
        total: FloatArray = parts[0]
        for scores in parts[1:]:
            total = (total[:, :, None] + scores[:, None, :]).reshape(len(active), -1)
        return total


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
    """Add to `out`, shape (targets, buckets), the scores of buckets for one column of a sliced release.

    `scores`: of each distinct row, shape (targets, distinct rows); `look`: which of them each row is, bucket by bucket;
    `start`: first row of each bucket and the number of rows; `share`: a bucket scores the log of the mean of its rows'
    exponentials (a random cell of the bucket is the target's), else its best row's.
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
    """Set the score to minus infinity outside the groups of a target's own rows, `own_group`; see `own_share`."""
    for t in range(len(start) - 1):
        outside = np.ones(len(group_of_unit), dtype=bool)
        for group in own_group[own_start[t] : own_start[t + 1]]:
            outside &= group_of_unit != group
        np.copyto(scores[start[t] : start[t + 1]], -np.inf, where=outside)


def best_of(scores: FloatArray, start: IntArray) -> FloatArray:
    """The best score of each target; `scores`, `start`: as in `votes`."""
    return np.asarray(np.maximum.reduceat(scores.max(axis=1), start[:-1]))


def own_share(
    scores: FloatArray, best: FloatArray, start: IntArray, size: FloatArray, own_start: IntArray, own_units: IntArray
) -> FloatArray:
    """Chance that a row picked evenly among the best is one of the target's own, shape (targets,).

    `scores`, `best`, `start`: as in `votes`; `size`: released rows of each unit; `own_start`: first own row of each
    target and their number; `own_units`: the unit of each. A row counts for every record that it fits.
    """
    fitting = votes(scores, best, start, 0.0, scipy.sparse.csr_matrix(size[:, None]))[:, 0]
    record, own = record_pairs(start, own_start)
    target = np.repeat(np.arange(len(best)), np.diff(start))[record]
    hits = np.bincount(target, scores[record, own_units[own]] >= best[target] - TIE, len(best))
    return np.divide(hits, fitting, out=np.zeros(len(best)), where=fitting > 0)


def record_pairs(start: IntArray, own_start: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of a record and an own row of the same target."""
    own = np.repeat(np.diff(own_start), np.diff(start))
    first = np.repeat(own_start[:-1], np.diff(start))
    return np.repeat(np.arange(len(own)), own), ranges(first, own)


def votes(
    scores: FloatArray, best: FloatArray, start: IntArray, reach: float, carried: scipy.sparse.csr_matrix,
    tilt: FloatArray | None = None, normed: bool = True,
) -> FloatArray:  # fmt: skip
    """Votes of the units for each sensitive value, shape (targets, values); the votes of a target's records add up.

    `scores`: shape (records, units); `best`: `best_of` them, shape (targets,); `start`: first record of each target and
    the number of records; `reach`: 0: the best units vote evenly; else units vote with the exponential of their score,
    up to so far below the best of all records; `carried`: rows of each unit that carry each value, shape (units,
    values); `tilt`: factor of each value for each record, shape (records, values); `normed`: whether a unit's values
    share its weight after the tilt, as they did before.
    """
    share = np.zeros((0, 0))
    if tilt is not None and normed:
        before, after = np.asarray(carried.sum(axis=1)).ravel(), tilt @ carried.T
        share = np.divide(before, after, out=np.zeros_like(after), where=after > 0)
    found = np.zeros((len(scores), carried.shape[1]))
    best = np.repeat(np.where(best == -np.inf, np.inf, best), np.diff(start))
    _add_votes(scores, best, reach, share, carried.indptr, carried.indices, carried.data, found)
    return np.add.reduceat(found if tilt is None else found * tilt, start[:-1], axis=0)


@compiled
def _add_votes(
    scores: FloatArray, best: FloatArray, reach: float, share: FloatArray, offsets: CodeArray, values: CodeArray,
    amount: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Votes of each record's near units; `share`: factor of each unit for each record, shape (0, 0) for none."""
    for r in range(len(scores)):
        least = best[r] - max(reach, TIE)
        for u in range(scores.shape[1]):
            if scores[r, u] >= least:
                weight = np.exp(scores[r, u] - best[r]) if reach > 0 else 1.0
                if share.size:
                    weight *= share[r, u]
                for at in range(offsets[u], offsets[u + 1]):
                    out[r, values[at]] += weight * amount[at]


def share_of_likeliest(votes: FloatArray, target: IntArray, value: IntArray) -> FloatArray:
    """Share of the values with most votes that are the target's, shape (targets,).

    `votes`: shape (targets, values); `target`, `value`: the values that are a target's.

    >>> share_of_likeliest(np.array([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]]), np.array([0, 1]), np.array([1, 1])).tolist()
    [0.5, 0.0]
    """
    likeliest = (votes > 0) & (votes >= votes.max(axis=1, keepdims=True) * (1 - TIE))
    right = np.bincount(target, likeliest[target, value], len(votes))
    return np.asarray(right / np.maximum(likeliest.sum(axis=1), 1))


@compiled_with_arrays
def nearest_rows(
    targets: FloatArray, rows: FloatArray, nominal: BoolArray, span: FloatArray, order: IntArray, out: IntArray,
    stop: IntArray,
) -> None:  # fmt: skip
    """Nearest rows of each target; of rows equally near the first by `order` count.

    Args:
        nominal: columns whose distance is 0 or 1; the others' is the difference over `span`, at most 1.
        span: range of each column, shape (columns,).
        order: rows in a random order.
        out: nearest rows, the nearest first, shape (targets, k), k at most the number of rows; filled.
    """
    k = out.shape[1]
    distance = np.empty(k)
    for t in range(out.shape[0]):
        if stop[0] != 0:
            return
        found = 0
        for j in order:
            far = 0.0
            for a in range(rows.shape[0]):
                if nominal[a]:
                    if targets[a, t] != rows[a, j]:
                        far += 1.0
                else:
                    far += min(abs(targets[a, t] - rows[a, j]) / span[a], 1.0)
            if found == k and far >= distance[k - 1] - 1e-12:
                continue
            at = found if found < k else k - 1
            while at > 0 and distance[at - 1] > far + 1e-12:
                distance[at] = distance[at - 1]
                out[t, at] = out[t, at - 1]
                at -= 1
            distance[at] = far
            out[t, at] = j
            found = min(found + 1, k)
