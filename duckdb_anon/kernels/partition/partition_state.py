"""Attributes, rows and working space of a partition as flat arrays, and how a cut moves rows.

The codes of a row stand together (one cache line), the rows of a group too. A cut says for each row of a group which
part it goes to; the rows are laid out part after part into a second set of arrays, each part in the order of the group,
and copied back once the cut is accepted. So results depend neither on the order in which groups are cut nor on threads.

The first group is the whole table: what is known of it comes from counts that several threads make.

Cost: linear in the rows of the group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.array_ops import tally
from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.thread_pool import parallel_blocks, parallel_map
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray

ORDERED, NOMINAL, TREE = 0, 1, 2
_KINDS = {"ordered": ORDERED, "nominal": NOMINAL, "hierarchy": TREE}
# Kinds of cuts. Part 0 holds the rows whose code is up to `at`; whose rank by frequency is; whose rank is `at`; the
# rows up to `at` and the first `quota` of those that have it. CHILDREN: a part for each child of a tree's node,
# ONE_CHILD: one of them against the others.
UP_TO, FREQUENT, ONLY, TIES, CHILDREN, ONE_CHILD = range(6)
# Counting into this many places a row is still cheaper than sorting.
_DENSE = 8
# Codes and numbers of parts below it take two bytes.
_NARROW = 2**16


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
        )


def starts_of(sizes: list[int]) -> IntArray:
    """Where each of several arrays starts in all of them together, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64)))).astype(np.int64)


class Rows(NamedTuple):
    """The rows of a table, in the order of their groups."""

    codes: NDArray[Any]  # codes of each row on every attribute, hierarchies as leaves, shape (rows, attributes)
    sensitive: CodeArray  # sensitive code of each row, shape (rows,); zeros where there is none
    row: NDArray[Any]  # source row of each
    next_codes: NDArray[Any]  # second places, of the same shapes
    next_sensitive: CodeArray  # see there
    next_row: NDArray[Any]  # see there
    part: NDArray[Any]  # part of each row under the cut that is laid out
    first: NDArray[np.int8]  # 1 where a finished group starts
    counts: IntArray  # rows of the table with each code of each attribute, at `Columns.offset`

    @staticmethod
    def of(qi: tuple[Attribute, ...], columns: Columns, sensitive: CodeArray | None) -> Rows:
        """Copy a table, all rows one group."""
        rows = len(qi[0].codes)
        narrow = int(np.diff(columns.offset).max()) < _NARROW
        codes = np.empty((rows, len(qi)), dtype=np.uint16 if narrow else np.int32)

        def fill(low: int, high: int) -> None:
            for index, attribute in enumerate(qi):
                codes[low:high, index] = attribute.place_of_code[attribute.codes[low:high]]

        parallel_blocks(fill, rows)
        values = np.zeros(rows, dtype=np.int32) if sensitive is None else sensitive.astype(np.int32)
        every = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)
        return Rows(
            codes,
            values,
            every,
            np.empty_like(codes),
            np.empty_like(values),
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
def extremes(codes: NDArray[Any], start: int, stop: int, low: IntArray, high: IntArray) -> None:
    """Set the smallest and largest code of the rows start .. stop - 1 on each attribute."""
    for j in range(codes.shape[1]):
        smallest = largest = np.int64(codes[start, j])
        for i in range(start + 1, stop):
            smallest = min(smallest, np.int64(codes[i, j]))
            largest = max(largest, np.int64(codes[i, j]))
        low[j] = smallest
        high[j] = largest


@compiled
def group_extremes(columns: Columns, rows: Rows, space: Workspace, start: int, stop: int) -> None:
    """Set the smallest and largest code of a group on each attribute."""
    if stop - start < len(rows.row):
        extremes(rows.codes, start, stop, space.low, space.high)
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
    codes, low, high, values = rows.codes, space.low[j], space.high[j], 0
    if stop - start == len(rows.row):
        for code in range(low, high + 1):
            count = rows.counts[columns.offset[j] + code]
            if count > 0:
                space.value[values] = code
                space.value_rows[values] = count
                values += 1
        return values
    if high - low < _DENSE * (stop - start):
        for i in range(start, stop):
            space.histogram[codes[i, j] - low] += 1
        for index in range(high - low + 1):
            count = space.histogram[index]
            if count > 0:
                space.histogram[index] = 0
                space.value[values] = index + low
                space.value_rows[values] = count
                values += 1
        return values
    for i in range(start, stop):
        space.buffer[i - start] = codes[i, j]
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
def distinct(codes: NDArray[Any], space: Workspace, j: int, start: int, stop: int) -> int:
    """Count the different codes of rows on attribute j."""
    space.counting[0] += 1
    values = 0
    for i in range(start, stop):
        code = codes[i, j]
        if space.last_seen[code] != space.counting[0]:
            space.last_seen[code] = space.counting[0]
            values += 1
    return values


@compiled
def lay_out(columns: Columns, rows: Rows, space: Workspace, start: int, stop: int) -> int:
    """Lay the rows of a group out by the parts of `space.cut`; return the number of occupied parts."""
    parts = _part_rows(columns, rows, space, start, stop)
    for p in range(parts):
        space.part_rows[p] = 0
    for i in range(start, stop):
        space.part_rows[rows.part[i]] += 1
    index, occupied = start, 0
    for p in range(parts):
        size = space.part_rows[p]
        space.part_rows[p] = index
        if size > 0:
            space.part_start[occupied] = index
            occupied += 1
        index += size
    space.part_start[occupied] = stop
    attributes = rows.codes.shape[1]
    for i in range(start, stop):
        to = space.part_rows[rows.part[i]]
        space.part_rows[rows.part[i]] += 1
        for a in range(attributes):
            rows.next_codes[to, a] = rows.codes[i, a]
        rows.next_sensitive[to] = rows.sensitive[i]
        rows.next_row[to] = rows.row[i]
    return occupied


@compiled
def _part_rows(columns: Columns, rows: Rows, space: Workspace, start: int, stop: int) -> int:
    """Say which part each row goes to; return the number of parts."""
    kind, j, at, quota = space.cut[0], space.cut[1], space.cut[2], space.cut[4]
    offset, codes, part = columns.offset[j], rows.codes, rows.part
    if kind == UP_TO:
        for i in range(start, stop):
            part[i] = 1 if codes[i, j] > at else 0
    elif kind == FREQUENT:
        for i in range(start, stop):
            part[i] = space.rank[offset + codes[i, j]] > at
    elif kind == ONLY:
        for i in range(start, stop):
            part[i] = space.rank[offset + codes[i, j]] != at
    elif kind == TIES:
        for i in range(start, stop):
            part[i] = codes[i, j] > at
            if codes[i, j] == at:
                part[i] = quota <= 0
                quota -= 1
    else:
        below = columns.chain_at[j] + (space.cut[3] + 1) * (columns.offset[j + 1] - offset)
        for i in range(start, stop):
            part[i] = columns.ordinal[columns.node_at[j] + columns.chain[below + codes[i, j]]]
            if kind == ONE_CHILD:
                part[i] = part[i] != at
        if kind == CHILDREN:
            return columns.children[j]
    return 2


@compiled
def carry_out(rows: Rows, start: int, stop: int) -> None:
    """Make the places last laid out those of the group."""
    attributes = rows.codes.shape[1]
    for i in range(start, stop):
        for a in range(attributes):
            rows.codes[i, a] = rows.next_codes[i, a]
        rows.sensitive[i] = rows.next_sensitive[i]
        rows.row[i] = rows.next_row[i]


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
