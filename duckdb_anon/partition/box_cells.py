"""The published value of each group on an attribute: the tightest box around its rows.

Ordered attributes give intervals, nominal ones the set of values that occur, hierarchies the lowest common
ancestor. `box_loss` gives ILoss (Xiao and Tao 2006) and NCP (Xu et al. 2006) of each group's box.
Cost: a pass over the rows, and one sort for nominal attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckdb_anon.cells import Interval, Node, ValueSet
from duckdb_anon.partition.packed import count_cells, offsets_of
from duckdb_anon.partition.trees import Tree
from duckdb_anon.partition.widths import range_width, set_width
from duckdb_anon.table import Attribute, CodeArray, FloatArray, IntArray


class BoxLoss(NamedTuple):
    """Loss of each group on one attribute, shape (groups,), values in [0, 1]."""

    iloss: FloatArray
    ncp: FloatArray


def boxes(attribute: Attribute, group_of_row: IntArray, index: IntArray | None = None) -> Interval | ValueSet | Node:
    """Return the tight box of every group on one attribute.

    Args:
        attribute: n codes.
        group_of_row: group of each row, 0 .. groups - 1, every group occupied, shape (n,).
        index: group of each released row; `group_of_row` if None.

    Returns:
        `Interval` for ordered attributes (lower = upper = -1 where NULL, NaN or infinity meets values),
        `ValueSet` for nominal ones, `Node` for hierarchies.
    """
    index = group_of_row if index is None else index
    groups = int(group_of_row.max()) + 1 if len(group_of_row) else 0
    if attribute.kind == "nominal":
        group, code, _ = count_cells(group_of_row, attribute.codes, groups, attribute.domain)
        return ValueSet(attribute.name, offsets_of(group, groups), code.astype(np.int32), index)
    if attribute.hierarchy is not None and attribute.leaf_of_code is not None:
        low, high = _extremes(attribute.leaf_of_code[attribute.codes], group_of_row, groups)
        node, _ = Tree.of(attribute.hierarchy).common(low, high)
        return Node(attribute.hierarchy.labels, node.astype(np.int32), index)
    low, high = _extremes(attribute.codes, group_of_row, groups)
    mixed = (high >= attribute.special_from) & (low != high)
    lower, upper = np.where(mixed, -1, low), np.where(mixed, -1, high)
    return Interval(attribute.name, lower.astype(np.int32), upper.astype(np.int32), index)


def box_loss(attribute: Attribute, group_of_row: IntArray) -> BoxLoss:
    """Return ILoss and NCP of each group's tight box.

    ILoss is (size - 1) / size of the domain, NCP the share of the range or domain, 0 for one value. For
    ordered attributes ILoss is (high - low) / (max - min + 1), in units of the values.
    """
    groups = int(group_of_row.max()) + 1 if len(group_of_row) else 0
    if attribute.kind == "nominal":
        group, _, _ = count_cells(group_of_row, attribute.codes, groups, attribute.domain)
        values = np.diff(offsets_of(group, groups))
        return BoxLoss((values - 1) / max(1, attribute.domain), set_width(attribute, values))
    tree = None if attribute.hierarchy is None else Tree.of(attribute.hierarchy)
    codes = attribute.codes if attribute.leaf_of_code is None else attribute.leaf_of_code[attribute.codes]
    low, high = _extremes(codes, group_of_row, groups)
    ncp = range_width(attribute, tree, low, high)
    if tree is not None:
        leaves = tree.hierarchy.leaf_count[tree.common(low, high)[0]]
        return BoxLoss((leaves - 1) / tree.hierarchy.leaves, ncp)
    return BoxLoss(ncp * attribute.span / (attribute.span + 1), ncp)


def _extremes(codes: CodeArray, group_of_row: IntArray, groups: int) -> tuple[IntArray, IntArray]:
    low = np.full(groups, np.iinfo(np.int64).max)
    high = np.full(groups, -1)
    np.minimum.at(low, group_of_row, codes)
    np.maximum.at(high, group_of_row, codes)
    return low, high
