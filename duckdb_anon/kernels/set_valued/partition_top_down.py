"""Publishing fingerprints so that at least k persons share each: Partition, top down.

Guarantee: k-anonymity of fingerprints (Gong, Luo, Yang, Ni & Li 2017, definition 3): every published set of nodes is
that of at least k persons, each item of a person lies below exactly one node of the set, and every node of the set
stands for at least one item of the person. Re-checked on the finished result.

Paper: He & Naughton 2009, local recoding of sets along a hierarchy. All persons start with the roots; a bucket of
persons with equal nodes is refined by expanding nodes into the children that cover each person's items. Departure: each
person chooses which node to expand, instead of one node for the whole bucket, which loses less. Persons who expand the
same node into the same children share an *option*; options with too few persons are closed, the smallest first, and
where fewer than k persons of a bucket stay behind, others are called back (the balancing of the paper). Child sets
are compared by 64-bit words and never enumerated. All buckets are refined at once, in about as many rounds as the
hierarchy has levels. Cost: O(entries log entries) per round.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.sort_count import ranges, rank_in_run
from duckdb_anon.kernels.row_keys import keys_of_lists
from duckdb_anon.kernels.set_valued.person_sets import BoolArray, Persons, changes, lists_of
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

Words = NDArray[np.uint64]
STEPS = 24
"""Steps in which the number of persons an open option must have rises to k."""


@dataclass(frozen=True)
class Fingerprints:
    """Published fingerprints."""

    fingerprint_of_person: IntArray  # number of the fingerprint of each person, shape (persons,)
    offsets: IntArray  # fingerprint f has nodes[offsets[f]:offsets[f + 1]], ascending
    nodes: CodeArray  # forest nodes
    node_of_entry: CodeArray  # the node published for each entry of `Persons.items`

    def __len__(self) -> int:
        return len(self.offsets) - 1


def publish_top_down(persons: Persons, k: int, function: str = "one_to_m_generalize") -> Fingerprints:
    """Generalize fingerprints until at least k persons share each.

    Args:
        k: least number of persons with equal published fingerprints, 1 or more.

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
        tick()
        state.refine()
    return _checked(persons, state.node, k, function)


def _checked(persons: Persons, node: CodeArray, k: int, function: str) -> Fingerprints:
    """Collect the fingerprints and check the guarantee on the nodes themselves, not on their hashes."""
    forest = persons.forest
    lists = lists_of(node, persons.person_of_entry, len(persons))
    keys = keys_of_lists(lists.offsets, lists.nodes).as_they_come()
    covers = np.array_equal(forest.ancestors[forest.depth[node], persons.items], node)
    if not (covers and (np.bincount(keys.of_row) >= k).all()):
        raise RequirementError(f"{function}: the result failed its own check of k = {k}; nothing is released")
    width = np.diff(lists.offsets)[keys.first]
    offsets = np.r_[0, np.cumsum(width)].astype(np.int64)
    return Fingerprints(keys.of_row, offsets, lists.nodes[ranges(lists.offsets[keys.first], width)], node)


@dataclass(frozen=True)
class Pairs:
    """Persons and the nodes published for them that could be expanded, persons ascending."""

    person: CodeArray  # person of each pair
    word: Words  # hash of the node and of the children it would become
    gain: FloatArray  # NCP that expanding saves over the person's items, above 0
    first: IntArray  # index in `Persons.items` of the first item below the node
    width: CodeArray  # number of items below it

    def __len__(self) -> int:
        return len(self.person)

    def where(self, mask: BoolArray) -> Pairs:
        """Return the pairs marked."""
        return Pairs(*(getattr(self, field.name)[mask] for field in fields(self)))

    def merged(self, other: Pairs) -> Pairs:
        """Return both, persons ascending, pairs of `self` first."""
        inserted = np.searchsorted(self.person, other.person, side="right") + np.arange(len(other))
        from_self = np.ones(len(self) + len(other), dtype=bool)
        from_self[inserted] = False
        columns = []
        for name in (field.name for field in fields(self)):
            column = np.empty(len(from_self), dtype=getattr(self, name).dtype)
            column[from_self], column[inserted] = getattr(self, name), getattr(other, name)
            columns.append(column)
        return Pairs(*columns)

    def entries(self) -> IntArray:
        """Return the indices in `Persons.items` below the pairs, pair after pair."""
        return ranges(self.first, self.width.astype(np.int64))


