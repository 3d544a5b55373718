"""Publishing fingerprints so that at least k persons share each: Partition, top down.

Guarantee: k-anonymity of fingerprints (Gong, Luo, Yang, Ni & Li 2017, definition 3): every published set of
nodes is that of at least k persons, each item of a person lies below exactly one node of the set, and every
node of the set stands for at least one item of the person. Re-checked on the finished result.

Paper: He & Naughton 2009, local recoding of sets along a hierarchy. All persons start with the roots; a
bucket of persons with equal nodes is refined by expanding nodes into the children that cover each person's
items. Departure: each person chooses which node to expand (see `options` and `settle`), which loses less.
All buckets are refined at once, in rounds; rounds number about as many as the hierarchy has levels, plus the
rests of buckets taken up again. Cost: O(entries log entries) a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.set_valued.hashing import BoolArray, fixed_words, numbered, starts
from duckdb_anon.kernels.set_valued.options import Pairs, pairs_below, shared_options, unanimous
from duckdb_anon.kernels.set_valued.person_sets import Persons
from duckdb_anon.kernels.set_valued.settle import Options, settle
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError


@dataclass(frozen=True)
class Fingerprints:
    """Published fingerprints.

    Attributes:
        fingerprint_of_person: number of the fingerprint of each person, shape (persons,).
        offsets: fingerprint f has nodes[offsets[f]:offsets[f + 1]], ascending.
        nodes: forest nodes.
        node_of_entry: the node published for each entry of `Persons.items`.
    """

    fingerprint_of_person: IntArray
    offsets: IntArray
    nodes: CodeArray
    node_of_entry: CodeArray

    def __len__(self) -> int:
        return len(self.offsets) - 1


def publish_top_down(
    persons: Persons, k: int, function: str = "one_to_m_generalize", tick: Callable[[], None] | None = None
) -> Fingerprints:
    """Generalize fingerprints until at least k persons share each.

    Args:
        persons: fingerprints, none empty.
        k: least number of persons with equal published fingerprints, 1 or more.
        function: name used in messages.
        tick: called once a round, to poll for interrupts.

    Raises:
        RequirementError: there are fewer than k persons, or the finished result breaks the guarantee.
    """
    if 0 < len(persons) < k:
        raise RequirementError(
            f"{function}: k := {k} persons must share each fingerprint, but the table has {len(persons)} persons; "
            f"use k <= {len(persons)}"
        )
    state = _Descent(persons, k)
    while len(state.pairs):
        if tick is not None:
            tick()
        state.refine()
    return _checked(persons, state.node, k, function)


class _Descent:
    """The buckets while they are refined: published node of every entry, bucket of every person."""

    def __init__(self, persons: Persons, k: int) -> None:
        self.persons = persons
        self.k = k
        self.person_of_entry = persons.person_of_entry.astype(np.int32)
        self.node = persons.forest.ancestors[0, persons.items].astype(np.int32)
        self.bucket = _numbered(self.node, self.person_of_entry, persons.offsets)
        entries = np.arange(len(persons.items))
        self.pairs = pairs_below(persons, self.person_of_entry, self.node, entries)

    def refine(self) -> None:
        """Refine every bucket once; pairs of buckets that cannot be refined any more are dropped."""
        pairs, bucket = self.pairs, self.bucket
        option, count = shared_options(pairs, bucket, self.k)
        # Buckets only get smaller, so what too few persons share now, too few will share later.
        pairs, option = pairs.where(option >= 0), option[option >= 0]
        free = unanimous(pairs, option, count, bucket)
        waits = np.zeros(int(bucket.max()) + 1, dtype=bool)
        waits[bucket[pairs.person[free]]] = True
        chosen = free.copy()
        choosing = ~waits[bucket[pairs.person]]
        if choosing.any():
            chosen[choosing] = self._settled(pairs.where(choosing), option[choosing], count)
        split = np.zeros(int(bucket.max()) + 1, dtype=bool)
        split[bucket[pairs.person[chosen]]] = True
        goes_on = split[bucket[pairs.person]]
        moved = chosen & ~free
        bucket[pairs.person[moved]] = len(split) + option[moved]
        used = np.bincount(bucket) > 0
        bucket[:] = (np.cumsum(used) - 1)[bucket]
        self.pairs = pairs.where(goes_on & ~chosen).merged(self._expanded(pairs.where(chosen)))

    def _settled(self, pairs: Pairs, option: IntArray, count: int) -> BoolArray:
        """Let persons choose among their `pairs`; return which pairs are chosen."""
        choosing = np.zeros(int(self.bucket.max()) + 1, dtype=bool)
        choosing[self.bucket[pairs.person]] = True
        active = np.flatnonzero(choosing[self.bucket])
        picked = settle(Options(pairs.person, option, pairs.gain, count), self.bucket, active, self.k)
        chosen = np.zeros(len(pairs), dtype=bool)
        chosen[picked[picked >= 0]] = True
        return chosen

    def _expanded(self, pairs: Pairs) -> Pairs:
        """Publish the children in place of the nodes of `pairs`; return the new pairs."""
        entries = pairs.entries()
        self.node[entries] = self.persons.forest.child(self.node[entries], self.persons.items[entries])
        return pairs_below(self.persons, self.person_of_entry, self.node, entries)


def _numbered(node: CodeArray, person_of_entry: CodeArray, offsets: IntArray) -> IntArray:
    """Number the persons by the set of nodes that covers their items; equal sets, equal numbers."""
    if not len(node):
        return np.empty(0, dtype=np.int64)
    words = fixed_words(int(node.max()) + 1, 4)
    fresh = starts(person_of_entry, node)
    sums = np.add.reduceat(np.where(fresh, words[node], np.uint64(0)), offsets[:-1])
    return numbered(sums)


def _checked(persons: Persons, node: CodeArray, k: int, function: str) -> Fingerprints:
    """Collect the fingerprints and check the guarantee on the nodes themselves, not on their hashes."""
    person_of_entry, forest = persons.person_of_entry.astype(np.int32), persons.forest
    number = _numbered(node, person_of_entry, persons.offsets)
    fresh = starts(person_of_entry, node)
    published, owner = node[fresh], person_of_entry[fresh]
    count = np.bincount(owner, minlength=len(persons))
    start = np.cumsum(count) - count
    sharing = np.bincount(number)
    example = np.zeros(len(sharing), dtype=np.int64)
    example[number] = np.arange(len(persons))
    same = len(persons) == 0 or (
        np.array_equal(count, count[example][number])
        and np.array_equal(published, published[start[example][number][owner] + np.arange(len(owner)) - start[owner]])
    )
    covers = np.array_equal(forest.ancestors[forest.depth[node], persons.items], node)
    if not (same and covers and (sharing >= k).all()):
        raise RequirementError(f"{function}: the result failed its own check of k = {k}; nothing is released")
    width = count[example]
    offsets = np.r_[0, np.cumsum(width)].astype(np.int64)
    among = np.repeat(start[example] - offsets[:-1], width) + np.arange(offsets[-1])
    return Fingerprints(number, offsets, published[among], node)
