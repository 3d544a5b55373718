"""Attributes, rows and working space of a partition as flat arrays, and how a cut moves rows.

The codes of a row stand together in words of 64 bits, as many as fit with a bit to spare for each, so a row is copied,
and compared with another one, a word at a time. The rows of a group stand together too. A cut says for each row of a
group which part it goes to, and `lay_out` in which order they follow, part after part, each part in the order of the
group; rows are moved once the cut is accepted. So results depend neither on the order in which groups are cut nor on
threads.

The first group is the whole table: what is known of it comes from counts that several threads make.

Cost: linear in the rows of the group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.array_ops import gathered, tally
from duckdb_anon.kernels.jit import Place, compiled
from duckdb_anon.kernels.thread_pool import parallel_blocks, parallel_map
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray

WordArray = NDArray[np.uint64]
ORDERED, NOMINAL, TREE = 0, 1, 2
_KINDS = {"ordered": ORDERED, "nominal": NOMINAL, "hierarchy": TREE}
# Kinds of cuts. Part 0 holds the rows whose code is up to `at`; whose rank by frequency is; whose rank is `at`; the
# rows up to `at` and the first `quota` of those that have it. CHILDREN: a part for each child of a tree's node,
# ONE_CHILD: one of them against the others.
UP_TO, FREQUENT, ONLY, TIES, CHILDREN, ONE_CHILD = range(6)
# Counting into this many places a row is still cheaper than sorting.
_DENSE = 8
# Numbers of parts below it take two bytes.
_NARROW = 2**16
_WORD = 64  # bits


class Columns(NamedTuple):
    """The attributes; arrays that hold something for each code of each attribute are concatenated."""

    kind: IntArray  # ORDERED, NOMINAL or TREE, shape (attributes,)
    offset: IntArray  # where the attribute's codes (leaves, for trees) start, shape (attributes + 1,)
    domain: IntArray  # values of the attribute, for the share that a set of them has
    special: IntArray  # codes from here on are NULL or not finite
    span: FloatArray  # range of the finite values
    position: FloatArray  # place of each code on its number line; the code itself for hierarchies
    depths: IntArray  # depths of the tree, 0 where there is none
    chain_at: IntArray  # where the tree's ancestors start in `chain`: chain[chain_at + depth * leaves + leaf] is a node
    chain: IntArray  # node above each leaf at each depth
    node_at: IntArray  # where the tree's nodes start in `ordinal` and `below`
    ordinal: IntArray  # place of each node among its siblings
    below: IntArray  # leaves at or below each node
    children: IntArray  # largest number of children of a node, 2 where there is no tree
    word: IntArray  # which word of a row has the attribute's code, ascending, shape (attributes,)
    shift: WordArray  # bits of the word below the code
    # the same for all words, shape (4,): the largest code there is room for; bits from one code to the next; the spare
    # bit of each code; how many codes there are
    lane: WordArray

    @staticmethod
    def of(qi: tuple[Attribute, ...]) -> Columns:
        """Flatten the attributes."""
        trees = [a.hierarchy for a in qi]
        codes = [a.domain if t is None else t.leaves for a, t in zip(qi, trees, strict=True)]
        chains = [np.empty(0, np.int64) if t is None else t.ancestors.ravel() for t in trees]
        ordinals = [np.empty(0, np.int64) if t is None else t.ordinal for t in trees]
        below = [np.empty(0, np.int64) if t is None else t.leaf_count.astype(np.int64) for t in trees]
        positions = [
            a.positions if t is None else np.arange(float(c)) for a, t, c in zip(qi, trees, codes, strict=True)
        ]
        bits = max(1, *(int(size - 1).bit_length() for size in codes))
        lanes = _WORD // (bits + 1)
        index = np.arange(len(qi))
        spare = sum(1 << ((bits + 1) * lane + bits) for lane in range(lanes))
        return Columns(
            np.array([_KINDS[a.kind] for a in qi], dtype=np.int64),
            starts_of(codes),
            np.array([max(1, a.domain) for a in qi], dtype=np.int64),
            np.array([a.special_from for a in qi], dtype=np.int64),
            np.array([a.span for a in qi], dtype=np.float64),
            np.concatenate(positions).astype(np.float64),
            np.array([0 if t is None else len(t.ancestors) for t in trees], dtype=np.int64),
            starts_of([len(chain) for chain in chains]),
            np.concatenate(chains),
            starts_of([len(ordinal) for ordinal in ordinals]),
            np.concatenate(ordinals),
            np.concatenate(below),
            np.array([2 if t is None else t.most_children for t in trees], dtype=np.int64),
            index // lanes,
            (index % lanes * (bits + 1)).astype(np.uint64),
            np.array([(1 << bits) - 1, bits + 1, spare, lanes], dtype=np.uint64),
        )

    def packed(self, rows: int, codes: Callable[[int, int, int], NDArray[Any]]) -> WordArray:
        """Words of rows; `codes`: called with an attribute and two rows, gives its shifted codes of the rows between.

        Returns an array of shape (rows, words).
        """
        words = np.zeros((rows, int(self.word[-1]) + 1), dtype=np.uint64)

        def fill(low: int, high: int) -> None:
            for j, word in enumerate(self.word.tolist()):
                words[low:high, word] |= codes(j, low, high)

        parallel_blocks(fill, rows)
        return words


def starts_of(sizes: list[int]) -> IntArray:
    """Where each of several arrays starts in all of them together, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64)))).astype(np.int64)


