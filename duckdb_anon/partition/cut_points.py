"""All cuts of one attribute in all groups of a frame, each with the loss it saves on that attribute.

See `loss_cut` for the gain. Cost: linear in the occupied (group, code) cells after they are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.partition.frame import Frame
from duckdb_anon.partition.packed import count_runs, offsets_of, order_by
from duckdb_anon.partition.trees import Tree
from duckdb_anon.partition.widths import range_width, set_width
from duckdb_anon.table import Attribute, FloatArray, IntArray

UP_TO, ONLY, CHILDREN = 0, 1, 2


class Candidates(NamedTuple):
    """Proposed cuts; part 0 holds the rows whose place is `<= at` (UP_TO) or `== at` (ONLY)."""

    group: IntArray
    attribute: IntArray
    kind: IntArray
    at: IntArray
    gain: FloatArray

    def take(self, chosen: NDArray[Any]) -> Candidates:
        """Return some of the candidates, in the order given."""
        return Candidates(*(field[chosen] for field in self))

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        """Return all candidates, sorted by group."""
        joined = Candidates(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
        return joined.take(order_by(joined.group, np.zeros(1, dtype=np.int64), 1))


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


def cut_points(
    frame: Frame, index: int, attribute: Attribute, tree: Tree | None, min_size: int
) -> tuple[Candidates, NDArray[Any]]:
    """List the gainful cuts on one attribute that leave at least `min_size` rows on both sides.

    Args:
        frame: the active rows.
        index: which attribute.
        attribute: the same attribute.
        tree: its tree, if it has one.
        min_size: rows each part needs.

    Returns:
        The candidates, sorted by group, and the place of each row that `Candidates.at` refers to: its code,
        its value's rank by frequency within the group (nominal), or its child number (hierarchy).
    """
    codes = frame.codes[index]
    if tree is not None:
        return _tree_cuts(frame, index, codes, tree)
    cells = Cells.of(frame, codes)
    if attribute.kind == "nominal":
        return _nominal_cuts(frame, index, attribute, cells, min_size)
    return _ordered_cuts(frame, index, attribute, cells, min_size), codes


def _ordered_cuts(frame: Frame, index: int, attribute: Attribute, cells: Cells, min_size: int) -> Candidates:
    left = cells.running(cells.rows)
    right = frame.sizes[cells.group] - left
    cut = np.flatnonzero((left >= min_size) & (right >= min_size))
    group, left, right = cells.group[cut], left[cut], right[cut]
    low, high = cells.code[cells.offsets[:-1]], cells.code[cells.offsets[1:] - 1]
    gain = frame.sizes[group] * range_width(attribute, None, low, high)[group]
    gain -= left * range_width(attribute, None, low[group], cells.code[cut])
    gain -= right * range_width(attribute, None, cells.code[cut + 1], high[group])
    return _gainful(index, group, np.zeros_like(group), cells.code[cut], gain)


def _nominal_cuts(
    frame: Frame, index: int, attribute: Attribute, cells: Cells, min_size: int
) -> tuple[Candidates, NDArray[Any]]:
    most = int(cells.rows.max())
    by_count = order_by(cells.group, most - cells.rows, most + 1)
    rank = np.arange(len(by_count)) - cells.offsets[cells.group]
    values = np.diff(cells.offsets)[cells.group]
    size, count = frame.sizes[cells.group], cells.rows[by_count]
    whole = size * set_width(attribute, values)
    found = []
    for kind, left, taken in ((UP_TO, cells.running(count), rank + 1), (ONLY, count, np.ones_like(rank))):
        gain = (
            whole - left * set_width(attribute, taken) - (size - left) * set_width(attribute, values - taken)
        )
        cut = (left >= min_size) & (size - left >= min_size) & ((kind == UP_TO) | (rank > 0))
        found.append(_gainful(index, cells.group[cut], np.full(int(cut.sum()), kind), rank[cut], gain[cut]))
    rank_of_cell = np.empty_like(rank)
    rank_of_cell[by_count] = rank
    key = cells.group * attribute.domain + cells.code
    row_key = frame.group_of_row() * attribute.domain + frame.codes[index]
    return Candidates.join(found), rank_of_cell[np.searchsorted(key, row_key)]


def _tree_cuts(frame: Frame, index: int, leaves: NDArray[Any], tree: Tree) -> tuple[Candidates, NDArray[Any]]:
    low, high = np.minimum.reduceat(leaves, frame.starts), np.maximum.reduceat(leaves, frame.starts)
    several = np.flatnonzero(low != high)
    child = np.zeros(len(leaves), dtype=np.int64)
    if len(several) == 0:
        return _gainful(index, several, several, several, np.zeros(0)), child
    places, local = frame.rows_of(several)
    child[places] = tree.child_parts(leaves[places], local)
    key = local * tree.most_children + child[places]
    order = order_by(key, np.zeros(1, dtype=np.int64), 1)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(key[order])) + 1))
    sorted_leaves = leaves[places][order]
    part_low, part_high = (
        np.minimum.reduceat(sorted_leaves, starts),
        np.maximum.reduceat(sorted_leaves, starts),
    )
    kept = np.diff(starts, append=len(key)) * tree.share(part_low, part_high)
    gain = frame.sizes[several] * tree.share(low[several], high[several])
    gain -= np.bincount(local[order][starts], weights=kept, minlength=len(several))
    zero = np.zeros_like(several)
    return _gainful(index, several, zero + CHILDREN, zero, gain), child


def _gainful(index: int, group: IntArray, kind: IntArray, at: IntArray, gain: FloatArray) -> Candidates:
    good = gain > 1e-12
    return Candidates(group, np.full(len(group), index), kind, at, gain).take(good)
