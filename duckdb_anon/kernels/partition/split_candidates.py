"""The cuts of one group and the loss to expect of each, for median cuts and for cuts by loss.

Median (LeFevre, DeWitt and Ramakrishnan 2006): the widest attribute at its lower median, or into the children of a
hierarchy's node; the next widest where the parts fail. The order of nominal attributes means nothing, so {< median}
against {>= median} is tried too, without which a frequent value that comes last could never be cut off.

Loss: ordered attributes may be cut between any two values; nominal ones into their most frequent values and the rest,
or one value and the rest; hierarchies into all children of the lowest common ancestor, or one and the rest. A part of
n rows that needs k can become n // k groups, and more groups of the same box lose less: its expected loss is
n * width * (n // k) ** -e, width being the sum of the normalized certainty penalties (Xu et al. 2006), e below
-log2(1 - s / 2), s the share of the widest attribute, so that cutting off k rows never looks better than halving. In
groups of up to 512 times the fewest rows, the best cuts of four attributes are compared by the boxes of their parts.

Cost: linear in the rows of the group and the attributes, four times in smaller groups.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.partition.partition_state import (
    CHILDREN,
    FREQUENT,
    NOMINAL,
    ONE_CHILD,
    ONLY,
    TIES,
    TREE,
    UP_TO,
    Columns,
    Rows,
    Workspace,
    common_depth,
    distinct,
    extremes,
    group_extremes,
    lay_out,
    order_by_rows,
    values_of,
    width_of,
)
from duckdb_anon.model.coded_table import FloatArray, IntArray

AT_MEDIAN, BELOW_MEDIAN, TIES_AT_MEDIAN = 10, 11, 12
"""Cuts whose code is found when they are tried."""
RANGE, DISTINCT, SPREAD = range(3)
NO_MORE, NO_ROOM = -1, -2
"""Instead of a number of cuts: there are no others than before; there is too little working space."""
COMPARED_SIZE = 512
"""Groups of up to so many times the fewest rows are cut by boxes too, not by counts alone."""
_COMPARED = 4
_EXPONENT = 0.15
"""Chosen on two tables of seven attributes; between .12 and .20 the loss differs by less than 2%."""
_MARGIN = 0.9
_NOTHING = 1e-12
"""Sums of widths that differ by rounding only save nothing."""


class Candidates(NamedTuple):
    """Cuts of one group, attribute after attribute; working space for one thread."""

    kind: IntArray  # kind of each cut, see `partition_state`
    attribute: IntArray  # which attribute it cuts
    at: IntArray  # see `partition_state`
    loss: FloatArray  # what cuts are ordered by; infinite where a cut was tried or is none
    turn: IntArray  # 0 for cuts that are tried before all others, 1 for these
    found: IntArray  # number of cuts, shape (1,)
    best: IntArray  # for each attribute its most promising cut, -1 if it has none
    low: IntArray  # smallest code of one part on each attribute
    high: IntArray  # largest code

    @staticmethod
    def of(columns: Columns, rows: int) -> Candidates:
        """Make space for groups of up to `rows` rows."""
        attributes = len(columns.kind)
        most = 2 * int(np.minimum(np.diff(columns.offset), rows).sum()) + 2 * attributes
        return Candidates(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty(most),
            np.empty(most, np.int64),
            np.zeros(1, np.int64),
            np.empty(attributes, np.int64),
            np.empty(attributes, np.int64),
            np.empty(attributes, np.int64),
        )


class MedianScore(NamedTuple):
    """How attributes are ranked for median cuts."""

    # RANGE, the share of the table's range; DISTINCT, the number of values; SPREAD, the sum of squared deviations from
    # the mean, not normalized
    width: int
    relaxed: int  # 1 to deal rows with the median value to both sides (LeFevre et al. 2006, section 4.2)


class LossScore(NamedTuple):
    """Cuts by the loss to expect."""

    compared_size: int = COMPARED_SIZE


@compiled
def add_cut(found: Candidates, kind: int, attribute: int, at: int, loss: float) -> None:
    """Note a cut."""
    index = found.found[0]
    found.kind[index], found.attribute[index], found.at[index] = kind, attribute, at
    found.loss[index], found.turn[index] = loss, 1
    found.found[0] += 1


@compiled
def next_cut(found: Candidates) -> int:
    """Take the next cut to try, of equal ones the first; -1 if none is left."""
    chosen = -1
    for index in range(found.found[0]):
        if found.loss[index] == np.inf:
            continue
        if (
            chosen < 0
            or found.turn[index] < found.turn[chosen]
            or (found.turn[index] == found.turn[chosen] and found.loss[index] < found.loss[chosen])
        ):
            chosen = index
    if chosen >= 0:
        found.loss[chosen] = np.inf
    return chosen


@compiled
def median_cuts(
    columns: Columns, rows: Rows, space: Workspace, found: Candidates, score: MedianScore,
    min_size: int, start: int, stop: int, attempt: int,
) -> int:  # fmt: skip
    """List a cut of each attribute at its median, widest first; return how many there are."""
    if attempt > 0:
        return NO_MORE
    group_extremes(columns, rows, space, start, stop)
    found.found[0] = 0
    for j in range(len(columns.kind)):
        if space.low[j] == space.high[j]:
            continue
        width = _median_width(columns, rows, space, j, score.width, start, stop)
        if columns.kind[j] == TREE:
            add_cut(found, CHILDREN, j, 0, -width)
        elif score.relaxed == 1:
            add_cut(found, TIES_AT_MEDIAN, j, 0, -width)
        else:
            add_cut(found, AT_MEDIAN, j, 0, -width)
            if columns.kind[j] == NOMINAL:
                add_cut(found, BELOW_MEDIAN, j, 0, -width)
    return found.found[0]


@compiled
def _median_width(columns: Columns, rows: Rows, space: Workspace, j: int, width: int, start: int, stop: int) -> float:
    """Width of the group on an attribute.

    SPREAD is the size of the group times the sum of squared deviations: the factor is the same for all attributes
    of a group, and keeps ties of whole-number attributes exact.
    """
    if width == RANGE:
        return width_of(columns, j, space.low[j], space.high[j], 0)
    values = values_of(columns, rows, space, j, start, stop)
    if width == DISTINCT:
        return float(values)
    first, second = 0.0, 0.0
    for v in range(values):
        position = columns.position[columns.offset[j] + space.value[v]]
        first += space.value_rows[v] * position
        second += space.value_rows[v] * position * position
    return second * (stop - start) - first * first


@compiled
def set_cut(
    columns: Columns, rows: Rows, space: Workspace, found: Candidates, chosen: int, start: int, stop: int
) -> bool:
    """Set `space.cut` to a candidate; return whether there is such a cut."""
    j, kind = found.attribute[chosen], found.kind[chosen]
    space.cut[0], space.cut[1], space.cut[2] = kind, j, found.at[chosen]
    if columns.kind[j] == TREE:
        space.cut[3] = common_depth(columns, j, space.low[j], space.high[j])
    if kind < AT_MEDIAN:
        return True
    values = values_of(columns, rows, space, j, start, stop)
    middle, before, v = (stop - start - 1) // 2, 0, 0
    while before + space.value_rows[v] <= middle:
        before += space.value_rows[v]
        v += 1
    space.cut[0], space.cut[2] = UP_TO, space.value[v]
    if kind == TIES_AT_MEDIAN:
        space.cut[0] = TIES
        space.cut[4] = (stop - start + 1) // 2 - before
        return True
    if kind == BELOW_MEDIAN:
        space.cut[2] -= 1
        return v > 0
    return v + 1 < values


@compiled
def loss_cuts(
    columns: Columns, rows: Rows, space: Workspace, found: Candidates, score: LossScore,
    min_size: int, start: int, stop: int, attempt: int,
) -> int:  # fmt: skip
    """List the cuts that save something, and compare the most promising ones; return how many there are."""
    if attempt > 0:
        return NO_MORE
    attributes, size = len(columns.kind), stop - start
    group_extremes(columns, rows, space, start, stop)
    for j in range(attributes):
        values = 0
        if columns.kind[j] == NOMINAL and space.low[j] != space.high[j]:
            if size == len(rows.row):
                values = values_of(columns, rows, space, j, start, stop)
            else:
                values = distinct(columns, rows, space, j, start, stop)
        space.width[j] = width_of(columns, j, space.low[j], space.high[j], values)
    exponent, total = _exponent_of_group(space)
    found.found[0] = 0
    for j in range(attributes):
        values = 0
        if space.low[j] != space.high[j]:
            values = values_of(columns, rows, space, j, start, stop)
        _attribute_cuts(columns, space, found, j, values, size, total, exponent, min_size)
    if size <= score.compared_size * min_size:
        _compare(columns, rows, space, found, exponent, min_size, start, stop)
    else:
        for j in range(attributes):
            if found.best[j] >= 0:
                found.turn[found.best[j]] = 0
    return found.found[0]


@compiled
def _exponent_of_group(space: Workspace) -> tuple[float, float]:
    """How fast the loss of the group's parts falls with further cuts, and its width on all attributes."""
    total, widest = 0.0, 0.0
    for j in range(len(space.width)):
        total += space.width[j]
        widest = max(widest, space.width[j])
    if total <= 0:
        return _EXPONENT, total
    return min(_EXPONENT, -_MARGIN * math.log2(1 - widest / total / 2)), total