class Rows(NamedTuple):
    """The rows of a table, in the order of their groups."""

    words: WordArray  # codes of each row, hierarchies as leaves, see `Columns.word`; shape (rows, words)
    sensitive: CodeArray  # sensitive code of each row, shape (rows,); zeros where there is none
    row: NDArray[Any]  # source row of each
    next_words: WordArray  # second places, of the same shapes
    next_sensitive: CodeArray  # see there
    next_row: NDArray[Any]  # see there
    order: NDArray[Any]  # the places of a group in the order of the parts of a cut
    part: NDArray[Any]  # part of each row under the cut that is laid out
    first: NDArray[np.int8]  # 1 where a finished group starts
    counts: IntArray  # rows of the table with each code of each attribute, at `Columns.offset`

    @staticmethod
    def of(qi: tuple[Attribute, ...], columns: Columns, sensitive: CodeArray | None) -> Rows:
        """Copy a table, all rows one group."""
        rows = len(qi[0].codes)
        shifted = [a.place_of_code.astype(np.uint64) << shift for a, shift in zip(qi, columns.shift, strict=True)]
        words = columns.packed(rows, lambda j, low, high: gathered(shifted[j], qi[j].codes[low:high]))
        values = np.zeros(rows, dtype=np.int32) if sensitive is None else sensitive.astype(np.int32)
        every = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)
        return Rows(
            words,
            values,
            every,
            np.empty_like(words),
            np.empty_like(values),
            np.empty_like(every),
            np.empty_like(every),
            np.empty(rows, dtype=np.uint16 if columns.children.max() < _NARROW else np.int32),
            np.zeros(rows, dtype=np.int8),
            _counts_of_table(qi, columns),
        )


def _counts_of_table(qi: tuple[Attribute, ...], columns: Columns) -> IntArray:
    def counted(index: int) -> IntArray:
        attribute = qi[index]
        counts = np.zeros(attribute.size, dtype=np.int64)
        tally(attribute.codes, counts)
        placed = np.zeros(int(columns.offset[index + 1] - columns.offset[index]), dtype=np.int64)
        placed[attribute.place_of_code] = counts
        return placed

    return np.concatenate(parallel_map(counted, range(len(qi))))


