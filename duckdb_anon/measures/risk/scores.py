"""Scores of released rows for some targets: by columns, by parts of a sliced release, by buckets.

Where rows of the same part look alike they are scored once. A bucket of a sliced release scores part by part: the log
of the mean of its rows' exponentials, or the best row (`Scoring.share`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from duckdb_anon.kernels.attacks.linkage_scores import (
    JoinedCells,
    bucket_means,
    bucket_scores,
    leave_out_groups,
    logs_within,
    row_products,
)
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
    """What a naive Bayes model adds to the votes for a sensitive value.

    Attributes:
        bin_of_code: for each quasi-identifier the bin of each value, numbered over all columns.
        log_ratio: log P(bin | value) / P(bin), shape (bins of all columns, sensitive domain).
    """

    bin_of_code: list[IntArray]
    log_ratio: FloatArray

    def of(self, some: Targets) -> FloatArray:
        """Factor of each value for each record, at most 1, shape (records, sensitive domain)."""
        total = sums_of_bins(self.bin_of_code, self.log_ratio, some.values, some.known)
        factor: FloatArray = np.exp(total - total.max(axis=1, keepdims=True))
        return factor


@dataclass(frozen=True)
class Scoring:
    """How one attacker looks at one release.

    Attributes:
        columns: for each quasi-identifier, values to scores, shape (values, cells of the column).
        floor: least score of a row; lower sums are raised to it.
        share: a bucket of a sliced release scores the log of the mean of its rows' exponentials, else the best row's.
        reach: 0: the best rows vote evenly; else rows vote with the exponential of their score, up to this far below.
        most_equal: rows with more known columns equal than this are left out; None leaves out none.
        within_group: whether only the target's own group counts.
        weights: for each secret the weights that stand in place of its own; none for none.
        tilts: for each secret what a model says of its values; none for none.
        view: the release with the units that `added` speaks of, in place of the release as it is.
        added: what is added to the scores of the units, shape (records, units); None for nothing.
        finds: whether she looks for the record, and not for the sensitive value alone.
        register: whether only individuals of the register can be looked for.
        channel: how the attacker knows P(published | value), see `PublishedRecords.channel`; None where it is not used.
    """

    columns: list[ColumnScore]
    floor: float = -np.inf
    share: bool = False
    reach: float = 0.0
    most_equal: int | None = None
    within_group: bool = False
    weights: Sequence[FloatArray] = ()
    tilts: Sequence[Tilt | None] = ()
    view: PublishedRecords | None = None
    added: Callable[[Targets], FloatArray] | None = None
    finds: bool = True
    register: bool = False
    channel: str | None = None


@dataclass(frozen=True)
class JoinedPart:
    """The distinct rows of one part.

    Attributes:
        columns: places of its columns among the quasi-identifiers.
        cells: its distinct rows, columns of few cells joined.
        look: which of them each voter is, shape (voters,); None where each is one of its own.
    """

    columns: list[int]
    cells: JoinedCells
    look: CodeArray | None

    @property
    def of_voter(self) -> CodeArray:
        """Which of the distinct rows each voter of a sliced release is."""
        if self.look is None:
            raise TypeError("not sliced")
        return self.look


def joined_parts(release: PublishedRecords) -> list[JoinedPart]:
    """Distinct rows of each part."""
    found = []
    for part in release.parts:
        cells, look = part.cells, None
        if release.start is not None:
            keys = keys_of(list(cells))
            cells, look = cells[:, keys.first], keys.of_row.astype(np.int32)
        numbers = [release.columns[a].number for a in part.columns]
        found.append(JoinedPart(list(part.columns), JoinedCells.of(cells, numbers), look))
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
        """Score the units.

        `scoring`: how the attacker looks at it.
        `parts`: of `joined_parts`.
        `some`: whom she looks for.
        """
        self.release, self.scoring, self.parts, self.some = release, scoring, parts, some
        self._factors: list[tuple[FloatArray, FloatArray]] | None = None
        self._sums: list[FloatArray] | None = None
        if release.start is not None and scoring.share and scoring.floor == -np.inf and scoring.most_equal is None:
            self._factors = [p.cells.factors(*self._local(p)) for p in parts]
        self.units = self._units(None)

    def voters(self, part: int) -> FloatArray:
        """Scores of those who vote for a secret: the units, or the rows of its part of a sliced release.

        Args:
            part: the part the secret stands in, -1 for none.

        Returns:
            Shape (records, voters).
        """
        start = self.release.start
        if start is None or part < 0:
            return self.units
        chosen = self.parts[part]
        if self._factors is not None:
            products = self._products(start, part)
            rows = np.empty((len(products), len(chosen.of_voter)))
            row_products(products, self._factors[part][0], chosen.of_voter, start, rows)
            if logs_within(rows, self._offset, self.scoring.reach + 1.0):
                return rows
        scores = np.repeat(self._in_logs(start, part), np.diff(start), axis=1)
        return np.maximum(scores + self._by_part()[part][:, chosen.of_voter], self.scoring.floor)

    def _units(self, skipped: int | None) -> FloatArray:
        start = self.release.start
        if start is None:
            units = self._by_part()[0]
            if self.scoring.added is not None:
                units += self.scoring.added(self.some)
            self._stay_in_group(units)
            return units
        if self._factors is not None:
            products = self._products(start, skipped)
            if logs_within(products, self._offset, self.scoring.reach + 1.0):
                return products
        return self._in_logs(start, skipped)

    @property
    def _offset(self) -> FloatArray:
        """What was taken from the logarithms of each record."""
        total: FloatArray = np.sum([best for _, best in self._factors or ()], axis=0)
        return total

    def _products(self, start: IntArray, skipped: int | None) -> FloatArray:
        """Products of the buckets by all parts but one."""
        units = np.ones((len(self.some.values), len(self.release.size)))
        for k, (factors, _) in enumerate(self._factors or ()):
            if k != skipped:
                bucket_means(factors, self.parts[k].of_voter, start, units)
        self._stay_in_group(units)
        return units

    def _in_logs(self, start: IntArray, skipped: int | None) -> FloatArray:
        """Scores of the buckets by all parts but one, as sums."""
        units = np.zeros((len(self.some.values), len(self.release.size)))
        for k, scores in enumerate(self._by_part()):
            if k != skipped:
                bucket_scores(scores, self.parts[k].of_voter, start, self.scoring.share, units)
        units = np.maximum(units, self.scoring.floor)
        self._stay_in_group(units)
        return units

    def _by_part(self) -> list[FloatArray]:
        """Scores of the distinct rows of each part, shape (records, distinct rows)."""
        if self._sums is None:
            self._sums = [self._sums_of(part) for part in self.parts]
        return self._sums

    def _sums_of(self, part: JoinedPart) -> FloatArray:
        local, active = self._local(part)
        out = part.cells.scores(local, active, self.scoring.floor)
        if self.scoring.most_equal is not None:
            equal = np.hstack([self.release.columns[a].covered(self.some.values[:, a]) for a in part.columns])
            same = part.cells.scores(np.ascontiguousarray(equal, dtype=np.float64), active, 0.0)
            out[same > self.scoring.most_equal] = -np.inf
        return out

    def _local(self, part: JoinedPart) -> tuple[FloatArray, BoolArray]:
        """Score of each cell of the part's columns for each record, and which columns are known."""
        local = np.hstack([self.scoring.columns[a](self.some.values[:, a]) for a in part.columns])
        known = np.ascontiguousarray(self.some.known[:, part.columns])
        return np.ascontiguousarray(local, dtype=np.float64), known

    def _stay_in_group(self, units: FloatArray) -> None:
        if self.scoring.within_group and self.release.group_of_unit is not None:
            group = self.release.group_of_unit.astype(np.int64)
            chosen = group[self.release.unit_of_row[self.some.true_row]]
            leave_out_groups(units, self.some.start, group, self.some.true_start, chosen)
