"""What an attacker is, how one scores released rows for some targets, and how well one does against a release.

An attacker says how it scores the cells of each column for a known value; the rest is the same for all: rows score the
sum over what is known, the attacker picks evenly among the best, and they vote on the sensitive value. A bucket of a
sliced release scores part by part: the log of the mean of its rows' exponentials, or the best row (`Scoring.share`).
Equal rows of a part are scored once. `kernels.attacks.linkage_scores` does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from duckdb_anon.kernels.attacks.linkage_scores import (
    JoinedCells,
    best_of,
    bucket_scores,
    leave_out_groups,
    own_share,
    share_of_likeliest,
    votes,
)
from duckdb_anon.kernels.thread_pool import run_queue, threads
from duckdb_anon.measures.risk.linkage_view import PublishedPart, PublishedRecords, refined
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.progress import tick

ColumnScore = Callable[[CodeArray], FloatArray]
Tilt = Callable[[Targets], FloatArray]
"""Factor of each sensitive value for each record by a model of it, shape (records, sensitive domain)."""
_BLOCK = 1_000_000
"""Scores at a time on all threads; with more, each block's memory comes from the system anew."""


@dataclass(frozen=True)
class Label:
    """What rows have in common besides their cells, such as the group that an attacker finds them in."""

    of_row: IntArray  # label of each released row
    score: Callable[[Targets], FloatArray]  # what each label adds to the score of a row, shape (records, labels)


@dataclass(frozen=True)
class Scoring:
    """How one attacker scores one release."""

    # for each quasi-identifier, values to scores, shape (values, cells of the column); none where labels alone count
    columns: list[ColumnScore]
    floor: float = -np.inf  # least score of a row; lower sums are raised to it
    # a bucket of a sliced release scores the log of the mean of its rows' exponentials, else the best row's
    share: bool = False
    # 0: the best rows vote evenly; else rows vote with the exponential of their score, up to this far below
    reach: float = 0.0
    most_equal: int | None = None  # rows with more known columns equal than this are left out; None leaves out none
    within_group: bool = False  # whether only the target's own group counts
    # for each secret what voters carry of each value, in place of what they show; none for none
    carried: Sequence[scipy.sparse.csr_matrix] = ()
    tilts: Sequence[Tilt | None] = ()  # for each secret what a model says of its values; none for none
    labels: Sequence[Label] = ()
    finds: bool = True  # whether it looks for the record, and not for the sensitive value alone
    register: bool = False  # whether only individuals of the register can be looked for
    # how the attacker knows P(published | value), see `PublishedRecords.channel`; None where it is not used
    channel: str | None = None


class NotApplicable(AnonError):
    """The attacker needs something that neither the release nor the call has."""


@dataclass(frozen=True)
class Attacker:
    """One attacker."""

    name: str  # in SQL
    doc: str  # what it takes for the target's row
    # how it scores a release; raises NotApplicable where it cannot be used
    scoring: Callable[[PublishedRecords], Scoring]
    outsider: bool = True  # whether it uses public knowledge alone; others are listed, but never the strongest
    order: int = 0  # place in reports


class Scores:
    """What one attacker makes of some targets: the score of each unit for each record, shape (records, units)."""

    def __init__(self, release: PublishedRecords, scoring: Scoring, some: Targets) -> None:
        """Score the units; `some`: the targets."""
        self.release, self.scoring, self.some = release, scoring, some
        self._of_part = [self._sums(*part) for part in zip(release.parts, release.joined, strict=True)]
        self.units = self._in_group(self._of_part[0]) if release.start is None else self._buckets(release.start, None)

    def voters(self, part: int) -> FloatArray:
        """Scores of those who vote for a secret, shape (records, voters)."""
        start = self.release.start
        if start is None or part < 0:
            return self.units
        scores = np.repeat(self._buckets(start, part), np.diff(start), axis=1)
        return np.maximum(scores + self._of_part[part][:, self.release.parts[part].row_of_voter], self.scoring.floor)

    def _buckets(self, start: IntArray, skipped: int | None) -> FloatArray:
        """Scores of the buckets by all parts but one."""
        units = np.zeros((len(self.some.values), len(self.release.size)))
        for k, scores in enumerate(self._of_part):
            if k != skipped:
                bucket_scores(scores, self.release.parts[k].row_of_voter, start, self.scoring.share, units)
        return self._in_group(np.maximum(units, self.scoring.floor))

    def _sums(self, part: PublishedPart, rows: JoinedCells) -> FloatArray:
        """Scores of the distinct rows of a part, shape (records, distinct rows)."""
        scoring, values = self.scoring, self.some.values
        known = np.ascontiguousarray(self.some.known[:, list(part.columns)])
        of_column = [scoring.columns[a](values[:, a]) for a in part.columns] if scoring.columns else []
        labels = [(label.of_row[self.release.first_row], label.score(self.some)) for label in scoring.labels]
        scores = rows.scores(of_column, known, labels)
        if scoring.floor > -np.inf:
            np.maximum(scores, scoring.floor, out=scores)
        if scoring.most_equal is not None and scoring.most_equal < len(part.columns):
            equal = [self.release.columns[a].covers(values[:, a]) for a in part.columns]
            scores[rows.scores(equal, known) > scoring.most_equal] = -np.inf
        return scores

    def _in_group(self, units: FloatArray) -> FloatArray:
        """The scores, without units outside the target's group where the attacker knows it."""
        if self.scoring.within_group and self.release.group_of_unit is not None:
            group = self.release.group_of_unit.astype(np.int64)
            of_target = group[self.release.unit_of_row[self.some.true.code]]
            leave_out_groups(units, self.some.start, group, self.some.true.offsets, of_target)
        return units