class Workspace(NamedTuple):
    """Working space for one thread."""

    low: IntArray  # smallest code of the group on each attribute
    high: IntArray  # largest code of the group on each attribute
    width: FloatArray  # width of the group on each attribute
    histogram: IntArray  # rows of each code of one attribute, zero between uses
    rank: IntArray  # rank by frequency of each code of each attribute in the group
    last_seen: IntArray  # last count in which each code of one attribute occurred
    counting: IntArray  # number of the current count, shape (1,)
    buffer: IntArray  # codes to be sorted
    value: IntArray  # the different codes of one attribute in the group, ascending
    value_rows: IntArray  # rows of each
    value_order: IntArray  # an order of them
    part_rows: IntArray  # rows of each part
    part_start: IntArray  # first place of each part, and the end
    stack: IntArray  # start and end of the groups that wait to be cut
    waiting: IntArray  # how many these are, shape (1,)
    cut: IntArray  # the cut: kind, attribute, at, depth, quota

    @staticmethod
    def of(columns: Columns, rows: int) -> Workspace:
        """Make space for groups of up to `rows` rows."""
        attributes = len(columns.kind)
        widest = int(np.diff(columns.offset).max())
        values, parts = min(widest, rows) + 1, int(columns.children.max()) + 1
        return Workspace(
            np.zeros(attributes, np.int64),
            np.zeros(attributes, np.int64),
            np.zeros(attributes),
            np.zeros(widest, np.int64),
            np.zeros(int(columns.offset[-1]), np.int64),
            np.zeros(widest, np.int64),
            np.zeros(1, np.int64),
            np.empty(min(rows, widest // _DENSE + 1), np.int64),
            np.empty(values, np.int64),
            np.empty(values, np.int64),
            np.empty(values, np.int64),
            np.zeros(parts, np.int64),
            np.zeros(parts + 1, np.int64),
            np.zeros(2 * (rows.bit_length() + 2) * parts, np.int64),
            np.zeros(1, np.int64),
            np.zeros(5, np.int64),
        )


@compiled
def common_depth(columns: Columns, j: int, low: int, high: int) -> int:
    """Depth of the lowest common ancestor of two leaves of attribute j."""
    leaves = columns.offset[j + 1] - columns.offset[j]
    at = columns.chain_at[j]
    depth = 0
    while depth + 1 < columns.depths[j]:
        below = at + (depth + 1) * leaves
        if columns.chain[below + low] != columns.chain[below + high]:
            break
        depth += 1
    return depth


@compiled
def width_of(columns: Columns, j: int, low: int, high: int, values: int) -> float:
    """Normalized certainty penalty of the codes low .. high of attribute j, as in `ncp`.

    A nominal attribute has `values` different codes; 0 reads it as ordered.
    """
    if low == high:
        return 0.0
    if columns.kind[j] == TREE:
        depth = common_depth(columns, j, low, high)
        leaves = columns.offset[j + 1] - columns.offset[j]
        node = columns.chain[columns.chain_at[j] + depth * leaves + low]
        return columns.below[columns.node_at[j] + node] / columns.below[columns.node_at[j]]
    if columns.kind[j] == NOMINAL and values > 0:
        return values / columns.domain[j]
    if high >= columns.special[j]:
        return 1.0
    if columns.span[j] <= 0.0:
        return 0.0
    at = columns.offset[j]
    return (columns.position[at + high] - columns.position[at + low]) / columns.span[j]


@compiled
def sort_codes(codes: IntArray, size: int) -> None:
    """Sort the first `size` codes, ascending (Shell 1959, gaps of Knuth 1973; little to compile)."""
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            code = codes[i]
            j = i
            while j >= gap and codes[j - gap] > code:
                codes[j] = codes[j - gap]
                j -= gap
            codes[j] = code
        gap //= 3


@compiled
def order_by_rows(rows: IntArray, order: IntArray, size: int) -> None:
    """Set `order` to the numbers 0 .. size - 1 by decreasing rows, ties ascending."""
    for index in range(size):
        order[index] = index - rows[index] * size
    sort_codes(order, size)
    for index in range(size):
        order[index] %= size


@compiled
def extremes(columns: Columns, rows: Rows, start: int, stop: int, low: IntArray, high: IntArray) -> None:
    """Set the smallest and largest code on each attribute of the rows at the places start .. stop - 1 of `rows.order`.

    All codes of a word are compared at once: with its spare bits set, what is left of them after another word is taken
    from it says where its code is not the smaller one.
    """
    words, order, attributes, j = rows.words, rows.order, len(columns.word), 0
    ones, bits, spare = columns.lane[0], columns.lane[1] - np.uint64(1), columns.lane[2]
    for k in range(words.shape[1]):
        column = Place(k)
        smallest = largest = words[Place(order[start]), column]
        for index in range(Place(start + 1), Place(stop)):
            word = words[Place(order[index]), column]
            reached = ((smallest | spare) - word) & spare
            smallest ^= (smallest ^ word) & (reached - (reached >> bits))
            reached = ((word | spare) - largest) & spare
            largest ^= (largest ^ word) & (reached - (reached >> bits))
        while j < attributes and columns.word[j] == k:
            low[j] = (smallest >> columns.shift[j]) & ones
            high[j] = (largest >> columns.shift[j]) & ones
            j += 1


@compiled
def group_extremes(columns: Columns, rows: Rows, space: Workspace, start: int, stop: int) -> None:
    """Set the smallest and largest code of a group on each attribute, and `rows.order` to its rows as they stand."""
    if stop - start < len(rows.row):
        for i in range(Place(start), Place(stop)):
            rows.order[i] = i
        extremes(columns, rows, start, stop, space.low, space.high)
        return
    for j in range(len(columns.kind)):
        offset = columns.offset[j]
        first, last = offset, columns.offset[j + 1] - 1
        while rows.counts[first] == 0:
            first += 1
        while rows.counts[last] == 0:
            last -= 1
        space.low[j], space.high[j] = first - offset, last - offset


@compiled
def values_of(columns: Columns, rows: Rows, space: Workspace, j: int, start: int, stop: int) -> int:
    """List the different codes of a group on attribute j with their rows; return how many there are."""
    words, low, high, values = rows.words, space.low[j], space.high[j], 0
    word, shift, ones = Place(columns.word[j]), columns.shift[j], columns.lane[0]
    if stop - start == len(rows.row):
        for code in range(low, high + 1):
            count = rows.counts[columns.offset[j] + code]
            if count > 0:
                space.value[values] = code
                space.value_rows[values] = count
                values += 1
        return values
    if high - low < _DENSE * (stop - start):
        histogram, lowest = space.histogram, Place(low)
        for i in range(Place(start), Place(stop)):
            histogram[((words[i, word] >> shift) & ones) - lowest] += 1
        for code in range(low, high + 1):
            count = histogram[Place(code) - lowest]
            if count > 0:
                histogram[Place(code) - lowest] = 0
                space.value[values] = code
                space.value_rows[values] = count
                values += 1
        return values
    for i in range(start, stop):
        space.buffer[i - start] = (words[i, word] >> shift) & ones
    sort_codes(space.buffer, stop - start)
    for index in range(stop - start):
        if values > 0 and space.value[values - 1] == space.buffer[index]:
            space.value_rows[values - 1] += 1
        else:
            space.value[values] = space.buffer[index]
            space.value_rows[values] = 1
            values += 1
    return values


@compiled
def distinct(columns: Columns, rows: Rows, space: Workspace, j: int, start: int, stop: int) -> int:
    """Count the different codes on attribute j of the rows at the places start .. stop - 1 of `rows.order`."""
    words, word, shift, ones = rows.words, Place(columns.word[j]), columns.shift[j], columns.lane[0]
    space.counting[0] += 1
    values, now = 0, space.counting[0]
    for index in range(Place(start), Place(stop)):
        code = (words[Place(rows.order[index]), word] >> shift) & ones
        if space.last_seen[code] != now:
            space.last_seen[code] = now
            values += 1
    return values


@compiled
def lay_out(columns: Columns, rows: Rows, space: Workspace, start: int, stop: int) -> int:
    """Put the places of a group in the order of the parts of `space.cut`; return the number of occupied parts."""
    parts = _part_rows(columns, rows, space, start, stop)
    for p in range(parts):
        space.part_rows[p] = 0
    for i in range(Place(start), Place(stop)):
        space.part_rows[Place(rows.part[i])] += 1
    index, occupied = start, 0
    for p in range(parts):
        size = space.part_rows[p]
        space.part_rows[p] = index
        if size > 0:
            space.part_start[occupied] = index
            occupied += 1
        index += size
    space.part_start[occupied] = stop
    for i in range(Place(start), Place(stop)):
        part = Place(rows.part[i])
        rows.order[Place(space.part_rows[part])] = i
        space.part_rows[part] += 1
    return occupied


@compiled
def _part_rows(columns: Columns, rows: Rows, space: Workspace, start: int, stop: int) -> int:
    """Say which part each row goes to; return the number of parts."""
    kind, j, at, quota = space.cut[0], space.cut[1], space.cut[2], space.cut[4]
    offset, words, part = columns.offset[j], rows.words, rows.part
    word, shift, ones = Place(columns.word[j]), columns.shift[j], columns.lane[0]
    # where a tree's nodes one level below the cut one start
    below = columns.chain_at[j] + (space.cut[3] + 1) * (columns.offset[j + 1] - offset)
    for i in range(Place(start), Place(stop)):
        code = np.int64((words[i, word] >> shift) & ones)
        if kind == UP_TO:
            part[i] = code > at
        elif kind == FREQUENT:
            part[i] = space.rank[offset + code] > at
        elif kind == ONLY:
            part[i] = space.rank[offset + code] != at
        elif kind == TIES:
            part[i] = code > at
            if code == at:
                part[i] = quota <= 0
                quota -= 1
        else:
            child = columns.ordinal[columns.node_at[j] + columns.chain[below + code]]
            part[i] = child if kind == CHILDREN else child != at
    return columns.children[j] if kind == CHILDREN else 2


@compiled
def carry_out(rows: Rows, space: Workspace, start: int, stop: int) -> None:
    """Move the rows of a group to the order last laid out."""
    order, second, columns = rows.order, space.part_start[1], Place(rows.words.shape[1])
    # the first part moves up in place, after the others have left
    for to in range(Place(second), Place(stop)):
        place = Place(order[to])
        for k in range(columns):
            rows.next_words[to, k] = rows.words[place, k]
        rows.next_sensitive[to] = rows.sensitive[place]
        rows.next_row[to] = rows.row[place]
    for to in range(Place(start), Place(second)):
        place = Place(order[to])
        for k in range(columns):
            rows.words[to, k] = rows.words[place, k]
        rows.sensitive[to] = rows.sensitive[place]
        rows.row[to] = rows.row[place]
    for to in range(Place(second), Place(stop)):
        for k in range(columns):
            rows.words[to, k] = rows.next_words[to, k]
        rows.sensitive[to] = rows.next_sensitive[to]
        rows.row[to] = rows.next_row[to]


@compiled
def push(space: Workspace, parts: int) -> None:
    """Put the parts on the stack, the smallest on top, so that it never holds more than log2(rows) times the parts."""
    smallest = 0
    for p in range(parts):
        size = space.part_start[p + 1] - space.part_start[p]
        if size <= space.part_start[smallest + 1] - space.part_start[smallest]:
            smallest = p
    for index in range(parts):
        p = index
        if index == parts - 1:
            p = smallest
        elif index == smallest:
            p = parts - 1
        waiting = space.waiting[0]
        space.stack[2 * waiting], space.stack[2 * waiting + 1] = space.part_start[p], space.part_start[p + 1]
        space.waiting[0] += 1
