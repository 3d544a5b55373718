"""Cuts chosen by what they save: the attribute and the cut point after which the least loss is to be expected.

Normalized certainty penalty (Xu et al. 2006): share of the range for ordered attributes, share of the domain
for a set of nominal values, share of the leaves for a hierarchy node. Of the cuts there are (see `candidates`), the
one with the least expected loss (see `expected_loss`) is taken. In groups of up to 512 times the fewest rows, the
best cuts of the four most promising attributes are compared by the tight boxes of their parts on all attributes; in
larger groups the parts are as wide as the group there, and comparing changed the loss of two tables by less than 0.5%
either way. If the parts fail the requirement, the next cut is tried.

Cost: linear in the rows of the group and the attributes, four times in smaller groups; a pass more for each cut that
fails.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.kernels.partition.expected_loss import expected_loss
from duckdb_anon.kernels.partition.flat_attributes import NOMINAL, TREE, Lines, common_depth, width_of
from duckdb_anon.kernels.partition.median import parts_hold
from duckdb_anon.kernels.partition.partition_state import (
    Rows,
    Space,
    carry_out,
    cells_of,
    extremes,
    lay_out,
    push,
    values_of,
)
from duckdb_anon.kernels.partition.rules import Rules, Tally
from duckdb_anon.kernels.partition.split_candidates import Candidates, exponent_of_group, list_attribute
from duckdb_anon.kernels.partition.table_counts import cells_of_table, extremes_of_table
from duckdb_anon.model.coded_table import IntArray

_COMPARED = 4
COMPARED_SIZE = 512
"""Groups of up to so many times the fewest rows are cut by boxes too, not by counts alone."""


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
    whole = size == len(rows.row)
    if whole:
        extremes_of_table(lines, rows.counts, space.low, space.high)
    else:
        extremes(rows.codes, start, stop, space.low, space.high)
    for j in range(each):
        values = 0
        if lines.kind[j] == NOMINAL and space.low[j] != space.high[j]:
            if whole:
                values = cells_of_table(lines, rows.counts, j, space.cell_code, space.cell_rows)
            else:
                values = values_of(rows.codes, start, stop, j, space)
        space.own[j] = width_of(lines, j, space.low[j], space.high[j], values)
    exponent, total = exponent_of_group(space)
    found.found[0] = 0
    for j in range(each):
        cells = 0
        if space.low[j] != space.high[j]:
            if whole:
                cells = cells_of_table(lines, rows.counts, j, space.cell_code, space.cell_rows)
            else:
                cells = cells_of(rows.codes, start, stop, j, space)
        list_attribute(lines, space, found, j, cells, size, total, exponent, min_size)
    if size <= COMPARED_SIZE * min_size:
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
