"""Scores of released rows for some targets: by columns, by parts of a sliced release, by buckets.

Where rows of the same part look alike they are scored once. A bucket of a sliced release scores part by part: the log
of the mean of its rows' exponentials, or the best row (`Scoring.share`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from duckdb_anon.kernels.attacks.linkage_scores import JoinedCells, bucket_scores, leave_out_groups
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.kernels.thread_pool import threads
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.release_table import BoolArray

ColumnScore = Callable[[CodeArray], FloatArray]
_BLOCK = 4_000_000


def unscored(release: PublishedRecords) -> list[ColumnScore]:
    """Columns that add nothing, for attackers who score units alone (`Scoring.added`)."""
    return [partial(_nothing, cells.number) for cells in release.columns]


def _nothing(cells: int, values: CodeArray) -> FloatArray:
    return np.zeros((len(values), cells))


def sums_of_bins(
    bin_of_code: Sequence[IntArray], of_bin: FloatArray, values: CodeArray, known: BoolArray
) -> FloatArray:
    """Sum over the known values of what their bins have, shape (records, columns of `of_bin`).

    `bin_of_code`: for each quasi-identifier the bin of each value, numbered over all columns; `values`, `known`: shape
    (records, quasi-identifiers).
    """
    total = np.zeros((len(values), of_bin.shape[1]))
    for a, bins in enumerate(bin_of_code):
        total += np.where(known[:, a, None], of_bin[bins[values[:, a]]], 0.0)
    return total


@dataclass(frozen=True)
class Tilt:
    """What a naive Bayes model adds to the votes for a sensitive value."""

    bin_of_code: list[IntArray]  # for each quasi-identifier the bin of each value, numbered over all columns
    log_ratio: FloatArray  # log P(bin | value) / P(bin), shape (bins of all columns, sensitive domain)

    def of(self, some: Targets) -> FloatArray:
        """Factor of each value for each record, at most 1, shape (records, sensitive domain)."""
        total = sums_of_bins(self.bin_of_code, self.log_ratio, some.values, some.known)
        factor: FloatArray = np.exp(total - total.max(axis=1, keepdims=True))
        return factor


@dataclass(frozen=True)
class Scoring:
    """How one attacker looks at one release."""

    columns: list[ColumnScore]  # for each quasi-identifier, values to scores, shape (values, cells of the column)
    floor: float = -np.inf  # least score of a row; lower sums are raised to it
    # a bucket of a sliced release scores the log of the mean of its rows' exponentials, else the best row's
    share: bool = False
    # 0: the best rows vote evenly; else rows vote with the exponential of their score, up to this far below
    reach: float = 0.0
    most_equal: int | None = None  # rows with more known columns equal than this are left out; None leaves out none
    within_group: bool = False  # whether only the target's own group counts
    weights: Sequence[FloatArray] = ()  # for each secret the weights that stand in place of its own; none for none
    tilts: Sequence[Tilt | None] = ()  # for each secret what a model says of its values; none for none
    # the release with the units that `added` speaks of, in place of the release as it is
    view: PublishedRecords | None = None
    # what is added to the scores of the units, shape (records, units); None for nothing
    added: Callable[[Targets], FloatArray] | None = None
    finds: bool = True  # whether it looks for the record, and not for the sensitive value alone
    register: bool = False  # whether only individuals of the register can be looked for
    # how the attacker knows P(published | value), see `PublishedRecords.channel`; None where it is not used
    channel: str | None = None


@dataclass(frozen=True)
class JoinedPart:
    """The distinct rows of one part."""

    columns: list[int]  # places of its columns among the quasi-identifiers
    cells: JoinedCells  # its distinct rows, columns of few cells joined
    row_of_voter: CodeArray  # which of them each row of a sliced release is, shape (voters,); else empty


def joined_parts(release: PublishedRecords) -> list[JoinedPart]:
    """Distinct rows of each part."""
    found = []
    for part in release.parts:
        cells, row_of_voter = part.cells, np.zeros(0, dtype=np.int32)
        if release.start is not None:
            keys = keys_of(list(cells))
            cells, row_of_voter = cells[:, keys.first], keys.of_row.astype(np.int32)
        numbers = [release.columns[a].number for a in part.columns]
        found.append(JoinedPart(list(part.columns), JoinedCells.of(cells, numbers), row_of_voter))
    return found


def records_at_a_time(release: PublishedRecords) -> int:
    """Records whose scores, on all threads together, fit into some tens of megabytes."""
    voters = max(part.cells.shape[1] for part in release.parts)
    widest = max(sum(c.number for c in release.columns), voters)
    return max(1, min(256, int(_BLOCK // widest // threads())))


class Scores:
    """What one attacker makes of some targets.

    Attributes:
        units: score of each unit for each record, shape (records, units).
    """

    def __init__(self, release: PublishedRecords, scoring: Scoring, parts: Sequence[JoinedPart], some: Targets) -> None:
        """Score the units; `parts`: of `joined_parts`; `some`: the targets."""
        self.release, self.scoring, self.parts, self.some = release, scoring, parts, some
        self._of_part = [self._sums(part) for part in parts]
        if release.start is not None:
            self.units = self._buckets(release.start, None)
            return
        self.units = self._of_part[0]
        if scoring.added is not None:
            self.units += scoring.added(some)
        self._stay_in_group(self.units)

    def voters(self, part: int) -> FloatArray:
        """Scores of those who vote for a secret, shape (records, voters).

        These are the units, or the rows of the part of a sliced release that the secret is in (-1: in none).
        """
        start = self.release.start
        if start is None or part < 0:
            return self.units
        scores = np.repeat(self._buckets(start, part), np.diff(start), axis=1)
        return np.maximum(scores + self._of_part[part][:, self.parts[part].row_of_voter], self.scoring.floor)

    def _buckets(self, start: IntArray, skipped: int | None) -> FloatArray:
        """Scores of the buckets by all parts but one."""
        units = np.zeros((len(self.some.values), len(self.release.size)))
        for k, scores in enumerate(self._of_part):
            if k != skipped:
                bucket_scores(scores, self.parts[k].row_of_voter, start, self.scoring.share, units)
        units = np.maximum(units, self.scoring.floor)
        self._stay_in_group(units)
        return units

    def _sums(self, part: JoinedPart) -> FloatArray:
        """Scores of the distinct rows of a part, shape (records, distinct rows)."""
        values, known = self.some.values, np.ascontiguousarray(self.some.known[:, part.columns])
        of_cell = np.hstack([self.scoring.columns[a](values[:, a]) for a in part.columns])
        scores = part.cells.scores(np.ascontiguousarray(of_cell, dtype=np.float64), known, self.scoring.floor)
        if self.scoring.most_equal is not None:
            equal = np.hstack([self.release.columns[a].covered(values[:, a]) for a in part.columns])
            same = part.cells.scores(np.ascontiguousarray(equal, dtype=np.float64), known, 0.0)
            scores[same > self.scoring.most_equal] = -np.inf
        return scores

    def _stay_in_group(self, units: FloatArray) -> None:
        if self.scoring.within_group and self.release.group_of_unit is not None:
            group = self.release.group_of_unit.astype(np.int64)
            of_target = group[self.release.unit_of_row[self.some.true_row]]
            leave_out_groups(units, self.some.start, group, self.some.true_start, of_target)