def _scored(
    release: PublishedRecords, scoring: Scoring, targets: Targets, use: Callable[[Scores, slice], None]
) -> None:
    """Hand the scores of some targets at a time to `use`, with the places of these targets."""
    voters = (len(part.row_of_voter) for part in release.parts)
    widest = max(sum(c.number for c in release.columns), *voters, *(secret.domain for secret in release.secrets))
    at_a_time = max(1, min(256, int(_BLOCK // widest // threads())))

    def score(block: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        if not flag[0]:
            use(Scores(release, scoring, targets.between(*block)), slice(*block))
        return []

    run_queue(targets.blocks(at_a_time), score, tick)


def attack(release: PublishedRecords, scoring: Scoring, targets: Targets) -> tuple[FloatArray, FloatArray]:
    """Chances to find each target, shape (targets,), and to name its values, shape (targets, secrets); NaN for none."""
    release = _labelled(release, scoring)
    identity = np.zeros(len(targets))
    attribute = np.zeros((len(targets), len(release.secrets)))
    carried = scoring.carried or [secret.by_voter for secret in release.secrets]

    def look(scores: Scores, block: slice) -> None:
        some = scores.some
        true_unit = release.unit_of_row[some.true.code]
        best = best_of(scores.units, some.start)
        identity[block] = own_share(scores.units, best, some.start, release.size, some.true.offsets, true_unit)
        for k, secret in enumerate(release.secrets):
            truth, known = some.secrets[k], some.known_values[k]
            model = scoring.tilts[k] if scoring.tilts else None
            tilt = None if model is None else model(some)
            normed = release.start is None or secret.part < 0
            voters = scores.voters(secret.part)
            if voters is not scores.units:
                best = best_of(voters, some.start)
            found = votes(voters, best, some.start, scoring.reach, carried[k], tilt, normed)
            found[known.target, known.code] = 0
            right = share_of_likeliest(found, truth.target, truth.code)
            attribute[block, k] = np.where(np.diff(truth.offsets) > 0, right, np.nan)

    _scored(release, scoring, targets, look)
    return identity, attribute


def best_scores(release: PublishedRecords, scoring: Scoring, targets: Targets) -> FloatArray:
    """Score of the best row for each target: how well the release fits, shape (targets,)."""
    best = np.zeros(len(targets))

    def look(scores: Scores, block: slice) -> None:
        best[block] = best_of(scores.units, scores.some.start)

    _scored(_labelled(release, scoring), scoring, targets, look)
    return best


def _labelled(release: PublishedRecords, scoring: Scoring) -> PublishedRecords:
    """The release with units of rows that agree on the attacker's labels too."""
    return refined(release, [label.of_row for label in scoring.labels]) if scoring.labels else release


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """95% interval of a rate after Wilson (1927); for means of chances in [0, 1] it is on the safe side.

    >>> [round(end, 4) for end in wilson(0, 100)]
    [0.0, 0.037]
    """
    z, rate = 1.959963984540054, successes / trials
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * np.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    # an end that is none of the sums' rounding
    return low if successes > 0 else 0.0, high if successes < trials else 1.0


def standard_error(chances: FloatArray) -> float:
    """Standard error of the mean of chances that are not NaN; NaN for fewer than two.

    >>> standard_error(np.array([0.0, 1.0, np.nan]))
    0.5
    """
    measured = chances[~np.isnan(chances)]
    return float(measured.std(ddof=1) / np.sqrt(len(measured))) if len(measured) > 1 else np.nan


def rate_of(chances: FloatArray) -> tuple[float, float, float]:
    """Mean and 95% interval of chances that are not NaN; NaN for none."""
    measured = chances[~np.isnan(chances)]
    if not len(measured):
        return np.nan, np.nan, np.nan
    return float(measured.mean()), *wilson(float(measured.sum()), len(measured))
