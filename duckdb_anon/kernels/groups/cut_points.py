"""All cuts of one attribute in all groups of a frame, each with the loss to expect after it.

See `outlook` for the expected loss. Cost: linear in the occupied (group, code) cells after they are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.groups.frame import Frame
from duckdb_anon.kernels.groups.outlook import Outlook
from duckdb_anon.kernels.groups.packed import count_runs, look_up, offsets_of, order_by, run_starts
from duckdb_anon.kernels.groups.trees import Tree
from duckdb_anon.kernels.groups.widths import range_width, set_width
from duckdb_anon.model.table import Attribute, FloatArray, IntArray

UP_TO, ONLY, CHILDREN = 0, 1, 2
# Sums of widths that differ by rounding only save nothing.
_NOTHING = 1e-12


class Candidates(NamedTuple):
    """Proposed cuts; part 0 holds the rows whose place is `<= at` (UP_TO) or `== at` (ONLY).

    `loss` is the loss expected after the cut, lower being better.
    """

    group: IntArray
    attribute: IntArray
    kind: IntArray
    at: IntArray
    loss: FloatArray

    def take(self, chosen: NDArray[Any]) -> Candidates:
        """Return some of the candidates, in the order given."""
        return Candidates(*(field[chosen] for field in self))

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        """Return all candidates, sorted by group."""
        joined = Candidates(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
        return joined.take(order_by(joined.group, np.zeros(1, dtype=np.int64), 1))


@dataclass(frozen=True)
class Line:
    """One attribute of a frame, ready to be cut.

    Attributes:
        frame: the active rows.
        index: which attribute.
        attribute: the same attribute.
        outlook: what to expect of the parts of each group.
        own: width of each group on this attribute.
        others: sum of the widths of each group on the other attributes.
    """

    frame: Frame
    index: int
    attribute: Attribute
    outlook: Outlook
    own: FloatArray
    others: FloatArray

    def candidates(
        self, group: IntArray, kind: int, at: IntArray, left: IntArray, widths: tuple[FloatArray, FloatArray]
    ) -> Candidates:
        """Make binary cuts of those that save something here; `widths` are those of left and right part."""
        rows = self.frame.sizes[group]
        right, others = rows - left, self.others[group]
        saved = rows * self.own[group] - left * widths[0] - right * widths[1]
        loss = self.outlook.loss(group, left, others + widths[0])
        loss += self.outlook.loss(group, right, others + widths[1])
        return self.proposed(group, kind, at, loss, saved)

    def proposed(self, group: IntArray, kind: int, at: IntArray, loss: FloatArray, saved: FloatArray) -> Candidates:
        """Keep the cuts that save something."""
        good = saved > _NOTHING
        group = group[good]
        return Candidates(group, np.full(len(group), self.index), np.full(len(group), kind), at[good], loss[good])


class Cells(NamedTuple):
    """Occupied (group, code) cells of an attribute; group g owns offsets[g]:offsets[g + 1]."""

    group: IntArray
    code: IntArray
    rows: IntArray
    offsets: IntArray

    @staticmethod
    def of(frame: Frame, codes: NDArray[Any]) -> Cells:
        """Count the cells of a frame."""
        group, code, count = count_runs(codes, frame.starts, frame.sizes)
        return Cells(group, code, count, offsets_of(group, len(frame)))

    def running(self, rows: IntArray) -> IntArray:
        """Return the inclusive running sum of `rows` within each group."""
        total = np.cumsum(rows)
        before = total[self.offsets[:-1]] - rows[self.offsets[:-1]]
        return total - np.repeat(before, np.diff(self.offsets))


def ordered_cuts(line: Line) -> Candidates:
    """List the cuts between two values that leave enough rows on both sides, sorted by group.

    The place of a row that `Candidates.at` refers to is its code.
    """
    frame, attribute = line.frame, line.attribute
    codes = frame.codes[line.index]
    cells = Cells.of(frame, codes)
    left = cells.running(cells.rows)
    cut = np.flatnonzero((left >= line.outlook.min_size) & (frame.sizes[cells.group] - left >= line.outlook.min_size))
    group, left, at = cells.group[cut], left[cut], cells.code[cut]
    low, high = cells.code[cells.offsets[:-1]], cells.code[cells.offsets[1:] - 1]
    below = range_width(attribute, None, low[group], at)
    above = range_width(attribute, None, cells.code[cut + 1], high[group])
    return line.candidates(group, UP_TO, at, left, (below, above))


def nominal_cuts(line: Line) -> tuple[Candidates, NDArray[Any]]:
    """List the cuts into most frequent values and rest, or one value and rest.

    Returns:
        The candidates, sorted by group, and the rank of each row's value by frequency within its group.
    """
    frame, attribute = line.frame, line.attribute
    cells = Cells.of(frame, frame.codes[line.index])
    most = int(cells.rows.max())
    by_count = order_by(cells.group, most - cells.rows, most + 1)
    rank = np.arange(len(by_count)) - cells.offsets[cells.group]
    values, size = np.diff(cells.offsets)[cells.group], frame.sizes[cells.group]
    rows = cells.rows[by_count]
    found = []
    for kind, left, taken in ((UP_TO, cells.running(rows), rank + 1), (ONLY, rows, np.ones_like(rank))):
        cut = (left >= line.outlook.min_size) & (size - left >= line.outlook.min_size) & ((kind == UP_TO) | (rank > 0))
        inside, outside = set_width(attribute, taken[cut]), set_width(attribute, (values - taken)[cut])
        found.append(line.candidates(cells.group[cut], kind, rank[cut], left[cut], (inside, outside)))
    rank_of_cell = np.empty_like(rank)
    rank_of_cell[by_count] = rank
    key = cells.group * attribute.domain + cells.code
    row_key = np.repeat(np.arange(len(frame)) * attribute.domain, frame.sizes) + frame.codes[line.index]
    return Candidates.join(found), look_up(key, rank_of_cell, row_key, len(frame) * attribute.domain)


def tree_cuts(line: Line, tree: Tree) -> tuple[Candidates, NDArray[Any]]:
    """List the cuts into all children of a group's lowest common ancestor, or one child and the rest.

    Returns:
        The candidates, sorted by group, and the child each row is under.
    """
    frame, leaves = line.frame, line.frame.codes[line.index]
    low, high = np.minimum.reduceat(leaves, frame.starts), np.maximum.reduceat(leaves, frame.starts)
    several = np.flatnonzero(low != high)
    child = np.zeros(len(leaves), dtype=np.int64)
    if len(several) == 0:
        return line.proposed(several, CHILDREN, several, np.zeros(0), np.zeros(0)), child
    places, local = frame.rows_of(several)
    child[places] = tree.child_parts(leaves[places], local)
    key = local * tree.most_children + child[places]
    order = order_by(key, np.zeros(1, dtype=np.int64), 1)
    key, sorted_leaves = key[order], leaves[places][order]
    starts = run_starts(key)
    width = tree.share(np.minimum.reduceat(sorted_leaves, starts), np.maximum.reduceat(sorted_leaves, starts))
    rows, number = np.diff(starts, append=len(key)), key[starts] % tree.most_children
    parent = several[key[starts] // tree.most_children]
    return Candidates.join(
        [_all_children(line, parent, rows, width), _one_child(line, parent, number, rows, width)]
    ), child


def _all_children(line: Line, parent: IntArray, rows: IntArray, width: FloatArray) -> Candidates:
    """Cut each group into all its children, given group, rows and width of every child."""
    starts = run_starts(parent)
    group = parent[starts]
    loss = np.add.reduceat(line.outlook.loss(parent, rows, width + line.others[parent]), starts)
    saved = line.frame.sizes[group] * line.own[group] - np.add.reduceat(rows * width, starts)
    return line.proposed(group, CHILDREN, np.zeros_like(group), loss, saved)


def _one_child(line: Line, parent: IntArray, number: IntArray, rows: IntArray, width: FloatArray) -> Candidates:
    """Cut one child off groups with three or more; the rest keeps its common ancestor."""
    children = np.bincount(parent, minlength=len(line.own))[parent]
    cut = (children > 2) & (rows >= line.outlook.min_size) & (line.frame.sizes[parent] - rows >= line.outlook.min_size)
    group = parent[cut]
    return line.candidates(group, ONLY, number[cut], rows[cut], (width[cut], line.own[group]))