@compiled
def _expected_loss(rows: int, width: float, exponent: float, min_size: int) -> float:
    """Expected loss of a part of that summed width, of a group with that exponent."""
    groups = rows // min_size
    if groups < 2:
        return rows * width
    return rows * width * groups**-exponent


@compiled
def _attribute_cuts(
    columns: Columns, space: Workspace, found: Candidates, j: int, values: int, size: int,
    total: float, exponent: float, min_size: int,
) -> None:  # fmt: skip
    """Add the cuts of one attribute, whose values stand in `space`, and note the most promising one."""
    first = found.found[0]
    if space.low[j] != space.high[j]:
        others = total - space.width[j]
        if columns.kind[j] == TREE:
            _tree_cuts(columns, space, found, j, values, size, others, exponent, min_size)
        elif columns.kind[j] == NOMINAL:
            _nominal_cuts(columns, space, found, j, values, size, others, exponent, min_size)
        else:
            _ordered_cuts(columns, space, found, j, values, size, others, exponent, min_size)
    found.best[j] = -1
    for index in range(first, found.found[0]):
        if found.loss[index] < (np.inf if found.best[j] < 0 else found.loss[found.best[j]]):
            found.best[j] = index


@compiled
def _propose(
    space: Workspace, found: Candidates, j: int, kind: int, at: int, size: int, left: int, others: float,
    below: float, above: float, exponent: float, min_size: int,
) -> None:  # fmt: skip
    """Note a binary cut if it leaves enough rows on both sides and saves something on its own attribute."""
    right = size - left
    saved = size * space.width[j] - left * below - right * above
    if left < min_size or right < min_size or saved <= _NOTHING:
        return
    loss = _expected_loss(left, others + below, exponent, min_size)
    add_cut(found, kind, j, at, loss + _expected_loss(right, others + above, exponent, min_size))


