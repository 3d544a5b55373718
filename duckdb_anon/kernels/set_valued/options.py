"""Ways to publish a person more exactly that at least k persons of the same bucket share.

In a bucket all persons are published with the same nodes. Expanding a node v of a person replaces v by the
children of v that cover the person's items. Persons of a bucket who expand the same node into the same
children would again be published alike: that is one *option*, and worth nothing unless k persons share it.

Sets of children are compared by a word each and never enumerated: a node with a thousand children costs what
its persons' items cost. A pair of a person and a node is looked into once, when the node is first published
for the person. Cost: linear in the items below new pairs, and one sort of the pairs a round.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from duckdb_anon.kernels.set_valued.hashing import (
    BoolArray,
    Words,
    fixed_words,
    numbered_if_shared,
    scrambled,
    starts,
)
from duckdb_anon.kernels.set_valued.person_sets import Persons
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Pairs:
    """Persons and the nodes published for them that could be expanded, persons ascending.

    Attributes:
        person: person of each pair.
        word: hash of the node and of the children it would become.
        gain: NCP that expanding saves over the person's items, above 0.
        first: place in `Persons.items` of the first item below the node.
        width: number of items below it.
    """

    person: CodeArray
    word: Words
    gain: FloatArray
    first: IntArray
    width: CodeArray

    def __len__(self) -> int:
        return len(self.person)

    def where(self, kept: BoolArray) -> Pairs:
        """Return the pairs marked."""
        return Pairs(*(getattr(self, f.name)[kept] for f in fields(self)))

    def merged(self, other: Pairs) -> Pairs:
        """Return both, persons ascending, own pairs first."""
        places = np.searchsorted(self.person, other.person, side="right") + np.arange(len(other))
        mine = np.ones(len(self) + len(other), dtype=bool)
        mine[places] = False
        columns = []
        for name in (f.name for f in fields(self)):
            column = np.empty(len(mine), dtype=getattr(self, name).dtype)
            column[mine], column[places] = getattr(self, name), getattr(other, name)
            columns.append(column)
        return Pairs(*columns)

    def entries(self) -> IntArray:
        """Return the places in `Persons.items` below the pairs, pair after pair."""
        start = np.cumsum(self.width) - self.width
        places: IntArray = np.arange(int(self.width.sum())) + np.repeat(self.first - start, self.width)
        return places


def pairs_below(persons: Persons, person_of_entry: CodeArray, node: CodeArray, entries: IntArray) -> Pairs:
    """List the expandable pairs over `entries` (places in `Persons.items`, ascending).

    Args:
        persons: the fingerprints.
        person_of_entry: person of every entry.
        node: node now published for every entry.
        entries: all the entries below the nodes in question.
    """
    forest = persons.forest
    above = node[entries]
    inner = forest.leaf_count[above] > 1
    entries, above = entries[inner], above[inner]
    person = person_of_entry[entries]
    child = forest.child(above, persons.items[entries])
    fresh = starts(person, above)
    first = np.flatnonzero(fresh)
    words, node_words = fixed_words(len(forest.labels), 1), fixed_words(len(forest.labels), 3)
    width = np.diff(np.r_[first, len(entries)]).astype(np.int32)
    if not len(first):
        return Pairs(person, words[:0], forest.ncp[:0], entries, width)
    sets = np.add.reduceat(np.where(fresh | starts(child), words[child], np.uint64(0)), first)
    gain = np.add.reduceat(forest.ncp[above] - forest.ncp[child], first)
    return Pairs(person[first], scrambled(sets + node_words[above[first]]), gain, entries[first], width)


def shared_options(pairs: Pairs, bucket: IntArray, k: int) -> tuple[IntArray, int]:
    """Number the options that at least k persons of a bucket share.

    Args:
        pairs: pairs of a person and a node she may refine.
        bucket: bucket of each person.
        k: least number of persons.

    Returns:
        Option of each pair, -1 where too few share it, and the number of options.
    """
    buckets = fixed_words(int(bucket.max(initial=0)) + 1, 2)
    return numbered_if_shared(pairs.word + buckets[bucket[pairs.person]], k)


def unanimous(pairs: Pairs, option: IntArray, options: int, bucket: IntArray) -> BoolArray:
    """Return the pairs whose option is that of every person of the bucket: expanding them costs nothing.

    Args:
        pairs: pairs of a person and a node she may refine.
        option: option of each pair.
        options: number of options.
        bucket: bucket of each person.
    """
    every: BoolArray = np.bincount(option, minlength=options)[option] == np.bincount(bucket)[bucket[pairs.person]]
    return every
