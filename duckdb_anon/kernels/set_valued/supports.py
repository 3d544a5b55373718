"""How many records contain each set of at most m published nodes.

Sets of nodes are grown one node at a time within each record and compared by a word each; numbers are counted
once per record. Cost: sum over records of (nodes choose m), so m is 1 to 3 in practice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.set_valued.hashing import Words, fixed_words, numbered, starts
from duckdb_anon.model.coded_table import CodeArray, IntArray

MOST_SUBSETS = 200_000_000


@dataclass(frozen=True)
class Lists:
    """Distinct nodes of each record: nodes[offsets[i]:offsets[i + 1]], ascending."""

    offsets: IntArray
    nodes: CodeArray

    def record(self) -> IntArray:
        """Return the record of each entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def lists_of(node_of_entry: CodeArray, record_of_entry: IntArray, records: int) -> Lists:
    """Return the distinct nodes of each record; entries of a record stand together, nodes ascending.

    Args:
        node_of_entry: node of each entry.
        record_of_entry: record of each entry.
        records: number of records.
    """
    fresh = starts(record_of_entry, node_of_entry)
    width = np.bincount(record_of_entry[fresh], minlength=records)
    return Lists(np.r_[0, np.cumsum(width)].astype(np.int64), node_of_entry[fresh])


def subsets(lists: Lists, size: int) -> IntArray:
    """Return all subsets of `size` nodes of each record, shape (subsets, size), nodes ascending in each."""
    end = np.repeat(lists.offsets[1:], np.diff(lists.offsets))
    chosen = np.arange(len(lists.nodes))[:, None]
    for _ in range(size - 1):
        last = chosen[:, -1]
        width = end[last] - last - 1
        parent = np.repeat(np.arange(len(last)), width)
        step = np.arange(len(parent)) - np.repeat(np.cumsum(width) - width, width)
        chosen = np.column_stack([chosen[parent], last[parent] + 1 + step])
    result: IntArray = lists.nodes[chosen].astype(np.int64)
    return result


def count_subsets(lists: Lists, size: int) -> int:
    """Return how many subsets of `size` nodes the records have."""
    width = np.diff(lists.offsets).astype(np.float64)
    total = np.ones(len(width))
    for step in range(size):
        total *= np.maximum(width - step, 0) / (step + 1)
    return round(float(total.sum()))


def supports(sets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of `sets`, shape (distinct, size), and how often each occurs."""
    if not len(sets):
        return sets, np.empty(0, dtype=np.int64)
    words: Words = np.zeros(len(sets), dtype=np.uint64)
    for place in range(sets.shape[1]):
        words += fixed_words(int(sets.max()) + 1, 10 + place)[sets[:, place]]
    number = numbered(words)
    first = np.empty(int(number.max()) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return sets[first], np.bincount(number)