def pairs_below(persons: Persons, person_of_entry: CodeArray, node: CodeArray, entries: IntArray) -> Pairs:
    """List the expandable pairs over `entries` (indices in `Persons.items`, ascending)."""
    forest = persons.forest
    above = node[entries]
    inner = forest.leaf_count[above] > 1
    entries, above = entries[inner], above[inner]
    person = person_of_entry[entries]
    child = forest.child(above, persons.items[entries])
    fresh = changes(person, above)
    first = np.flatnonzero(fresh)
    words, node_words = fixed_words(len(forest.labels), 1), fixed_words(len(forest.labels), 3)
    width = np.diff(np.r_[first, len(entries)]).astype(np.int32)
    if not len(first):
        return Pairs(person, words[:0], forest.ncp[:0], entries, width)
    sets = np.add.reduceat(np.where(fresh | changes(child), words[child], np.uint64(0)), first)
    gain = np.add.reduceat(forest.ncp[above] - forest.ncp[child], first)
    return Pairs(person[first], scrambled(sets + node_words[above[first]]), gain, entries[first], width)


class _Descent:
    """The buckets while they are refined: published node of every entry, bucket of every person."""

    def __init__(self, persons: Persons, k: int) -> None:
        self.persons = persons
        self.k = k
        self.person_of_entry = persons.person_of_entry.astype(np.int32)
        self.node = persons.forest.ancestors[0, persons.items].astype(np.int32)
        roots = lists_of(self.node, persons.person_of_entry, len(persons))
        self.bucket = keys_of_lists(roots.offsets, roots.nodes).of_row
        self.pairs = pairs_below(persons, self.person_of_entry, self.node, np.arange(len(persons.items)))

    def refine(self) -> None:
        """Refine every bucket once; pairs of buckets that cannot be refined any more are dropped."""
        pairs, bucket = self.pairs, self.bucket
        salt = fixed_words(int(bucket.max(initial=0)) + 1, 2)
        option, count = numbered_if_shared(pairs.word + salt[bucket[pairs.person]], self.k)
        # Buckets only get smaller, so what too few persons share now, too few will share later.
        pairs, option = pairs.where(option >= 0), option[option >= 0]
        # Expanding what every person of the bucket can expand alike costs nothing, so it goes first.
        free = np.bincount(option, minlength=count)[option] == np.bincount(bucket)[bucket[pairs.person]]
        waits = np.zeros(int(bucket.max()) + 1, dtype=bool)
        waits[bucket[pairs.person[free]]] = True
        chosen = free.copy()
        choosing = ~waits[bucket[pairs.person]]
        if choosing.any():
            chosen[choosing] = self._choose(pairs.where(choosing), option[choosing], count)
        split = np.zeros(int(bucket.max()) + 1, dtype=bool)
        split[bucket[pairs.person[chosen]]] = True
        goes_on = split[bucket[pairs.person]]
        moved = chosen & ~free
        bucket[pairs.person[moved]] = len(split) + option[moved]
        used = np.bincount(bucket) > 0
        bucket[:] = (np.cumsum(used) - 1)[bucket]
        self.pairs = pairs.where(goes_on & ~chosen).merged(self._expanded(pairs.where(chosen)))

    def _choose(self, pairs: Pairs, option: IntArray, count: int) -> BoolArray:
        """Let persons choose among their `pairs`; return which pairs are chosen."""
        choosing = np.zeros(int(self.bucket.max()) + 1, dtype=bool)
        choosing[self.bucket[pairs.person]] = True
        active = np.flatnonzero(choosing[self.bucket])
        picked = assign_options(Options(pairs.person, option, pairs.gain, count), self.bucket, active, self.k)
        chosen = np.zeros(len(pairs), dtype=bool)
        chosen[picked[picked >= 0]] = True
        return chosen

    def _expanded(self, pairs: Pairs) -> Pairs:
        """Publish the children in place of the nodes of `pairs`; return the new pairs."""
        entries = pairs.entries()
        self.node[entries] = self.persons.forest.child(self.node[entries], self.persons.items[entries])
        return pairs_below(self.persons, self.person_of_entry, self.node, entries)


@dataclass(frozen=True)
class Options:
    """Pairs of a person and an option, persons ascending."""

    person: CodeArray  # person of each pair
    option: IntArray  # number of the option; at least k pairs have it
    gain: FloatArray  # what the option saves the person, above 0
    count: int  # number of options


def assign_options(options: Options, bucket: IntArray, active: IntArray, k: int) -> IntArray:
    """Choose a pair of `options` for each person.

    Every person starts at the option that saves it most and moves on when that is closed.
    """
    index = np.full(len(bucket), -1, dtype=np.int64)
    index[active] = np.arange(len(active))
    person = index[options.person]
    order = _preferences(options, person)
    # `order` only moves pairs within their person, so `person` is still right for it
    chosen = _close_small(options.option[order], person, len(active), k)
    chosen = np.where(chosen >= 0, order[chosen], -1)
    owner = bucket[active]
    staying = np.bincount(owner[chosen < 0], minlength=int(owner.max(initial=0)) + 1)
    leaving = np.bincount(owner[chosen >= 0], minlength=len(staying))
    lacking = np.where((staying > 0) & (staying < k) & (leaving > 0), k - staying, 0)
    return _call_back(options, chosen, owner, lacking, k) if lacking.any() else chosen


