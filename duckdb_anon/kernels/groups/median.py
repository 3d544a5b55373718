"""The cuts of Mondrian: the widest attribute at its lower median, or at the children of a hierarchy node.

LeFevre, DeWitt and Ramakrishnan 2006 (strict and relaxed), with the multiway cut of a hierarchy at the
lowest common ancestor of the group's values. An attribute that cannot be cut under the requirement gives
way to the next widest. Nominal attributes without a hierarchy are cut as ordered codes; as their order means nothing,
the rows with the median value may go to either side: where {<= median} against {> median} is not allowed, {< median}
against {>= median} is tried. Without this, a frequent value that comes last in the alphabet could never be cut off
(on a census table with five nominal columns of seven: 17.2% instead of 7.5% NCP at k = 10).
Cost: one sort of the rows still open per level and attribute tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.groups.frame import Cut, Frame, Problem, Proposal, acceptable
from duckdb_anon.kernels.groups.packed import count_runs, offsets_of, order_by
from duckdb_anon.kernels.groups.requirements import BoolArray
from duckdb_anon.kernels.groups.trees import Tree
from duckdb_anon.kernels.groups.widths import range_width
from duckdb_anon.model.table import Attribute, FloatArray, IntArray

Width = Literal["range", "distinct", "spread"]


class _Progress(NamedTuple):
    """What has been cut so far in a level: part of each row, and which groups are settled."""

    part: IntArray
    accepted: BoolArray


@dataclass(frozen=True)
class MedianCuts:
    """Chooses median cuts.

    Attributes:
        problem: attributes and requirement.
        trees: the tree of each attribute, None where it has none.
        width: how attributes are ranked. 'range': share of the table's range (leaves under the lowest
            common ancestor for hierarchies); 'distinct': number of different values; 'spread': sum of
            squared deviations from the mean, not normalized, so attributes on wide scales go first.
        relaxed: deal rows with the median value to both sides (LeFevre et al. 2006, section 4.2).
    """

    problem: Problem
    trees: tuple[Tree | None, ...]
    width: Width = "range"
    relaxed: bool = False

    def choose(self, frame: Frame) -> Cut:
        """Return for every group of the frame its first allowed cut, attributes by decreasing width."""
        width, several = self._widths(frame)
        preference = np.argsort(-width, axis=1, kind="stable")
        progress = _Progress(np.zeros(len(frame.rows), dtype=np.int64), np.zeros(len(frame), dtype=bool))
        every = np.arange(len(frame))
        for attribute in preference.T:
            usable = several[every, attribute]
            for index, tree in enumerate(self.trees):
                groups = np.flatnonzero(usable & ~progress.accepted & (attribute == index))
                if tree is not None and len(groups):
                    self._at_children(frame, groups, index, tree, progress)
            for below, possible in ((False, self._is_line), (True, self._has_no_order)):
                groups = np.flatnonzero(usable & ~progress.accepted & possible[attribute])
                if len(groups):
                    self._at_median(frame, groups, attribute[groups], below, progress)
        parts = max([2, *(tree.most_children for tree in self.trees if tree is not None)])
        return Cut(progress.part, parts, progress.accepted)

    @property
    def _is_line(self) -> BoolArray:
        """For each attribute whether it is cut at a median."""
        return np.array([tree is None for tree in self.trees])

    @property
    def _has_no_order(self) -> BoolArray:
        """For each attribute whether it makes no difference to which side of a median its value goes."""
        nominal: BoolArray = np.array([a.kind == "nominal" and not self.relaxed for a in self.problem.qi])
        return nominal & self._is_line

    def _at_children(self, frame: Frame, groups: IntArray, index: int, tree: Tree, progress: _Progress) -> None:
        places, local = frame.rows_of(groups)
        part = tree.child_parts(frame.codes[index][places], local)
        proposal = Proposal(groups, places, local, part, tree.most_children)
        progress.accepted[groups] = acceptable(self.problem, frame, proposal)
        progress.part[places] = part

    def _at_median(self, frame: Frame, groups: IntArray, attribute: IntArray, below: bool, progress: _Progress) -> None:
        places, local = frame.rows_of(groups)
        rows = np.arange(len(frame.rows)) if isinstance(places, slice) else places
        values = frame.codes[attribute[local], rows]
        sizes = frame.sizes[groups]
        upper = upper_half(values, local, sizes) if self.relaxed else above_median(values, local, sizes, below)
        proposal = Proposal(groups, places, local, upper, 2)
        progress.accepted[groups] = acceptable(self.problem, frame, proposal)
        progress.part[places] = upper

    def _widths(self, frame: Frame) -> tuple[FloatArray, BoolArray]:
        """Width of each group on each attribute, and whether it has several values there."""
        width = np.empty((len(frame), len(self.trees)))
        several = np.empty(width.shape, dtype=bool)
        for place, (attribute, tree) in enumerate(zip(self.problem.qi, self.trees, strict=True)):
            low = np.minimum.reduceat(frame.codes[place], frame.starts)
            high = np.maximum.reduceat(frame.codes[place], frame.starts)
            several[:, place] = low != high
            if self.width == "range":
                width[:, place] = range_width(attribute, tree, low, high)
            else:
                width[:, place] = _counted_width(frame, place, attribute, self.width)
        return width, several


def above_median(values: NDArray[Any], local: IntArray, sizes: IntArray, below: bool = False) -> IntArray:
    """Return 1 for rows above the lower median of their group (at or above it if `below`), else 0.

    Args:
        values: code of each row, rows of a group being neighbours, shape (n,).
        local: group of each row, non-decreasing, shape (n,).
        sizes: rows of each group.
        below: put the rows with the median value into the upper part.

    >>> above_median(np.array([3, 1, 2, 2]), np.zeros(4, dtype=np.int64), np.array([4])).tolist()
    [1, 0, 0, 0]
    """
    starts = np.cumsum(sizes) - sizes
    _, code, count = count_runs(values, starts, sizes)
    median = code[np.searchsorted(np.cumsum(count), starts + (sizes - 1) // 2, side="right")]
    upper = values >= median[local] if below else values > median[local]
    part: IntArray = upper.astype(np.int64)
    return part


def upper_half(values: NDArray[Any], local: IntArray, sizes: IntArray) -> IntArray:
    """Return 0 for the first ceil(size / 2) rows of each group in order of value, ties in row order, else 1.

    >>> upper_half(np.array([3, 1, 2, 2]), np.zeros(4, dtype=np.int64), np.array([4])).tolist()
    [1, 0, 0, 1]
    """
    order = order_by(local, values, int(values.max()) + 1)
    rank = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    upper = np.empty(len(values), dtype=np.int64)
    upper[order] = rank >= np.repeat((sizes + 1) // 2, sizes)
    return upper


def _counted_width(frame: Frame, place: int, attribute: Attribute, width: Width) -> FloatArray:
    """Number of distinct values, or size of the group times the sum of squared deviations.

    The factor is the same for all attributes of a group, and keeps ties of whole-number attributes exact.
    """
    codes = frame.codes[place]
    group, code, count = count_runs(codes, frame.starts, frame.sizes)
    offsets = offsets_of(group, len(frame))
    if width == "distinct":
        return np.diff(offsets).astype(np.float64)
    value = attribute.positions[code] if attribute.hierarchy is None else code.astype(np.float64)
    first = np.add.reduceat(count * value, offsets[:-1])
    second = np.add.reduceat(count * value * value, offsets[:-1])
    spread: FloatArray = second * frame.sizes - first * first
    return spread