@compiled
def _ordered_cuts(
    columns: Columns, space: Workspace, found: Candidates, j: int, values: int, size: int,
    others: float, exponent: float, min_size: int,
) -> None:  # fmt: skip
    low, high, left = space.value[0], space.value[values - 1], 0
    for v in range(values - 1):
        left += space.value_rows[v]
        if left < min_size:
            continue
        if size - left < min_size:
            break
        at = space.value[v]
        below = width_of(columns, j, low, at, 0)
        above = width_of(columns, j, space.value[v + 1], high, 0)
        _propose(space, found, j, UP_TO, at, size, left, others, below, above, exponent, min_size)


@compiled
def _nominal_cuts(
    columns: Columns, space: Workspace, found: Candidates, j: int, values: int, size: int,
    others: float, exponent: float, min_size: int,
) -> None:  # fmt: skip
    """Cut off the most frequent values, or one value; rank the values by frequency."""
    order_by_rows(space.value_rows, space.value_order, values)
    for rank in range(values):
        space.rank[columns.offset[j] + space.value[space.value_order[rank]]] = rank
    left, share = 0, 1.0 / columns.domain[j]
    for rank in range(values - 1):
        left += space.value_rows[space.value_order[rank]]
        below = 0.0 if rank == 0 else (rank + 1) * share
        above = 0.0 if values - rank == 2 else (values - rank - 1) * share
        _propose(space, found, j, FREQUENT, rank, size, left, others, below, above, exponent, min_size)
    rest = 0.0 if values == 2 else (values - 1) * share
    for rank in range(1, values):
        rows = space.value_rows[space.value_order[rank]]
        _propose(space, found, j, ONLY, rank, size, rows, others, 0.0, rest, exponent, min_size)


