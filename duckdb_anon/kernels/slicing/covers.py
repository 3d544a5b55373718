"""Published values of one attribute in a sliced table, some of them generalized.

A `Cover` says for every slot which codes its published value may stand for: an interval of codes (ordered), a set of
codes (nominal) or the leaves under a node (hierarchy). Cost: linear in the slots after a sort by part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.partition.generalize import boxes, interval
from duckdb_anon.kernels.partition.ncp import range_width, set_width
from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.released_columns import Interval, Node, ValueSet

EXACT = -1


@dataclass(frozen=True)
class Cover:
    """What the published values of one attribute stand for."""

    attribute: Attribute  # the attribute
    cells: Interval | ValueSet | Node  # the released values, one per group, with the group of each slot

    @cached_property
    def span(self) -> tuple[IntArray, IntArray]:
        """First and last code (leaf of a hierarchy) that each group stands for; not for nominal attributes."""
        cells, tree = self.cells, self.attribute.hierarchy
        if isinstance(cells, Interval):
            everything = cells.lower < 0
            low = np.where(everything, 0, cells.lower).astype(np.int64)
            return low, np.where(everything, self.attribute.domain - 1, cells.upper).astype(np.int64)
        if isinstance(cells, ValueSet) or tree is None:
            raise TypeError("a set of nominal values has no first and last code")
        first = tree.first_leaf[cells.node].astype(np.int64)
        return first, first + tree.leaf_count[cells.node] - 1

    @property
    def values(self) -> IntArray:
        """Number of codes or leaves each group stands for."""
        if isinstance(self.cells, ValueSet):
            return np.diff(self.cells.offsets)
        return self.span[1] - self.span[0] + 1

    @property
    def generalized(self) -> BoolArray:
        """Whether each slot stands for more than its original code, shape (slots,)."""
        wide: BoolArray = self.values > 1
        return wide[self.cells.index]

    @cached_property
    def loss(self) -> FloatArray:
        """Normalized certainty penalty of each group."""
        if isinstance(self.cells, ValueSet):
            return set_width(self.attribute, self.values)
        return range_width(self.attribute, *self.span)

    def certain(self, slots: IntArray, holds: BoolArray) -> BoolArray:
        """Whether a predicate holds for every value of the table that the published value of a slot may stand for.

        Args:
            slots: slots to examine, shape (m,).
            holds: truth of the predicate for each code, shape (domain,).

        Returns:
            Shape (m,). Leaves of the hierarchy that the table does not contain count for nothing.
        """
        if not len(slots):
            return np.empty(0, dtype=bool)
        group = self.cells.index[slots]
        if isinstance(self.cells, ValueSet):
            fails = np.add.reduceat((~holds[self.cells.codes]).astype(np.int64), self.cells.offsets[:-1])
            return np.asarray((fails == 0)[group], dtype=bool)
        axis = _on_axis(self.attribute, np.flatnonzero(~holds))
        before = np.concatenate([[0], np.cumsum(np.bincount(axis, minlength=width_of(self.attribute)))])
        low, high = self.span
        return np.asarray((before[high + 1] == before[low])[group], dtype=bool)

    def contains(self, codes: CodeArray) -> BoolArray:
        """Whether the published value of each slot may stand for the given code."""
        index = self.cells.index
        if isinstance(self.cells, ValueSet):
            domain = self.attribute.domain
            members = np.repeat(np.arange(len(self.values)), self.values) * domain + self.cells.codes
            return np.isin(index * domain + codes, members)
        axis, (low, high) = _on_axis(self.attribute, codes), self.span
        return np.asarray((low[index] <= axis) & (axis <= high[index]), dtype=bool)


def cover_of(attribute: Attribute, codes: CodeArray, part_of_slot: IntArray, lift: IntArray) -> Cover:
    """Return the cover in which the slots of a part share one box."""
    boxed = part_of_slot != EXACT
    group = compact(np.where(boxed, attribute.domain + part_of_slot, codes).astype(np.int64))
    raised = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    raised[group[boxed]] = lift[part_of_slot[boxed]]
    cells = boxes([replace(attribute, codes=codes)], group)[attribute.name]
    return Cover(attribute, _raised(attribute, cells, raised))


def _raised(attribute: Attribute, cells: Interval | ValueSet | Node, raised: IntArray) -> Interval | ValueSet | Node:
    lifted, tree = raised > 0, attribute.hierarchy
    if not lifted.any():
        return cells
    if isinstance(cells, Interval):
        low = np.where(lifted, 0, cells.lower)
        return interval(attribute, low, np.where(lifted, attribute.domain - 1, cells.upper), cells.index)
    if isinstance(cells, Node):
        if tree is None:
            return cells
        node = cells.node
        for step in range(min(int(raised.max()), tree.height)):
            climbs = (raised > step) & (tree.parent[node] >= 0)
            node = np.where(climbs, tree.parent[node], node).astype(np.int32)
        return Node(cells.labels, node, cells.index)
    members = np.concatenate([np.arange(attribute.domain, dtype=np.int32), cells.codes])
    sizes = np.where(lifted, attribute.domain, np.diff(cells.offsets))
    starts = np.where(lifted, 0, attribute.domain + cells.offsets[:-1])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ValueSet(cells.attribute, offsets, members[ranges(starts, sizes)], cells.index)


def width_of(attribute: Attribute) -> int:
    """Number of places on the attribute's axis: leaves of a tree, else codes."""
    return attribute.domain if attribute.hierarchy is None else attribute.hierarchy.leaves


def _on_axis(attribute: Attribute, codes: IntArray | CodeArray) -> IntArray:
    leaf = attribute.leaf_of_code
    return (codes if leaf is None else leaf[codes]).astype(np.int64)
