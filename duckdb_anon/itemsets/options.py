"""Ways to publish a person more exactly that at least k persons of the same bucket share.

In a bucket all persons are published with the same nodes. Expanding a node v of a person replaces v by the
children of v that cover the person's items. Persons of a bucket who expand the same node into the same
children would again be published alike: that is one *option*, and worth nothing unless k persons share it.

Sets of children are compared by a word each and never enumerated: a node with a thousand children costs what
its persons' items cost. Cost: one sort of the (person, node) pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.itemsets.hashing import fixed_words, numbered_if_shared, scrambled, starts
from duckdb_anon.itemsets.persons import Persons
from duckdb_anon.table import CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Options:
    """Pairs of a person and an option, persons ascending.

    Attributes:
        person: person of each pair.
        option: number of the option.
        gain: NCP the option saves over the person's items, above 0.
        count: how many options there are.
        entries: places in `Persons.items` that the pairs expand, pair after pair.
        children: child covering each of `entries`.
        first: start of each pair in `entries`, with the end appended.
    """

    person: IntArray
    option: IntArray
    gain: FloatArray
    count: int
    entries: IntArray
    children: CodeArray
    first: IntArray


def options_of(
    persons: Persons, person_of_entry: IntArray, node: CodeArray, entries: IntArray, bucket: IntArray, k: int
) -> Options:
    """List the options that at least k persons of a bucket share.

    Args:
        persons: the fingerprints.
        person_of_entry: person of every entry.
        node: node now published for every entry.
        entries: the entries of the persons in question, ascending.
        bucket: bucket of every person.
        k: persons who must share an option.
    """
    forest = persons.forest
    entries = entries[forest.leaf_count[node[entries]] > 1]
    above, person = node[entries], person_of_entry[entries]
    child = forest.child(above, persons.items[entries])
    fresh = starts(person, above)
    first = np.flatnonzero(fresh)
    if not len(first):
        return Options(first, first, first.astype(float), 0, entries, child, np.zeros(1, dtype=np.int64))
    nodes = len(forest.labels)
    sets = np.add.reduceat(np.where(fresh | starts(child), fixed_words(nodes, 1)[child], np.uint64(0)), first)
    owner = person[first]
    buckets = fixed_words(int(bucket.max()) + 1, 2)[bucket[owner]]
    number, count = numbered_if_shared(scrambled(sets + fixed_words(nodes, 3)[above[first]]) + buckets, k)
    gain = np.add.reduceat(forest.ncp[above] - forest.ncp[child], first)
    kept = number >= 0
    width = np.diff(np.r_[first, len(entries)])
    below = np.repeat(kept, width)
    bounds = np.r_[0, np.cumsum(width[kept])].astype(np.int64)
    return Options(owner[kept], number[kept], gain[kept], count, entries[below], child[below], bounds)
