"""What an attacker is, and how well one does against a release.

An attacker says how she scores the cells of each column for a known value; the rest is the same for all of them: rows
score the sum over what is known, she picks evenly among the best, and votes on the secret (attackers.__init__ lists
them, `kernels.attacks.linkage` does the work).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.attacks.joined import JoinedCells
from duckdb_anon.kernels.attacks.linkage import (
    bucket_scores,
    leave_out_groups,
    own_share,
    vote,
)
from duckdb_anon.kernels.threads import threads, work_off
from duckdb_anon.measures.risk.published_records import PublishedRecords
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.progress import tick
from duckdb_anon.model.table import CodeArray, FloatArray, IntArray

ColumnScore = Callable[[CodeArray], FloatArray]
_BLOCK = 4_000_000


class CannotAsk(AnonError):
    """This attacker needs something that the release, or the call, does not tell."""


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
        total = np.zeros((len(some.values), self.log_ratio.shape[1]))
        for a, bins in enumerate(self.bin_of_code):
            total += np.where(some.known[:, a, None], self.log_ratio[bins[some.values[:, a]]], 0.0)
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
        told: whether only the target's own group counts.
        weights: for each secret the weights that stand in place of its own; none for none.
        tilts: for each secret what a model says of its values; none for none.
    """

    columns: list[ColumnScore]
    floor: float = -np.inf
    share: bool = False
    reach: float = 0.0
    most_equal: int | None = None
    told: bool = False
    weights: Sequence[FloatArray] = ()
    tilts: Sequence[Tilt | None] = ()


@dataclass(frozen=True)
class Attacker:
    """One attacker.

    Attributes:
        name: as the SQL functions call her.
        doc: what she takes for the target's row.
        scoring: release to her way of looking at it; raises CannotAsk where she cannot.
        outsider: whether she knows no more than the public; others are listed, but never the strongest.
    """

    name: str
    doc: str
    scoring: Callable[[PublishedRecords], Scoring]
    outsider: bool = True


@dataclass(frozen=True)
class Success:
    """Chances of success with each target.

    Attributes:
        identity: shape (targets,).
        attribute: shape (targets, secrets); NaN where everything is known beforehand.
    """

    identity: FloatArray
    attribute: FloatArray


def attack(release: PublishedRecords, scoring: Scoring, targets: Targets) -> Success:
    """Look for every target.

    Args:
        release: what was published.
        scoring: how the attacker looks at it.
        targets: whom she looks for.
    """
    identity = np.zeros(len(targets))
    attribute = np.zeros((len(targets), len(release.secrets)))
    parts = _joined(release)

    def look(block: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        if flag[0]:
            return []
        some, own = targets.between(*block), slice(*block)
        by_part = [_part_scores(release, scoring, k, parts[k], some) for k in range(len(parts))]
        units = _unit_scores(release, scoring, by_part, None)
        _stay_in_group(release, scoring, units, some)
        mine = release.unit_of_row[some.own_row]
        own_share(units, some.start, release.size, some.own_start, mine, identity[own])
        for k, secret in enumerate(release.secrets):
            scores = units
            if release.start is not None and secret.part >= 0:
                scores = _voter_scores(release, scoring, by_part, secret.part, some)
            found = np.zeros(len(some))
            truth, told = some.secrets[k], some.told[k]
            weight = scoring.weights[k] if scoring.weights else secret.weight
            model = scoring.tilts[k] if scoring.tilts else None
            tilt = np.zeros((len(some.values), 0)) if model is None else model.of(some)
            normed = release.start is None or secret.part < 0
            vote(
                scores, some.start, scoring.reach, secret.offsets, secret.code, weight, tilt, normed, truth.offsets,
                truth.code, told.offsets, told.code, np.zeros(secret.domain), found,
            )  # fmt: skip
            attribute[own, k] = np.where(np.diff(truth.offsets) > 0, found, np.nan)
        return []

    work_off(targets.blocks(_records_at_a_time(release)), look, tick)
    return Success(identity, attribute)


def best_scores(release: PublishedRecords, scoring: Scoring, targets: Targets) -> FloatArray:
    """Score of the best row for each target: how well the release fits her, shape (targets,).

    Args:
        release: what was published.
        scoring: how the attacker looks at it.
        targets: whom she looks for.
    """
    best = np.zeros(len(targets))
    parts = _joined(release)

    def look(block: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        if not flag[0]:
            some = targets.between(*block)
            by_part = [_part_scores(release, scoring, k, parts[k], some) for k in range(len(parts))]
            each = _unit_scores(release, scoring, by_part, None).max(axis=1)
            best[slice(*block)] = np.maximum.reduceat(each, some.start[:-1])
        return []

    work_off(targets.blocks(_records_at_a_time(release)), look, tick)
    return best


def _joined(release: PublishedRecords) -> list[JoinedCells]:
    """Cells of each part, columns of few cells joined."""
    return [JoinedCells.of(p.cells, [release.columns[a].number for a in p.columns]) for p in release.parts]


def _records_at_a_time(release: PublishedRecords) -> int:
    """Records whose scores, on all threads together, fit into some tens of megabytes."""
    voters = max(part.cells.shape[1] for part in release.parts)
    widest = max(sum(c.number for c in release.columns), voters)
    return max(1, min(256, int(_BLOCK // widest // threads())))


def _part_scores(release: PublishedRecords, scoring: Scoring, k: int, joined: JoinedCells, some: Targets) -> FloatArray:
    """Scores of the voters by the columns of one part, shape (targets, voters)."""
    part = release.parts[k]
    active = np.ascontiguousarray(some.known[:, part.columns])
    local = np.hstack([scoring.columns[a](some.values[:, a]) for a in part.columns])
    out = joined.scores(np.ascontiguousarray(local, dtype=np.float64), active, scoring.floor)
    if scoring.most_equal is not None:
        equal = np.hstack([release.columns[a].covered(some.values[:, a]) for a in part.columns])
        same = joined.scores(np.ascontiguousarray(equal, dtype=np.float64), active, 0.0)
        out[same > scoring.most_equal] = -np.inf
    return out


def _unit_scores(
    release: PublishedRecords, scoring: Scoring, by_part: list[FloatArray], skipped: int | None
) -> FloatArray:
    """Scores of the units, by all parts but one."""
    if release.start is None:
        return by_part[0]
    units = np.zeros((len(by_part[0]), len(release.size)))
    for k, scores in enumerate(by_part):
        if k != skipped:
            bucket_scores(scores, release.start, scoring.share, units)
    return np.maximum(units, scoring.floor)


def _voter_scores(
    release: PublishedRecords, scoring: Scoring, by_part: list[FloatArray], part: int, some: Targets
) -> FloatArray:
    """Scores of the rows of a sliced release that carry a secret: their own part and the rest of their bucket."""
    if release.start is None:
        raise TypeError("not sliced")
    units = _unit_scores(release, scoring, by_part, part)
    _stay_in_group(release, scoring, units, some)
    scores = np.repeat(units, np.diff(release.start), axis=1)
    return np.maximum(scores + by_part[part], scoring.floor)


def _stay_in_group(release: PublishedRecords, scoring: Scoring, units: FloatArray, some: Targets) -> None:
    if scoring.told and release.group_of_unit is not None:
        group = release.group_of_unit.astype(np.int64)
        own = group[release.unit_of_row[some.own_row]]
        leave_out_groups(units, some.start, group, some.own_start, own)


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
