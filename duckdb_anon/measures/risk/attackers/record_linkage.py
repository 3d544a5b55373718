"""Attackers who look for a person's row: by equality, by distance, and by likelihood.

* exact: a row matches when everything known is equal, or inside its box, set or bucket; where nothing matches it picks
  any row (Li et al. 2020, arXiv 2008.10771, section 5.1).
* nearest: minus the sum of the distances, 0 inside a box, else to its nearer end (Pagliuca and Seri 1999;
  Domingo-Ferrer and Torra 2001; distances as Gower 1971).
* likelihood: log P(published | value) / P(published), summed over what is known (Fellegi and Sunter 1969). The channel
  is the published one of randomized response; for values that a method moves it is counted where the same call is run
  on the release, and where the call is unknown, between near records of a bootstrap (`bootstrapped`); a box, set
  or node is 1 inside over the values that it covers; of a list of nodes, those above a known value, each over the
  values below it. Nothing is learned from the original.
* likelihood_excluding: the same, without rows that equal the person in more columns than the method's promise (muco's
  min_changed) allows: no more than one row in a thousand keeps as many where the call is run on the release.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from duckdb_anon.kernels.cells.cells import Randomization, Ranges
from duckdb_anon.kernels.cells.line import quantile_bins
from duckdb_anon.measures.risk.attacks import Attacker, ColumnScore, NotApplicable, Scoring
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, Replay, once_per_release
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray

OUTSIDE = -40.0
"""Log-likelihood of what cannot be; far below every sum of log ratios, yet finite, so that the fewest count."""
REACH = 20.0
"""Rows that score this far below the best have e^-20 of its vote, and are left out."""
RARE = 0.001
SMOOTHING = 0.02
"""Added to every transition that is counted."""
BINS = 100
MOST_NAMES = 2000
"""Of more names than that a transition counts only whether they stay."""


def exact(release: PublishedRecords) -> Scoring:
    """Score 0 for a match, -1 for everything else."""
    return Scoring([partial(_inside, cells, 0.0, -1.0) for cells in release.columns], floor=-1.0)


def nearest(release: PublishedRecords) -> Scoring:
    """Score minus the sum of distances."""

    def closeness(cells: Ranges, values: CodeArray) -> FloatArray:
        return -cells.distance(values)

    return Scoring([partial(closeness, cells) for cells in release.columns])


@once_per_release
def likelihood(release: PublishedRecords) -> Scoring:
    """Score the log-likelihood ratio of each row."""
    if release.plain and release.persons and not release.randomized and release.replay is None:
        raise NotApplicable("The method that produced this release is unknown. Pass it as call := 'muco(0.2)'")
    columns = [_ratio(release, a) for a in range(len(release.columns))]
    return Scoring(columns, share=True, reach=REACH, channel=release.channel)


def likelihood_excluding(release: PublishedRecords) -> Scoring:
    """As likelihood, and the largest number of columns in which a row may equal its person."""
    if release.replay is None or not release.replay.of_call:
        raise NotApplicable(
            "This attacker needs a release of plain values and its call. Pass it as call := 'muco(0.2)'"
        )
    most, scored = most_equal(release.replay), likelihood(release)
    return replace(scored, most_equal=most) if most < len(release.columns) else scored


def most_equal(replay: Replay) -> int:
    """Largest number of columns that more than one row in a thousand keeps."""
    unchanged = (replay.before == replay.after).sum(axis=0)
    share = np.bincount(unchanged, minlength=len(replay.before) + 1) / max(len(unchanged), 1)
    return int(np.flatnonzero(np.cumsum(share[::-1])[::-1] > RARE).max(initial=0))


def _inside(cells: Ranges, inside: float | FloatArray, outside: float, values: CodeArray) -> FloatArray:
    return np.where(cells.covers(values), inside, outside)


def _ratio(release: PublishedRecords, a: int) -> ColumnScore:
    """Log-likelihood ratios of the cells of a column."""
    cells = release.columns[a]
    if cells.channel is not None:
        return _of_channel(cells, cells.channel)
    if release.replay is not None:
        return learned(cells, release.replay.before[a], release.replay.after[a])
    if cells.lists_nodes:
        return partial(_listed, cells)
    return partial(_inside, cells, -np.log(np.maximum(cells.sizes, 1)), OUTSIDE)


def _listed(cells: Ranges, values: CodeArray) -> FloatArray:
    chance = cells.chance(values)
    scores: FloatArray = np.log(chance, out=np.full(chance.shape, OUTSIDE), where=chance > 0)
    return scores


def _of_channel(cells: Ranges, channel: Randomization) -> ColumnScore:
    """Log P(y | x) / P(y) of randomized response, P(y) from the release."""
    other = (1.0 - channel.p) / max(len(channel.domain) - 1, 1)
    marginal = cells.weights / cells.weights.sum()

    def score(values: CodeArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            ratio = np.log(np.where(cells.covers(values), channel.p, other)) - np.log(marginal)
        return np.asarray(np.maximum(ratio, OUTSIDE))

    return score


def learned(cells: Ranges, before: CodeArray, after: CodeArray) -> ColumnScore:
    """Log-likelihood ratios of a column's cells, plain values, from pairs of codes before and after the call."""
    # between quantile bins of many ordered values, that a value stays exactly the same is counted separately
    bin_of_code, bins = _bins(cells.domain, before)
    left, right = bin_of_code[before], bin_of_code[after]
    single = bins == cells.domain.size
    stays = np.zeros(len(before), dtype=bool) if single else before == after
    moved = np.bincount(left[~stays] * bins + right[~stays], minlength=bins * bins).reshape(bins, bins) + SMOOTHING
    stayed = np.zeros(bins) if single else np.bincount(left[stays], minlength=bins) + SMOOTHING
    total = moved.sum(axis=1) + stayed
    marginal = np.bincount(right, minlength=bins) + SMOOTHING * bins
    marginal = marginal / marginal.sum()
    ratio = np.log(moved / total[:, None]) - np.log(marginal)
    # P(y) of one value, not of its bin: the share of the released rows that hold it
    share = np.bincount(after, minlength=cells.domain.size) + SMOOTHING

    def score(values: CodeArray) -> FloatArray:
        scores: FloatArray = ratio[bin_of_code[values]].take(bin_of_code[cells.value_codes()], axis=1)
        if not single:
            cell = cell_of_code[values]
            record = np.flatnonzero(cell >= 0)
            scores[record, cell[record]] = stay[values[record]]
        return scores

    cell_of_code = np.full(cells.domain.size, -1, dtype=np.int64)
    cell_of_code[cells.value_codes()] = np.arange(cells.number)
    stay = np.zeros(0) if single else np.log(stayed / total)[bin_of_code] - np.log(share / share.sum())
    return score


def _bins(domain: Attribute, codes: CodeArray) -> tuple[IntArray, int]:
    """Bin of each code, and how many there are."""
    size, special = domain.size, domain.special_from
    if domain.kind == "ordered" and size > BINS:
        bins = quantile_bins(np.bincount(codes, minlength=size)[:special], BINS, len(codes))
        number = np.concatenate([bins, bins.max(initial=-1) + 1 + np.arange(size - special)])
        return number, int(number.max()) + 1
    if size > MOST_NAMES:
        return np.zeros(size, dtype=np.int64), 1
    return np.arange(size, dtype=np.int64), size


EXACT = Attacker("exact", "records that equal or cover all known values", exact, order=1)
NEAREST = Attacker("nearest", "records nearest to the known values", nearest, order=2)
LIKELIHOOD = Attacker("likelihood", "records that the method most likely makes of the target's record", likelihood,
                      order=3)  # fmt: skip
LIKELIHOOD_EXCLUDING = Attacker(
    "likelihood_excluding",
    "likelihood, without records that the guarantee of the method rules out",
    likelihood_excluding,
    order=4,
)
