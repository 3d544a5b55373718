"""Cuts chosen by what they save: the attribute and the cut point after which the least loss is to be expected.

Normalized certainty penalty (Xu et al. 2006): share of the range for ordered attributes, share of the domain
for a set of nominal values, share of the leaves for a hierarchy node. Ordered attributes may be cut between
any two values; nominal ones into their most frequent values and the rest, or one value and the rest;
hierarchies into the children of the lowest common ancestor, or one child and the rest. A cut must save
something on its own attribute; of those the one with the least expected loss (see `expected_loss`) is taken. In
groups of up to 512 times the fewest rows, the best cuts of the four most promising attributes are compared by the
tight boxes of their parts on all attributes; in larger groups the parts are as wide as the group there, and comparing
changed the loss of two tables by less than 0.5% either way. If the parts fail the requirement, the next cut is tried.

Cost: linear in the rows of the group and the attributes, four times in smaller groups; a pass more for each cut that
fails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckdb_anon.kernels.compiled import compiled_in_place
from duckdb_anon.kernels.groups.expected_loss import expected_loss, exponent_of
from duckdb_anon.kernels.groups.layout import (
    CHILDREN,
    FREQUENT,
    ONE_CHILD,
    ONLY,
    UP_TO,
    Rows,
    Space,
    carry_out,
    cells_of,
    extremes,
    lay_out,
    push,
    values_of,
)
from duckdb_anon.kernels.groups.lines import NOMINAL, TREE, Lines, common_depth, width_of
from duckdb_anon.kernels.groups.median import parts_hold
from duckdb_anon.kernels.groups.rules import Rules, Tally
from duckdb_anon.model.table import FloatArray, IntArray

_COMPARED = 4
_COMPARED_SIZE = 512
# Sums of widths that differ by rounding only save nothing.
_NOTHING = 1e-12


class Candidates(NamedTuple):
    """Cuts of one group, and working space for one thread.

    Attributes:
        kind: kind of each cut, see `layout`.
        attribute: which attribute it cuts.
        at: see `layout`.
        loss: the loss expected after it; infinite once it was tried.
        found: number of cuts, shape (1,).
        best: for each attribute its most promising cut, -1 if it has none.
        measured: loss measured of that cut.
        low: smallest code of one part on each attribute.
        high: largest code.
    """

    kind: IntArray
    attribute: IntArray
    at: IntArray
    loss: FloatArray
    found: IntArray
    best: IntArray
    measured: FloatArray
    low: IntArray
    high: IntArray

    @staticmethod
    def of(lines: Lines, rows: int) -> Candidates:
        """Make space for groups of up to `rows` rows."""
        each = len(lines.kind)
        most = 2 * int(np.minimum(np.diff(lines.offset), rows).sum()) + 2 * each
        return Candidates(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty(most),
            np.zeros(1, np.int64),
            np.empty(each, np.int64),
            np.empty(each),
            np.empty(each, np.int64),
            np.empty(each, np.int64),
        )


@compiled_in_place
def groups_by_loss(
    lines: Lines,
    rows: Rows,
    rules: Rules,
    space: Space,
    tally: Tally,
    found: Candidates,
    min_size: int,
    once: int,
    start: int,
    stop: int,
    flag: IntArray,
    settled: IntArray,
) -> int:
    """Cut the group start .. stop - 1, and its parts unless `once`, where the least loss is to be expected.

    Args:
        lines: the attributes.
        rows: the table; `rows.first` is set where a finished group starts.
        rules: what every part must satisfy.
        space: working space; after `once` its `part_start` has the parts.
        tally: working space.
        found: working space.
        min_size: fewest rows of a group.
        once: 1 to make one cut only.
        start: first place of the group.
        stop: its end.
        flag: not 0 once the work is to stop.
        settled: rows in finished groups, for display: threads may overwrite one another's sum.

    Returns:
        Number of parts of the first group.
    """
    space.stack[0], space.stack[1] = start, stop
    waiting, parts = 1, 1
    while waiting > 0 and flag[0] == 0:
        waiting -= 1
        first, end, chosen = space.stack[2 * waiting], space.stack[2 * waiting + 1], -1
        parts = 1
        if end - first >= 2 * min_size:
            _list_cuts(lines, rows, space, found, min_size, first, end)
            chosen = _next_cut(found)
        while chosen >= 0 and flag[0] == 0:
            parts = _set_cut(lines, rows, space, found, chosen, first, end)
            if parts > 1 and parts_hold(rows, rules, space, tally, min_size, parts):
                carry_out(rows, first, end)
                break
            chosen, parts = _next_cut(found), 1
        if parts == 1:
            rows.first[first] = 1
            settled[0] += end - first
        elif once == 1:
            return parts
        else:
            waiting = push(space, waiting, parts)
    return parts


@compiled_in_place
def _list_cuts(lines: Lines, rows: Rows, space: Space, found: Candidates, min_size: int, start: int, stop: int) -> None:
    """List the cuts of a group, and measure the most promising ones."""
    each, size = len(lines.kind), stop - start
    extremes(rows.codes, start, stop, space.low, space.high)
    total, widest = 0.0, 0.0
    for j in range(each):
        values = 0
        if lines.kind[j] == NOMINAL and space.low[j] != space.high[j]:
            values = values_of(rows.codes, start, stop, j, space)
        space.own[j] = width_of(lines, j, space.low[j], space.high[j], values)
        total += space.own[j]
        widest = max(widest, space.own[j])
    exponent = exponent_of(widest, total)
    found.found[0] = 0
    for j in range(each):
        first = found.found[0]
        if space.low[j] != space.high[j]:
            others, cells = total - space.own[j], cells_of(rows.codes, start, stop, j, space)
            if lines.kind[j] == TREE:
                _tree_cuts(lines, space, found, j, cells, size, others, exponent, min_size)
            elif lines.kind[j] == NOMINAL:
                nominal_cuts(lines, space, found, j, cells, size, others, exponent, min_size)
            else:
                ordered_cuts(lines, space, found, j, cells, size, others, exponent, min_size)
        found.best[j] = -1
        for place in range(first, found.found[0]):
            if found.best[j] < 0 or found.loss[place] < found.loss[found.best[j]]:
                found.best[j] = place
    if size <= _COMPARED_SIZE * min_size:
        _measure(lines, rows, space, found, exponent, min_size, start, stop)
    else:
        for j in range(each):
            found.measured[j] = np.inf if found.best[j] < 0 else found.loss[found.best[j]]


@compiled_in_place
def _next_cut(found: Candidates) -> int:
    """Take the next cut to try: those compared first, then all others, by increasing loss; -1 if none is left."""
    chosen = -1
    for j in range(len(found.best)):
        if found.measured[j] < np.inf and (chosen < 0 or found.measured[j] < found.measured[chosen]):
            chosen = j
    if chosen >= 0:
        found.measured[chosen] = np.inf
        chosen = found.best[chosen]
    else:
        for place in range(found.found[0]):
            if found.loss[place] < np.inf and (chosen < 0 or found.loss[place] < found.loss[chosen]):
                chosen = place
    if chosen >= 0:
        found.loss[chosen] = np.inf
    return chosen


@compiled_in_place
def _set_cut(lines: Lines, rows: Rows, space: Space, found: Candidates, chosen: int, start: int, stop: int) -> int:
    """Lay a cut out; return the number of parts."""
    j = found.attribute[chosen]
    space.cut[0], space.cut[1], space.cut[2] = found.kind[chosen], j, found.at[chosen]
    if lines.kind[j] == TREE:
        space.cut[3] = common_depth(lines, j, space.low[j], space.high[j])
    return lay_out(lines, rows, space, start, stop)


@compiled_in_place
def _measure(
    lines: Lines, rows: Rows, space: Space, found: Candidates, exponent: float, min_size: int, start: int, stop: int
) -> None:
    """Measure the most promising cuts by the tight boxes of their parts on all attributes."""
    each = len(lines.kind)
    for j in range(each):
        found.measured[j] = np.inf
    for _ in range(_COMPARED):
        chosen = -1
        for j in range(each):
            best = found.best[j]
            if best < 0 or found.measured[j] < np.inf:
                continue
            if chosen < 0 or found.loss[best] < found.loss[found.best[chosen]]:
                chosen = j
        if chosen < 0:
            break
        parts = _set_cut(lines, rows, space, found, found.best[chosen], start, stop)
        loss = 0.0
        for p in range(parts):
            first, end = space.part_start[p], space.part_start[p + 1]
            extremes(rows.next_codes, first, end, found.low, found.high)
            width = 0.0
            for j in range(each):
                values = 0
                if lines.kind[j] == NOMINAL and found.low[j] != found.high[j]:
                    values = values_of(rows.next_codes, first, end, j, space)
                width += width_of(lines, j, found.low[j], found.high[j], values)
            loss += expected_loss(end - first, width, exponent, min_size)
        found.measured[chosen] = loss


@compiled_in_place
def _propose(
    found: Candidates,
    j: int,
    kind: int,
    at: int,
    size: int,
    left: int,
    own: float,
    others: float,
    below: float,
    above: float,
    exponent: float,
    min_size: int,
) -> None:
    """Note a binary cut if it leaves enough rows on both sides and saves something on its own attribute."""
    right = size - left
    if left < min_size or right < min_size or size * own - left * below - right * above <= _NOTHING:
        return
    place = found.found[0]
    found.kind[place], found.attribute[place], found.at[place] = kind, j, at
    found.loss[place] = expected_loss(left, others + below, exponent, min_size) + expected_loss(
        right, others + above, exponent, min_size
    )
    found.found[0] += 1


@compiled_in_place
def ordered_cuts(
    lines: Lines,
    space: Space,
    found: Candidates,
    j: int,
    cells: int,
    size: int,
    others: float,
    exponent: float,
    min_size: int,
) -> None:
    """List the cuts between two values, given the values of the group with their numbers of rows.

    Args:
        lines: the attributes.
        space: working space.
        found: the best cuts so far, filled in.
        j: the attribute.
        cells: number of different codes in the group.
        size: rows of the group.
        others: loss of the other attributes.
        exponent: power of the size in what a cut is ranked by.
        min_size: least number of rows of a part.
    """
    low, high, left = space.cell_code[0], space.cell_code[cells - 1], 0
    for cell in range(cells - 1):
        left += space.cell_rows[cell]
        if left < min_size:
            continue
        if size - left < min_size:
            break
        at = space.cell_code[cell]
        below = width_of(lines, j, low, at, 0)
        above = width_of(lines, j, space.cell_code[cell + 1], high, 0)
        _propose(found, j, UP_TO, at, size, left, space.own[j], others, below, above, exponent, min_size)


@compiled_in_place
def nominal_cuts(
    lines: Lines,
    space: Space,
    found: Candidates,
    j: int,
    cells: int,
    size: int,
    others: float,
    exponent: float,
    min_size: int,
) -> None:
    """List the cuts into most frequent values and rest, and into one value and rest; rank the values.

    Args:
        lines: the attributes.
        space: working space.
        found: the best cuts so far, filled in.
        j: the attribute.
        cells: number of different codes in the group.
        size: rows of the group.
        others: loss of the other attributes.
        exponent: power of the size in what a cut is ranked by.
        min_size: least number of rows of a part.
    """
    most = 0
    for cell in range(cells):
        most = max(most, space.cell_rows[cell])
    for cell in range(cells):
        # equally frequent values in the order of their codes
        space.cell_order[cell] = cell
    _sort_by_rows(space, cells)
    for rank in range(cells):
        space.rank[lines.offset[j] + space.cell_code[space.cell_order[rank]]] = rank
    left, share = 0, 1.0 / lines.domain[j]
    for rank in range(cells - 1):
        left += space.cell_rows[space.cell_order[rank]]
        below = 0.0 if rank == 0 else (rank + 1) * share
        above = 0.0 if cells - rank == 2 else (cells - rank - 1) * share
        _propose(found, j, FREQUENT, rank, size, left, space.own[j], others, below, above, exponent, min_size)
    rest = 0.0 if cells == 2 else (cells - 1) * share
    for rank in range(1, cells):
        rows = space.cell_rows[space.cell_order[rank]]
        _propose(found, j, ONLY, rank, size, rows, space.own[j], others, 0.0, rest, exponent, min_size)


@compiled_in_place
def _sort_by_rows(space: Space, cells: int) -> None:
    """Order the cells by decreasing number of rows, ties by code."""
    gap = 1
    while gap < cells // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, cells):
            cell = space.cell_order[i]
            j = i
            while j >= gap:
                other = space.cell_order[j - gap]
                if space.cell_rows[other] > space.cell_rows[cell]:
                    break
                if space.cell_rows[other] == space.cell_rows[cell] and other < cell:
                    break
                space.cell_order[j] = other
                j -= gap
            space.cell_order[j] = cell
        gap //= 3


@compiled_in_place
def _tree_cuts(
    lines: Lines,
    space: Space,
    found: Candidates,
    j: int,
    cells: int,
    size: int,
    others: float,
    exponent: float,
    min_size: int,
) -> None:
    """List the cuts into all children of the lowest common ancestor, or one child and the rest.

    The rest keeps its common ancestor. The leaves of a child are neighbours, so the children follow one another in
    the list of leaves.
    """
    own = space.own[j]
    depth = common_depth(lines, j, space.low[j], space.high[j])
    below = lines.chain_at[j] + (depth + 1) * (lines.offset[j + 1] - lines.offset[j])
    children, first, rows, loss, kept, enough = 0, 0, 0, 0.0, 0.0, True
    for cell in range(cells):
        node = lines.chain[below + space.cell_code[cell]]
        rows += space.cell_rows[cell]
        if cell + 1 < cells and lines.chain[below + space.cell_code[cell + 1]] == node:
            continue
        width = width_of(lines, j, space.cell_code[first], space.cell_code[cell], 0)
        loss += expected_loss(rows, others + width, exponent, min_size)
        kept += rows * width
        enough = enough and rows >= min_size
        children, first, rows = children + 1, cell + 1, 0
    if enough and size * own - kept > _NOTHING:
        place = found.found[0]
        found.kind[place], found.attribute[place], found.at[place], found.loss[place] = CHILDREN, j, 0, loss
        found.found[0] += 1
    if children < 3:
        return
    first, rows = 0, 0
    for cell in range(cells):
        node = lines.chain[below + space.cell_code[cell]]
        rows += space.cell_rows[cell]
        if cell + 1 < cells and lines.chain[below + space.cell_code[cell + 1]] == node:
            continue
        width = width_of(lines, j, space.cell_code[first], space.cell_code[cell], 0)
        at = lines.ordinal[lines.node_at[j] + node]
        _propose(found, j, ONE_CHILD, at, size, rows, own, others, width, own, exponent, min_size)
        first, rows = cell + 1, 0
