"""What an attacker is, and how well one does against a release.

An attacker defines how it scores the cells of each column for a known value; the rest is the same for all: rows score
the sum over what is known, the attacker picks evenly among the best, and they vote on the sensitive value
(attackers.__init__ lists the attackers, `kernels.attacks.linkage_scores` does the work).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.attacks.linkage_scores import own_share, vote
from duckdb_anon.kernels.thread_pool import run_queue
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.scores import Scores, Scoring, joined_parts, records_at_a_time
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.progress import tick


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


@dataclass(frozen=True)
class Success:
    """Chances of success with each target."""

    identity: FloatArray  # shape (targets,)
    attribute: FloatArray  # shape (targets, secrets); NaN where everything is known beforehand


def attack(release: PublishedRecords, scoring: Scoring, targets: Targets) -> Success:
    """Look for every target.

    `scoring`: how the attacker looks at it.
    """
    release = scoring.view or release
    identity = np.zeros(len(targets))
    attribute = np.zeros((len(targets), len(release.secrets)))
    parts = joined_parts(release)

    def look(block: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        if flag[0]:
            return []
        some, block_of_targets = targets.between(*block), slice(*block)
        scores = Scores(release, scoring, parts, some)
        mine = release.unit_of_row[some.true_row]
        own_share(scores.units, some.start, release.size, some.true_start, mine, identity[block_of_targets])
        for k, secret in enumerate(release.secrets):
            found = np.zeros(len(some))
            truth, known_values = some.secrets[k], some.known_values[k]
            weight = scoring.weights[k] if scoring.weights else secret.weight
            model = scoring.tilts[k] if scoring.tilts else None
            tilt = np.zeros((len(some.values), 0)) if model is None else model.of(some)
            normed = release.start is None or secret.part < 0
            vote(
                scores.voters(secret.part), some.start, scoring.reach, secret.offsets, secret.code, weight, tilt,
                normed, truth.offsets, truth.code, known_values.offsets, known_values.code,
                np.zeros(secret.domain), found,
            )  # fmt: skip
            attribute[block_of_targets, k] = np.where(np.diff(truth.offsets) > 0, found, np.nan)
        return []

    run_queue(targets.blocks(records_at_a_time(release)), look, tick)
    return Success(identity, attribute)


def best_scores(release: PublishedRecords, scoring: Scoring, targets: Targets) -> FloatArray:
    """Score of the best row for each target: how well the release fits, shape (targets,).

    `scoring`: how the attacker looks at it.
    """
    release = scoring.view or release
    best = np.zeros(len(targets))
    parts = joined_parts(release)

    def look(block: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        if not flag[0]:
            some = targets.between(*block)
            each = Scores(release, scoring, parts, some).units.max(axis=1)
            best[slice(*block)] = np.maximum.reduceat(each, some.start[:-1])
        return []

    run_queue(targets.blocks(records_at_a_time(release)), look, tick)
    return best


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
