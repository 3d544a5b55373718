"""Counts of a workload over a randomized release, learnt from each query's columns together where that is better.

The rule is `duckdb_anon.rewrite.learnt_counts`' own: a count whose standard error is above half of what the columns
together tell gives way to it. Cost: combinations of values a set of columns, and again a query.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms
from duckdb_anon.kernels.randomized_response.joint_counts import joint_counts
from duckdb_anon.measures.queries.workload import Workload
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.learnt import MOST_COLUMNS, NOISE
from duckdb_anon.model.release_table import ReadColumn, ReadTable


def with_learnt_counts(workload: Workload, table: ReadTable, inverted: FloatArray) -> FloatArray:
    """Let noisy answers give way to learnt ones."""
    if table.contents.weights or not any(column.channel for column in table.columns.values()):
        return inverted
    found = inverted.copy()
    sets, of_query = np.unique(workload.used, axis=0, return_inverse=True)
    for number, used in enumerate(sets):
        attributes = np.flatnonzero(used)
        columns = [table.columns[workload.attributes[attribute]] for attribute in attributes]
        plain = all(column.plain and not column.slice for column in columns)
        several = sum(column.channel is not None for column in columns) > 1
        if not plain or not several or len(columns) > MOST_COLUMNS:
            continue
        queries = np.flatnonzero(of_query.ravel() == number)
        learnt = _Joint.of(columns)
        if learnt is not None:
            for query in queries:
                requested = [workload.matches[attribute][query] for attribute in attributes]
                found[query] = learnt.answer(requested, inverted[query])
    return found


class _Joint:
    """The columns of a set of queries, released and learnt."""

    def __init__(
        self, domains: list[CodeArray], channels: list[RetentionChannel], released: FloatArray, counts: FloatArray
    ) -> None:
        self.domains, self.channels, self.released, self.counts = domains, channels, released, counts

    @classmethod
    def of(cls, columns: list[ReadColumn]) -> _Joint | None:
        """Learn; None where inversion is better, or where a value is in no domain."""
        domains = [column.channel.domain if column.channel else np.unique(column.value_codes()) for column in columns]
        chances = [column.channel.p if column.channel else 1.0 for column in columns]
        if any(not len(domain) for domain in domains):
            return None
        channels = [RetentionChannel(len(domain), p) for domain, p in zip(domains, chances, strict=True)]
        places = [_places(node, domain) for node, domain in zip(columns, domains, strict=True)]
        if any((position < 0).any() for position in places):
            return None
        cells, rows = np.unique(np.stack(places, axis=1), axis=0, return_counts=True)
        counts = joint_counts(cells, rows.astype(np.float64), channels)
        if counts is None:
            return None
        released = np.zeros(counts.shape)
        released[tuple(cells.T)] = rows
        return cls(domains, channels, released, counts)

    def answer(self, requested: list[np.ndarray], inverted: float) -> float:
        """The answer of one query."""
        matches = [node[domain].astype(np.float64) for node, domain in zip(requested, self.domains, strict=True)]
        weights = [_inverse(match, channel) for match, channel in zip(matches, self.channels, strict=True)]
        squares = _total(self.released, [np.square(weight) for weight in weights])
        error = np.sqrt(max(squares - inverted, 0.0))
        learnt = _total(self.counts, matches)
        return max(learnt, 0.0) if error > NOISE * max(learnt, 1.0) else float(inverted)


def _places(column: ReadColumn, domain: CodeArray) -> IntArray:
    """Place of each row's code in a domain, -1 where it is in none."""
    position = np.full(column.domain.size, -1, dtype=np.int64)
    position[domain] = np.arange(len(domain))
    return position[column.value_codes()]


def _inverse(match: FloatArray, channel: RetentionChannel) -> FloatArray:
    own_shares, other = inverse_terms(channel)
    return np.asarray(own_shares * match + other * match.sum(), dtype=np.float64)


def _total(table: FloatArray, factors: list[FloatArray]) -> float:
    """Sum over a table of its cells times one factor an axis."""
    return float(reduce(lambda left, factor: np.tensordot(factor, left, axes=(0, 0)), factors, table))
