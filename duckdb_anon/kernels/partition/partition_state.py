"""Rows of one group after another, and how a cut moves them.

The codes of a row stand together (one cache line), the rows of a group too. A cut says for each row of a group
which part it goes to; its rows are laid out part after part into a second set of places, each part in the order of
the group, and copied back once the cut is accepted. So results do not depend on the order in which groups are cut,
nor on who cuts them.

Cost: linear in the rows of the group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.kernels.partition.flat_attributes import Lines
from duckdb_anon.kernels.partition.sorting import sort_codes
from duckdb_anon.kernels.partition.table_counts import counts_of_table
from duckdb_anon.kernels.thread_pool import in_blocks
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray

# Kinds of cuts. Part 0 holds the rows whose code is up to `at`; whose rank by frequency is; whose rank it is alone;
# the rows up to `at` and the first `quota` of those that have it. CHILDREN: a part for each child of a tree's node,
# ONE_CHILD: one of them against the others.
UP_TO, FREQUENT, ONLY, TIES, CHILDREN, ONE_CHILD = range(6)
# Counting into this many places a row is still cheaper than sorting.
_DENSE = 8
# Codes up to it take two bytes.
_NARROW = 2**15 - 1


class Rows(NamedTuple):
    """The rows of a table, in the order of their groups.

    Attributes:
        codes: codes of each row on every attribute, hierarchies as leaves, shape (rows, attributes).
        sensitive: sensitive code of each row, shape (rows,); zeros where nobody asks.
        row: source row of each.
        next_codes: second places, of the same shapes.
        next_sensitive: see there.
        next_row: see there.
        part: part of each row under the cut that is laid out.
        first: 1 where a finished group starts.
        counts: rows of the table with each code of each attribute, at `Lines.offset`.
    """

    codes: NDArray[Any]
    sensitive: CodeArray
    row: NDArray[Any]
    next_codes: NDArray[Any]
    next_sensitive: CodeArray
    next_row: NDArray[Any]
    part: CodeArray
    first: NDArray[np.int8]
    counts: IntArray

    @staticmethod
    def of(qi: tuple[Attribute, ...], lines: Lines, sensitive: CodeArray | None) -> Rows:
        """Copy a table, all rows one group.

        Args:
            qi: what is cut by.
            lines: the same, flattened.
            sensitive: sensitive code of each row, None where nobody asks.
        """
        rows = len(qi[0].codes)
        narrow = all(attribute.domain <= _NARROW for attribute in qi)
        codes = np.empty((rows, len(qi)), dtype=np.int16 if narrow else np.int32)

        def fill(low: int, high: int) -> None:
            for place, attribute in enumerate(qi):
                own = attribute.codes[low:high]
                codes[low:high, place] = own if attribute.leaf_of_code is None else attribute.leaf_of_code[own]

        in_blocks(fill, rows)
        values = np.zeros(rows, dtype=np.int32) if sensitive is None else sensitive.astype(np.int32)
        every = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)
        return Rows(
            codes,
            values,
            every,
            np.empty_like(codes),
            np.empty_like(values),
            np.empty_like(every),
            np.empty(rows, dtype=np.int32),
            np.zeros(rows, dtype=np.int8),
            counts_of_table(qi, lines),
        )


class Space(NamedTuple):
    """Working space for one thread.

    Attributes:
        low: smallest code of the group on each attribute.
        high: largest code of the group on each attribute.
        own: width of the group on each attribute.
        histogram: rows of each code of one attribute, zero between uses.
        rank: rank by frequency of each code of each attribute in the group.
        seen: last count in which each code of one attribute was met.
        counting: number of the current count, shape (1,).
        buffer: codes to be sorted.
        cell_code: the different codes of one attribute in the group, ascending.
        cell_rows: rows of each.
        cell_order: an order of them.
        part_rows: rows of each part.
        part_start: first place of each part, and the end.
        stack: start and end of the groups that wait to be cut.
        cut: the cut: kind, attribute, at, depth, quota.
    """

    low: IntArray
    high: IntArray
    own: FloatArray
    histogram: IntArray
    rank: IntArray
    seen: IntArray
    counting: IntArray
    buffer: IntArray
    cell_code: IntArray
    cell_rows: IntArray
    cell_order: IntArray
    part_rows: IntArray
    part_start: IntArray
    stack: IntArray
    cut: IntArray

    @staticmethod
    def of(lines: Lines, rows: int) -> Space:
        """Make space for groups of up to `rows` rows."""
        each = len(lines.kind)
        widest = int(np.diff(lines.offset).max())
        cells, parts = min(widest, rows) + 1, int(lines.children.max()) + 1
        return Space(
            np.zeros(each, np.int64),
            np.zeros(each, np.int64),
            np.zeros(each),
            np.zeros(widest, np.int64),
            np.zeros(int(lines.offset[-1]), np.int64),
            np.zeros(widest, np.int64),
            np.zeros(1, np.int64),
            np.empty(rows if widest > _DENSE else 1, np.int64),
            np.empty(cells, np.int64),
            np.empty(cells, np.int64),
            np.empty(cells, np.int64),
            np.zeros(parts, np.int64),
            np.zeros(parts + 1, np.int64),
            np.zeros(2 * (rows.bit_length() + 2) * parts, np.int64),
            np.zeros(5, np.int64),
        )


@compiled_in_place
def extremes(codes: NDArray[Any], start: int, stop: int, low: IntArray, high: IntArray) -> None:
    """Set the smallest and largest code of the rows on each attribute.

    Args:
        codes: codes of the rows as they lie, shape (n, attributes).
        start: first row of the group.
        stop: row after its last.
        low: smallest codes, filled in.
        high: largest codes, filled in.
    """
    for j in range(codes.shape[1]):
        smallest = largest = np.int64(codes[start, j])
        for i in range(start + 1, stop):
            smallest = min(smallest, np.int64(codes[i, j]))
            largest = max(largest, np.int64(codes[i, j]))
        low[j] = smallest
        high[j] = largest


@compiled_in_place
def cells_of(codes: NDArray[Any], start: int, stop: int, j: int, space: Space) -> int:
    """List the different codes of the rows on one attribute with their numbers of rows; return how many there are.

    `space.low` and `space.high` are those of these rows.

    Args:
        codes: codes of the rows as they lie, shape (n, attributes).
        start: first row of the group.
        stop: row after its last.
        j: the attribute.
        space: working space.
    """
    low, high, cells = space.low[j], space.high[j], 0
    if high - low < _DENSE * (stop - start):
        for i in range(start, stop):
            space.histogram[codes[i, j] - low] += 1
        for place in range(high - low + 1):
            rows = space.histogram[place]
            if rows > 0:
                space.histogram[place] = 0
                space.cell_code[cells] = place + low
                space.cell_rows[cells] = rows
                cells += 1
        return cells
    for i in range(start, stop):
        space.buffer[i - start] = codes[i, j]
    sort_codes(space.buffer, stop - start)
    for place in range(stop - start):
        if cells > 0 and space.cell_code[cells - 1] == space.buffer[place]:
            space.cell_rows[cells - 1] += 1
        else:
            space.cell_code[cells] = space.buffer[place]
            space.cell_rows[cells] = 1
            cells += 1
    return cells


@compiled_in_place
def values_of(codes: NDArray[Any], start: int, stop: int, j: int, space: Space) -> int:
    """Count the different codes of the rows on one attribute.

    Args:
        codes: codes of the rows as they lie, shape (n, attributes).
        start: first row of the group.
        stop: row after its last.
        j: the attribute.
        space: working space.
    """
    space.counting[0] += 1
    values = 0
    for i in range(start, stop):
        code = codes[i, j]
        if space.seen[code] != space.counting[0]:
            space.seen[code] = space.counting[0]
            values += 1
    return values


@compiled_in_place
def lay_out(lines: Lines, rows: Rows, space: Space, start: int, stop: int) -> int:
    """Lay the rows of a group out by the parts of `space.cut`, codes only; return the number of occupied parts.

    Args:
        lines: the attributes.
        rows: the rows.
        space: working space.
        start: first row of the group.
        stop: row after its last.
    """
    kind, j, at = space.cut[0], space.cut[1], space.cut[2]
    offset = lines.offset[j]
    codes, part = rows.codes, rows.part
    parts = 2
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
        quota = space.cut[4]
        for i in range(start, stop):
            part[i] = codes[i, j] > at
            if codes[i, j] == at:
                part[i] = quota <= 0
                quota -= 1
    else:
        below = lines.chain_at[j] + (space.cut[3] + 1) * (lines.offset[j + 1] - offset)
        for i in range(start, stop):
            part[i] = lines.ordinal[lines.node_at[j] + lines.chain[below + codes[i, j]]]
            if kind == ONE_CHILD:
                part[i] = part[i] != at
        if kind == CHILDREN:
            parts = lines.children[j]
    for p in range(parts):
        space.part_rows[p] = 0
    for i in range(start, stop):
        space.part_rows[part[i]] += 1
    place, occupied = start, 0
    for p in range(parts):
        size = space.part_rows[p]
        space.part_rows[p] = place
        if size > 0:
            space.part_start[occupied] = place
            occupied += 1
        place += size
    space.part_start[occupied] = stop
    each = codes.shape[1]
    for i in range(start, stop):
        to = space.part_rows[part[i]]
        space.part_rows[part[i]] += 1
        for a in range(each):
            rows.next_codes[to, a] = codes[i, a]
        rows.next_sensitive[to] = rows.sensitive[i]
        rows.next_row[to] = rows.row[i]
    return occupied


@compiled_in_place
def carry_out(rows: Rows, start: int, stop: int) -> None:
    """Make the places last laid out those of the group.

    Args:
        rows: the rows.
        start: first row of the group.
        stop: row after its last.
    """
    each = rows.codes.shape[1]
    for i in range(start, stop):
        for a in range(each):
            rows.codes[i, a] = rows.next_codes[i, a]
        rows.sensitive[i] = rows.next_sensitive[i]
        rows.row[i] = rows.next_row[i]


@compiled_in_place
def push(space: Space, waiting: int, parts: int) -> int:
    """Put the parts on the stack, the smallest on top, so that it never holds more than log2(rows) times the parts.

    Args:
        space: working space.
        waiting: number of groups that wait.
        parts: parts the last group was cut into.
    """
    smallest = 0
    for p in range(parts):
        size = space.part_start[p + 1] - space.part_start[p]
        if size <= space.part_start[smallest + 1] - space.part_start[smallest]:
            smallest = p
    for place in range(parts):
        p = place
        if place == parts - 1:
            p = smallest
        elif place == smallest:
            p = parts - 1
        space.stack[2 * waiting], space.stack[2 * waiting + 1] = space.part_start[p], space.part_start[p + 1]
        waiting += 1
    return waiting
