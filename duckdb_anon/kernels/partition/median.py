"""The cuts of Mondrian: the widest attribute at its lower median, or at the children of a hierarchy node.

LeFevre, DeWitt and Ramakrishnan 2006 (strict and relaxed), with the multiway cut of a hierarchy at the
lowest common ancestor of the group's values. An attribute that cannot be cut under the requirement gives
way to the next widest. Nominal attributes without a hierarchy are cut as ordered codes; as their order means nothing,
the rows with the median value may go to either side: where {<= median} against {> median} is not allowed, {< median}
against {>= median} is tried. Without this, a frequent value that comes last in the alphabet could never be cut off
(on a census table with five nominal columns of seven: 17.2% instead of 7.5% NCP at k = 10).
Cost: linear in the rows of the group and attribute tried.
"""

from __future__ import annotations

from typing import Literal

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.kernels.partition.flat_attributes import NOMINAL, TREE, Lines, common_depth, width_of
from duckdb_anon.kernels.partition.partition_state import (
    CHILDREN,
    TIES,
    UP_TO,
    Rows,
    Space,
    carry_out,
    cells_of,
    extremes,
    lay_out,
    push,
)
from duckdb_anon.kernels.partition.privacy_checks_jit import satisfied
from duckdb_anon.kernels.partition.rules import Rules, Tally
from duckdb_anon.model.coded_table import IntArray

Width = Literal["range", "distinct", "spread"]
RANGE, DISTINCT, SPREAD = range(3)
WIDTHS: dict[Width, int] = {"range": RANGE, "distinct": DISTINCT, "spread": SPREAD}


@compiled_in_place
def groups_at_median(
    lines: Lines,
    rows: Rows,
    rules: Rules,
    space: Space,
    tally: Tally,
    min_size: int,
    width: int,
    relaxed: int,
    once: int,
    start: int,
    stop: int,
    flag: IntArray,
    settled: IntArray,
) -> int:
    """Cut the group start .. stop - 1, and its parts unless `once`, at medians; return the parts of the first group.

    Each group is cut at its first allowed median, attributes by decreasing width. See `loss_cut.groups_by_loss`.

    Args:
        lines: the attributes.
        rows: the table.
        rules: what every part must satisfy.
        space: working space.
        tally: working space.
        min_size: fewest rows of a part.
        width: how attributes are ranked. RANGE: share of the table's range (leaves under the lowest common ancestor
            for hierarchies); DISTINCT: number of different values; SPREAD: sum of squared deviations from the mean,
            not normalized, so attributes on wide scales go first.
        relaxed: 1 to deal rows with the median value to both sides (LeFevre et al. 2006, section 4.2).
        once: 1 to make one cut only.
        start: first place of the group.
        stop: its end.
        flag: not 0 once the work is to stop.
        settled: rows in finished groups, for display.
    """
    space.stack[0], space.stack[1] = start, stop
    waiting, parts = 1, 1
    while waiting > 0 and flag[0] == 0:
        waiting -= 1
        first, end, j, below = space.stack[2 * waiting], space.stack[2 * waiting + 1], -1, 0
        parts = 1
        if end - first >= 2 * min_size:
            _widths(lines, rows, space, width, first, end)
            j = _widest(space)
        while j >= 0 and flag[0] == 0:
            if _set_cut(lines, rows, space, j, relaxed, below, first, end):
                parts = lay_out(lines, rows, space, first, end)
                if parts > 1 and parts_hold(rows, rules, space, tally, min_size, parts):
                    carry_out(rows, first, end)
                    break
                parts = 1
            if below == 0 and lines.kind[j] == NOMINAL and relaxed == 0:
                below = 1
            else:
                j, below = _widest(space), 0
        if parts == 1:
            rows.first[first] = 1
            settled[0] += end - first
        elif once == 1:
            return parts
        else:
            waiting = push(space, waiting, parts)
    return parts


@compiled_in_place
def _widths(lines: Lines, rows: Rows, space: Space, width: int, start: int, stop: int) -> None:
    """Set the width of the group on each attribute, -1 where it has one value."""
    extremes(rows.codes, start, stop, space.low, space.high)
    for j in range(len(lines.kind)):
        space.own[j] = -1.0
        if space.low[j] != space.high[j]:
            space.own[j] = _width(lines, rows, space, j, width, start, stop)


@compiled_in_place
def _widest(space: Space) -> int:
    """Take the next widest attribute, of equal ones the first; -1 if none is left."""
    widest = 0
    for j in range(1, len(space.own)):
        if space.own[j] > space.own[widest]:
            widest = j
    if space.own[widest] < 0:
        return -1
    space.own[widest] = -1.0
    return widest


@compiled_in_place
def parts_hold(rows: Rows, rules: Rules, space: Space, tally: Tally, min_size: int, parts: int) -> bool:
    """Say whether every part that is laid out satisfies the rules.

    Args:
        rows: the rows.
        rules: what every part must meet.
        space: working space.
        tally: counts of a check.
        min_size: least number of rows of a part.
        parts: number of parts.
    """
    for p in range(parts):
        if space.part_start[p + 1] - space.part_start[p] < min_size:
            return False
    for p in range(parts):
        if not satisfied(
            rules, tally, rows.next_sensitive, rows.next_row, space.part_start[p], space.part_start[p + 1]
        ):
            return False
    return True


@compiled_in_place
def _set_cut(lines: Lines, rows: Rows, space: Space, j: int, relaxed: int, below: int, start: int, stop: int) -> bool:
    """Describe the cut of an attribute; say whether there is one."""
    space.cut[1] = j
    if lines.kind[j] == TREE:
        space.cut[0] = CHILDREN
        space.cut[3] = common_depth(lines, j, space.low[j], space.high[j])
        return True
    cells = cells_of(rows.codes, start, stop, j, space)
    wanted = (stop - start - 1) // 2
    before, cell = 0, 0
    while before + space.cell_rows[cell] <= wanted:
        before += space.cell_rows[cell]
        cell += 1
    space.cut[0] = UP_TO
    space.cut[2] = space.cell_code[cell]
    if relaxed == 1:
        space.cut[0] = TIES
        space.cut[4] = (stop - start + 1) // 2 - before
        return True
    if below == 1:
        space.cut[2] = space.cell_code[cell] - 1
        return cell > 0
    return cell + 1 < cells


@compiled_in_place
def _width(lines: Lines, rows: Rows, space: Space, j: int, width: int, start: int, stop: int) -> float:
    """Width of the group on an attribute.

    SPREAD is the size of the group times the sum of squared deviations: the factor is the same for all attributes
    of a group, and keeps ties of whole-number attributes exact.
    """
    if width == RANGE:
        return width_of(lines, j, space.low[j], space.high[j], 0)
    cells = cells_of(rows.codes, start, stop, j, space)
    if width == DISTINCT:
        return float(cells)
    first, second = 0.0, 0.0
    for cell in range(cells):
        value = lines.position[lines.offset[j] + space.cell_code[cell]]
        first += space.cell_rows[cell] * value
        second += space.cell_rows[cell] * value * value
    return second * (stop - start) - first * first