@compiled
def _tree_cuts(
    columns: Columns, space: Workspace, found: Candidates, j: int, values: int, size: int,
    others: float, exponent: float, min_size: int,
) -> None:  # fmt: skip
    """List the cuts into all children of the lowest common ancestor, or one child and the rest, which keeps it.

    The leaves of a child are neighbours, so the children follow one another in the list of leaves.
    """
    depth = common_depth(columns, j, space.low[j], space.high[j])
    below = columns.chain_at[j] + (depth + 1) * (columns.offset[j + 1] - columns.offset[j])
    index = found.found[0]
    add_cut(found, CHILDREN, j, 0, np.inf)  # of equal cuts the first is taken; its loss follows
    children, first, rows, loss, remaining, enough = 0, 0, 0, 0.0, 0.0, True
    for v in range(values):
        node = columns.chain[below + space.value[v]]
        rows += space.value_rows[v]
        if v + 1 < values and columns.chain[below + space.value[v + 1]] == node:
            continue
        width = width_of(columns, j, space.value[first], space.value[v], 0)
        loss += _expected_loss(rows, others + width, exponent, min_size)
        remaining += rows * width
        enough = enough and rows >= min_size
        at = columns.ordinal[columns.node_at[j] + node]
        _propose(space, found, j, ONE_CHILD, at, size, rows, others, width, space.width[j], exponent, min_size)
        children, first, rows = children + 1, v + 1, 0
    if enough and size * space.width[j] - remaining > _NOTHING:
        found.loss[index] = loss
    if children < 3:
        found.found[0] = index + 1


@compiled
def _compare(
    columns: Columns, rows: Rows, space: Workspace, found: Candidates, exponent: float, min_size: int,
    start: int, stop: int,
) -> None:  # fmt: skip
    """Measure the most promising cuts by the tight boxes of their parts on all attributes; they are tried first."""
    attributes = len(columns.kind)
    for _ in range(_COMPARED):
        chosen = -1
        for j in range(attributes):
            best = found.best[j]
            if best >= 0 and found.turn[best] == 1 and (chosen < 0 or found.loss[best] < found.loss[chosen]):
                chosen = best
        if chosen < 0:
            break
        set_cut(columns, rows, space, found, chosen, start, stop)
        parts = lay_out(columns, rows, space, start, stop)
        loss = 0.0
        for p in range(parts):
            first, end = space.part_start[p], space.part_start[p + 1]
            extremes(columns, rows, first, end, found.low, found.high)
            width = 0.0
            for j in range(attributes):
                values = 0
                if columns.kind[j] == NOMINAL and found.low[j] != found.high[j]:
                    values = distinct(columns, rows, space, j, first, end)
                width += width_of(columns, j, found.low[j], found.high[j], values)
            loss += _expected_loss(end - first, width, exponent, min_size)
        found.loss[chosen], found.turn[chosen] = loss, 0
