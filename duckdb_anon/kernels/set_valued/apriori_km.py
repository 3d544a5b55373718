"""Apriori anonymization: one recoding of all records so that no small set of items singles out a few.

Guarantee, k^m-anonymity: every set of at most m published nodes that a record contains is contained in at
least k records; re-checked on the finished result. The recoding is global: a node of the cut replaces all
items below it, in every record.

Paper: Terrovitis, Mamoulis & Kalnis (2008), section 4. Departure: the rarest violating set is repaired
first, by the cheapest way to raise its nodes, instead of in the order of a count tree; the guarantee is the
same, the result is not. Cost: one count of the subsets per repair, at most as many repairs as inner nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from duckdb_anon.kernels.set_valued.hashing import BoolArray
from duckdb_anon.kernels.set_valued.person_sets import Persons
from duckdb_anon.kernels.set_valued.supports import MOST_SUBSETS, count_subsets, lists_of, subsets, supports
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError


def publish_globally(
    persons: Persons, k: int, m: int, function: str = "rmr", tick: Callable[[], None] | None = None
) -> CodeArray:
    """Return the node published for every entry of `persons.items`.

    Args:
        persons: records, none empty, at least k of them.
        k: records that contain each set, at least.
        m: size of the sets an attacker may know.
        function: name used in messages.
        tick: called once a repair, to poll for interrupts.

    Raises:
        RequirementError: there are fewer than k records, or too many subsets to count.
    """
    if len(persons) < k:
        raise RequirementError(f"{function}: {len(persons)} persons cannot share a set {k} times; use a smaller k")
    cut = _Cut(persons)
    for size in range(1, m + 1):
        while True:
            if tick is not None:
                tick()
            rare = cut.rarest(size, k, function)
            if rare is None:
                break
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
        found: IntArray = sets[rare[order[0]]]
        return found

    def cheapest(self, rare: IntArray, k: int) -> frozenset[int]:
        """Return the nodes that replace `rare` at least cost so that k records contain them all."""
        best: tuple[float, tuple[int, ...]] | None = None
        for nodes in product(*(self._upwards(int(v)) for v in rare)):
            image = self._highest(frozenset(nodes))
            if self._contain(image).sum() < k:
                continue
            cost = (sum(self._added(v) for v in sorted(image)), tuple(sorted(image)))
            best = cost if best is None or cost < best else best
        if best is None:
            raise RequirementError("rmr: fewer than k records; nothing is released")
        return frozenset(best[1])

    def raise_nodes(self, nodes: frozenset[int]) -> None:
        """Put `nodes` into the cut in place of everything below them."""
        for v in nodes:
            self.node[self._entries(v)] = v

    def _entries(self, node: int) -> BoolArray:
        mask: BoolArray = self.path[self.forest.depth[node]] == node
        return mask

    def _upwards(self, node: int) -> list[int]:
        entry = int(np.flatnonzero(self._entries(node))[0])
        return [int(v) for v in self.path[: self.forest.depth[node] + 1, entry]][::-1]

    def _highest(self, nodes: frozenset[int]) -> frozenset[int]:
        """Drop nodes below others."""
        return frozenset(v for v in nodes if not any(u != v and u in self._upwards(v) for u in nodes))

    def _contain(self, nodes: frozenset[int]) -> BoolArray:
        inside = np.ones(self.records, dtype=bool)
        for v in nodes:
            if v not in self._below:
                below = np.zeros(self.records, dtype=bool)
                below[self.record[self._entries(v)]] = True
                self._below[v] = below
            inside &= self._below[v]
        return inside

    def _added(self, node: int) -> float:
        """NCP added over all entries by raising everything below `node` to it."""
        entries = self._entries(node)
        return float((self.forest.ncp[node] - self.forest.ncp[self.node[entries]]).sum())
