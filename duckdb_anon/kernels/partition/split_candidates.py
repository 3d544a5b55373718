"""The cuts of one group and the loss to expect of each, from the numbers of rows its values have.

Ordered attributes may be cut between any two values; nominal ones into their most frequent values and the rest, or
one value and the rest; hierarchies into the children of the lowest common ancestor, or one child and the rest. A cut
must save something on its own attribute. Counts are all that is read, so the cuts of a group too large to be held are
those of `loss_cut`, which calls the same functions. Cost: linear in the values that occur, a sort of nominal ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.kernels.partition.expected_loss import expected_loss, exponent_of
from duckdb_anon.kernels.partition.flat_attributes import NOMINAL, TREE, Lines, common_depth, width_of
from duckdb_anon.kernels.partition.partition_state import CHILDREN, FREQUENT, ONE_CHILD, ONLY, UP_TO, Space
from duckdb_anon.model.coded_table import FloatArray, IntArray

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
def list_counted(
    lines: Lines,
    space: Space,
    found: Candidates,
    at: IntArray,
    code: IntArray,
    rows: IntArray,
    size: int,
    min_size: int,
) -> None:
    """List the cuts of a group that is known by counts only.

    Args:
        lines: the attributes.
        space: working space; `rank` is set for nominal attributes.
        found: comes out with the cuts.
        at: where the values of each attribute start in `code`, shape (attributes + 1,).
        code: values that occur, ascending within an attribute.
        rows: rows that have each of them, 1 or more.
        size: rows of the group.
        min_size: fewest rows of a part.
    """
    for j in range(len(lines.kind)):
        space.low[j], space.high[j] = code[at[j]], code[at[j + 1] - 1]
        values = 0
        if lines.kind[j] == NOMINAL and space.low[j] != space.high[j]:
            values = at[j + 1] - at[j]
        space.own[j] = width_of(lines, j, space.low[j], space.high[j], values)
    exponent, total = exponent_of_group(space)
    found.found[0] = 0
    for j in range(len(lines.kind)):
        cells = at[j + 1] - at[j]
        for cell in range(cells):
            space.cell_code[cell] = code[at[j] + cell]
            space.cell_rows[cell] = rows[at[j] + cell]
        list_attribute(lines, space, found, j, cells, size, total, exponent, min_size)


@compiled_in_place
def exponent_of_group(space: Space) -> tuple[float, float]:
    """How fast the loss of the group's parts falls, and its width on all attributes, from `space.own`."""
    total, widest = 0.0, 0.0
    for j in range(len(space.own)):
        total += space.own[j]
        widest = max(widest, space.own[j])
    return exponent_of(widest, total), total


@compiled_in_place
def list_attribute(
    lines: Lines,
    space: Space,
    found: Candidates,
    j: int,
    cells: int,
    size: int,
    total: float,
    exponent: float,
    min_size: int,
) -> None:
    """Add the cuts of one attribute, whose values stand in `space`, and note the most promising one.

    Args:
        lines: the attributes.
        space: working space.
        found: the best cuts so far, filled in.
        j: the attribute.
        cells: number of different codes in the group.
        size: rows of the group.
        total: width of the group on all attributes.
        exponent: power of the size in what a cut is ranked by.
        min_size: least number of rows of a part.
    """
    first = found.found[0]
    if space.low[j] != space.high[j]:
        others = total - space.own[j]
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
