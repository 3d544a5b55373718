"""Choosing among the valid nodes: the one that loses least.

Loss is the normalized certainty penalty (Xu et al. 2006), mean over rows and attributes, a suppressed row
counting as wholly generalized (1). What a node would lose without suppression is a sum over attributes and never
above that, so nodes are tried in its order until none can be better. Losses within 1e-12 are ties, broken
by the smaller height, then by the smaller level of the first attribute. Cost: one frequency set a node tried.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from duckdb_anon.kernels.lattice.frequency import Counter, FrequencySet, Levels
from duckdb_anon.kernels.partition import Requirement
from duckdb_anon.model.coded_table import FloatArray, IntArray


def failing_rows(found: FrequencySet, table_counts: IntArray, requirement: Requirement) -> IntArray:
    """Rows of each group of a frequency set, 0 where the group satisfies the requirement.

    Args:
        found: groups of a generalization.
        table_counts: rows of the whole table with each sensitive code.
        requirement: what every group must meet.
    """
    groups = found.groups(table_counts)
    rows: IntArray = np.where(requirement.holds(groups), 0, found.sizes)
    return rows


def cheapest(counter: Counter, nodes: Iterable[Levels], requirement: Requirement, suppressing: bool) -> Levels:
    """Return the node of least loss.

    Args:
        counter: the table, counted.
        nodes: valid nodes, one or more.
        requirement: what decides which rows would be suppressed.
        suppressing: whether rows may be; if not, every group of every node satisfies the requirement.
    """
    loss_of_level = _loss_of_level(counter)
    ranked = sorted(
        (round(float(np.mean([loss_of_level[i][level] for i, level in enumerate(node)])), 12), sum(node), node)
        for node in nodes
    )
    if not suppressing:
        return ranked[0][2]
    best = (np.inf, 0, ranked[0][2])
    for least, height, node in ranked:
        if least > best[0]:
            break
        best = min(best, (_loss(counter, counter.at(counter.every, node), node, requirement), height, node))
    return best[2]


def _loss_of_level(counter: Counter) -> list[FloatArray]:
    """Mean NCP over all rows of each attribute at each level."""
    base, result = counter.base(counter.every), []
    for ladder, place in zip(counter.ladders, base.places, strict=True):
        rows = np.bincount(place, weights=base.rows)
        means = [rows @ ladder.ncp(level)[ladder.up(0, level)] for level in range(ladder.height + 1)]
        result.append(np.array(means) / rows.sum())
    return result


def _loss(counter: Counter, found: FrequencySet, node: Levels, requirement: Requirement) -> float:
    """Mean NCP with suppressed rows counted as 1, rounded so that ties are ties."""
    sizes = found.sizes
    failing = failing_rows(found, counter.table_counts, requirement)
    parts = [
        ladder.ncp(level)[place[found.starts]]
        for ladder, level, place in zip(counter.ladders, node, found.places, strict=True)
    ]
    loss = np.where(failing > 0, 1.0, np.mean(parts, axis=0))
    return round(float(loss @ sizes) / float(sizes.sum()), 12)
