"""Apriori anonymization: one recoding of all records so that no small set of items singles out a few.

Guarantee, k^m-anonymity: every set of at most m published nodes that a record contains is contained in at
least k records; re-checked on the finished result. The recoding is global: a node of the cut replaces all
items below it, in every record.

Paper: Terrovitis, Mamoulis & Kalnis (2008), section 4. Departure: the rarest violating set is repaired
first, by the cheapest way to raise its nodes, instead of in the order of a count tree; the guarantee is the
same, the result is not. Cost: one count of the subsets per repair, at most as many repairs as inner nodes;
the subsets are the sum over records of (nodes choose m), so m is 1 to 3 in practice.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.kernels.set_valued.person_sets import BoolArray, Lists, Persons, lists_of
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

MOST_SUBSETS = 200_000_000


def publish_globally(persons: Persons, k: int, m: int, function: str = "rmr") -> CodeArray:
    """Return the node published for every entry of `persons.items`.

    `k`: records that contain each set, at least; `m`: size of the sets an adversary may know.

    Raises:
        RequirementError: there are fewer than k records, or too many subsets to count.
    """
    if len(persons) < k:
        raise RequirementError(f"{function}: {len(persons)} persons cannot share a set {k} times; use a smaller k")
    cut = _Cut(persons)
    for size in range(1, m + 1):
        while (rare := cut.rarest(size, k, function)) is not None:
            tick()
            cut.raise_nodes(cut.cheapest(rare, k))
    for size in range(1, m + 1):
        if cut.rarest(size, k, function) is not None:
            raise RequirementError(f"{function}: the result failed its own check of k^m-anonymity; nothing is released")
    return cut.node


class _Cut:
    """The cut while it is raised: the node of every entry, and which records lie below a node."""

    def __init__(self, persons: Persons) -> None:
        self.forest = persons.forest
        self.records = len(persons)
        self.record = persons.person_of_entry
        self.path = self.forest.ancestors[:, persons.items].astype(np.int32)
        self.node: CodeArray = self.path[-1].copy()
        self._below: dict[int, BoolArray] = {}

    def rarest(self, size: int, k: int, function: str) -> IntArray | None:
        """Return the rarest set of `size` nodes that fewer than k records contain, ties by node; else None."""
        lists = lists_of(self.node, self.record, self.records)
        count = count_subsets(lists, size)
        if count > MOST_SUBSETS:
            raise RequirementError(
                f"{function}: the records have {count} sets of {size} items, more than the {MOST_SUBSETS} that can be "
                "counted; use a smaller m"
            )
        sets, support = supports(subsets(lists, size))
        rare = np.flatnonzero(support < k)
        if not len(rare):
            return None
        order = np.lexsort((*sets[rare].T[::-1], support[rare]))
        rarest: IntArray = sets[rare[order[0]]]
        return rarest

    def cheapest(self, rare: IntArray, k: int) -> frozenset[int]:
        """Return the nodes that replace `rare` at least cost so that k records contain them all."""
        best: tuple[float, tuple[int, ...]] | None = None
        for nodes in product(*(self._upwards(int(node)) for node in rare)):
            image = self._highest(frozenset(nodes))
            if self._containing(image).sum() < k:
                continue
            cost = (sum(self._added_loss(node) for node in sorted(image)), tuple(sorted(image)))
            best = cost if best is None or cost < best else best
        if best is None:
            raise RequirementError("rmr: fewer than k records; nothing is released")
        return frozenset(best[1])

    def raise_nodes(self, nodes: frozenset[int]) -> None:
        """Put `nodes` into the cut in place of everything below them."""
        for node in nodes:
            self.node[self._entries(node)] = node

    def _entries(self, node: int) -> BoolArray:
        mask: BoolArray = self.path[self.forest.depth[node]] == node
        return mask

    def _upwards(self, node: int) -> list[int]:
        entry = int(np.flatnonzero(self._entries(node))[0])
        return [int(above) for above in self.path[: self.forest.depth[node] + 1, entry]][::-1]

    def _highest(self, nodes: frozenset[int]) -> frozenset[int]:
        """Drop nodes below others."""
        return frozenset(v for v in nodes if not any(u != v and u in self._upwards(v) for u in nodes))

    def _containing(self, nodes: frozenset[int]) -> BoolArray:
        """Return the records with an item below every node."""
        inside = np.ones(self.records, dtype=bool)
        for node in nodes:
            if node not in self._below:
                below = np.zeros(self.records, dtype=bool)
                below[self.record[self._entries(node)]] = True
                self._below[node] = below
            inside &= self._below[node]
        return inside

    def _added_loss(self, node: int) -> float:
        """NCP added over all entries by raising everything below `node` to it."""
        entries = self._entries(node)
        return float((self.forest.ncp[node] - self.forest.ncp[self.node[entries]]).sum())


def subsets(lists: Lists, size: int) -> IntArray:
    """Return all subsets of `size` nodes of each record, shape (subsets, size), nodes ascending in each."""
    end = np.repeat(lists.offsets[1:], np.diff(lists.offsets))
    chosen = np.arange(len(lists.nodes))[:, None]
    for _ in range(size - 1):
        last = chosen[:, -1]
        width = end[last] - last - 1
        chosen = np.column_stack([np.repeat(chosen, width, axis=0), ranges(last + 1, width)])
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
    keys = keys_of(list(sets.T))
    return sets[keys.first], np.bincount(keys.of_row)
