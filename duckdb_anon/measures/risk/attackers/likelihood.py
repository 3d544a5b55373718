"""Record linkage by likelihood ratio: log P(published | value) / P(published), summed over what is known.

Source: Fellegi and Sunter (1969), with the channel taken from what is public:
* values moved by a method: the same call is run on the release, and transitions are counted (`learned`);
* randomized response: the published channel;
* a box, set or node: 1 inside over the number of values it covers, 0 outside;
* permuted columns: the mean over the cells of the bucket;
* a list of nodes, where a value of hers is known: the nodes above it, each over the values below it.
Nothing is learned from the original.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.risk.attackers.learned import learned
from duckdb_anon.measures.risk.attacks import Attacker, CannotAsk
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.scores import ColumnScore, Scoring
from duckdb_anon.model.coded_table import CodeArray, FloatArray

OUTSIDE = -40.0
"""Log-likelihood of what cannot be; far below every sum of log ratios, yet finite, so that the fewest count."""
REACH = 20.0
"""Rows that score this far below the best have e^-20 of its vote, and are left out."""


def scoring(release: PublishedRecords) -> Scoring:
    """Score the log-likelihood ratio of each row.

    Raises:
        CannotAsk: rows are plain values and nobody said what call made them.
    """
    randomized = any(cells.column.channel is not None for cells in release.columns)
    if release.plain and release.persons and not randomized and release.replay is None:
        raise CannotAsk("nobody knows what made these rows; say call := 'muco(0.2)' or whatever call made them")
    return Scoring([_column(release, a) for a in range(len(release.columns))], share=True, reach=REACH)


def _column(release: PublishedRecords, a: int) -> ColumnScore:
    cells = release.columns[a]
    if cells.column.channel is not None:
        return partial(_channel, cells)
    if release.replay is not None:
        return learned(cells, release.replay.before[a], release.replay.after[a])
    if cells.column.lists_nodes:
        return partial(_listed, cells)
    return partial(_inside, cells, -np.log(np.maximum(cells.sizes, 1)))


def _inside(cells: PublishedCells, narrow: FloatArray, values: CodeArray) -> FloatArray:
    scores: FloatArray = np.where(cells.covered(values), narrow, OUTSIDE)
    return scores


def _listed(cells: PublishedCells, values: CodeArray) -> FloatArray:
    chance = cells.chance(values)
    scores: FloatArray = np.log(chance, out=np.full(chance.shape, OUTSIDE), where=chance > 0)
    return scores


def _channel(cells: PublishedCells, values: CodeArray) -> FloatArray:
    """Log P(y | x) / P(y) of randomized response, P(y) from the release."""
    channel = cells.column.channel
    if channel is None:
        raise TypeError("no channel")
    other = (1.0 - channel.p) / max(len(channel.domain) - 1, 1)
    given = np.where(cells.covered(values), channel.p, other)
    with np.errstate(divide="ignore"):
        ratio = np.log(given) - np.log(cells.weights / cells.weights.sum())
    scores: FloatArray = np.maximum(ratio, OUTSIDE)
    return scores


LIKELIHOOD = Attacker("likelihood", "rows that the release's own call would most likely make of her", scoring)