def _preferences(options: Options, person: IntArray) -> IntArray:
    """Order the pairs by person, then by falling gain (to 24 bits or less), then as they come."""
    # One integer sorts all: person, complement of the gain (bits of floats rise with their value), rank.
    rank = rank_in_run(person)
    low = max(1, int(rank.max(initial=0)).bit_length())
    bits = (np.uint64(0x7FFFFFFF) - options.gain.astype(np.float32).view(np.uint32)) >> np.uint64(max(0, low - 8))
    high = np.uint64(31 - max(0, low - 8) + low)
    key = np.sort((person.astype(np.uint64) << high) | (bits << np.uint64(low)) | rank.astype(np.uint64))
    order: IntArray = (key & np.uint64((1 << low) - 1)).astype(np.int64) + np.arange(len(rank)) - rank
    return order


def _close_small(option: IntArray, person: IntArray, persons: int, k: int) -> IntArray:
    """Return the pair each person ends at, pairs being in order of preference; -1 for none."""
    bounds = np.searchsorted(person, np.arange(persons + 1))
    here, end = bounds[:-1].copy(), bounds[1:]
    here[here == end] = -1
    closed = np.zeros(int(option.max(initial=-1)) + 1, dtype=bool)
    steps = [*np.unique(np.geomspace(1, k, STEPS).astype(int)).tolist(), k]
    while steps:
        placed = np.flatnonzero(here >= 0)
        size = np.bincount(option[here[placed]], minlength=len(closed))
        small = (size > 0) & (size < steps[0])
        if len(steps) > 1 or not small.any():
            steps.pop(0)
        closed |= small
        moving = placed[small[option[here[placed]]]]
        while len(moving):
            here[moving] += 1
            over = here[moving] == end[moving]
            here[moving[over]] = -1
            moving = moving[~over]
            moving = moving[closed[option[here[moving]]]]
    return here


def _call_back(options: Options, chosen: IntArray, owner: IntArray, lacking: IntArray, k: int) -> IntArray:
    """Let persons stay until each bucket that lacks some has k: first those who lose least by it.

    No option goes below k by this; where a bucket's options cannot spare enough, the one that saves least in
    all is given up, and its persons stay.
    """
    able = np.flatnonzero((chosen >= 0) & (lacking[owner] > 0))
    option, gain = options.option[chosen[able]], options.gain[chosen[able]]
    size = np.bincount(option, minlength=options.count)
    by_option = np.lexsort((gain, option))
    spare = by_option[rank_in_run(option[by_option]) < (size - k)[option[by_option]]]
    spare = spare[np.lexsort((spare, gain[spare], owner[able[spare]]))]
    spare = spare[rank_in_run(owner[able[spare]]) < lacking[owner[able[spare]]]]
    stays = np.zeros(len(able), dtype=bool)
    stays[spare] = True
    short = lacking > np.bincount(owner[able[spare]], minlength=len(lacking))
    rest = np.flatnonzero(~stays & short[owner[able]])
    if len(rest):
        total = np.bincount(option[rest], gain[rest], minlength=options.count)
        used, example = np.unique(option[rest], return_index=True)
        home = owner[able[rest[example]]]
        ranked = np.lexsort((used, total[used], home))
        given_up = np.zeros(options.count, dtype=bool)
        given_up[used[ranked[changes(home[ranked])]]] = True
        stays |= given_up[option]
    result = chosen.copy()
    result[able[stays]] = -1
    return result


def scrambled(words: Words) -> Words:
    """Mix the bits of each word (the finalizer of splitmix64), so that sums of words identify sets.

    Different sets collide with probability 2^-64 a pair, which may lose utility but never the guarantee: results are
    re-checked on the members themselves.
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def fixed_words(count: int, salt: int) -> Words:
    """Return the pseudo-random word of each number below `count`."""
    step = np.uint64(0x9E3779B97F4A7C15)
    return scrambled((np.arange(1, count + 1, dtype=np.uint64) + np.uint64(salt << 32)) * step)


def numbered_if_shared(words: Words, least: int) -> tuple[IntArray, int]:
    """Number the words that occur at least `least` times, -1 for the others; also return how many there are.

    >>> numbered_if_shared(np.array([9, 5, 9], dtype=np.uint64), 2)[0].tolist()
    [0, -1, 0]
    """
    number = np.full(len(words), -1, dtype=np.int64)
    # Most words are rare: a count by 18 of their bits rules them out before they are hashed.
    coarse = (words >> np.uint64(46)).astype(np.int64)
    candidates = np.flatnonzero(np.bincount(coarse)[coarse] >= least)
    distinct = pa.array(words[candidates]).dictionary_encode().indices.to_numpy().astype(np.int64)
    frequent = np.bincount(distinct) >= least
    number[candidates] = np.where(frequent, np.cumsum(frequent) - 1, -1)[distinct]
    return number, int(frequent.sum())
