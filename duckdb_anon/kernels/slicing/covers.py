"""Published values of one attribute in a sliced table, some of them generalized.

A `Cover` says for every slot which codes its printed value stands for: an interval of codes (ordered), a set
of codes (nominal) or the leaves under a node (hierarchy). Group g < domain is the exact value with code g;
groups from `domain` on are boxes, tight around their slots or the whole domain.
Cost: linear in the slots after one sort by part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.generalize import interval
from duckdb_anon.kernels.partition.ncp import box_width
from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import order_by, ranges, run_starts
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.released_columns import Cells, Node, ValueSet

EXACT = -1


@dataclass(frozen=True)
class Cover:
    """What the printed values of one attribute stand for.

    Attributes:
        attribute: the attribute.
        index: group of each slot, shape (slots,).
        lower: first code (ordered) or leaf (hierarchy) of each group; nominal: the smallest code.
        upper: last code or leaf, inclusive.
        node: hierarchy node of each group, empty for the other kinds.
        offsets: nominal: members of group g are members[offsets[g]:offsets[g + 1]]; empty for the others.
        members: nominal: codes.
    """

    attribute: Attribute
    index: IntArray
    lower: IntArray
    upper: IntArray
    node: IntArray
    offsets: IntArray
    members: IntArray

    @property
    def generalized(self) -> BoolArray:
        """Whether each slot stands for more than its own code, shape (slots,)."""
        wide: BoolArray = self.leaves > 1
        return wide[self.index]

    @property
    def leaves(self) -> IntArray:
        """Number of domain values each group stands for (codes of the table, or leaves of the tree)."""
        if self.attribute.kind == "nominal":
            return np.diff(self.offsets)
        return self.upper - self.lower + 1


def exact_cover(attribute: Attribute, codes: CodeArray) -> Cover:
    """Cover in which every slot prints its own code.

    Args:
        attribute: the attribute.
        codes: code of each slot, shape (slots,).
    """
    return box_cover(attribute, codes, np.full(len(codes), EXACT, dtype=np.int64), np.empty(0, dtype=np.int64))


def box_cover(attribute: Attribute, codes: CodeArray, part_of_slot: IntArray, lift: IntArray) -> Cover:
    """Cover in which the slots of a part share one box.

    Args:
        attribute: the attribute.
        codes: code of each slot, shape (slots,).
        part_of_slot: part of each slot, 0 .. parts - 1, every part occupied, or EXACT.
        lift: for each part how far its box is raised above the tight one, shape (parts,): hierarchies climb
            that many nodes, every other kind takes its whole domain from 1 on.

    Returns:
        The cover.
    """
    parts = len(lift)
    whole = lift > 0
    slots = np.flatnonzero(part_of_slot != EXACT)
    places = codes[slots].astype(np.int64)
    if attribute.leaf_of_code is not None:
        places = attribute.leaf_of_code[places].astype(np.int64)
    order = order_by(part_of_slot[slots], places, width_of(attribute))
    part, place = part_of_slot[slots][order], places[order]
    first = run_starts(part)
    low, high = np.zeros(parts, dtype=np.int64), np.full(parts, width_of(attribute) - 1, dtype=np.int64)
    low[part[first]] = place[first]
    high[part[first]] = place[np.append(first[1:], len(place))[: len(first)] - 1]
    index = np.where(part_of_slot == EXACT, codes, part_of_slot + attribute.domain).astype(np.int64)
    if attribute.kind == "nominal":
        kept = run_starts(part * attribute.domain + place)
        kept = kept[~whole[part[kept]]]
        return _value_sets(attribute, index, part[kept], place[kept], whole)
    if attribute.hierarchy is not None:
        return _nodes(attribute, attribute.hierarchy, index, attribute.hierarchy.common(low, high)[0], lift)
    anything = whole | attribute.mixed(low, high)
    low[anything], high[anything] = 0, attribute.domain - 1
    own, none = np.arange(attribute.domain, dtype=np.int64), np.empty(0, dtype=np.int64)
    return Cover(attribute, index, np.append(own, low), np.append(own, high), none, none, none)


def width_of(attribute: Attribute) -> int:
    """Number of places on the attribute's axis: leaves of a tree, else codes."""
    return attribute.domain if attribute.hierarchy is None else attribute.hierarchy.leaves


def _nodes(attribute: Attribute, tree: Hierarchy, index: IntArray, common: IntArray, lift: IntArray) -> Cover:
    for step in range(min(int(lift.max(initial=0)), tree.height)):
        above = tree.parent[common]
        common = np.where((lift > step) & (above >= 0), above, common)
    own = np.arange(attribute.domain) if attribute.leaf_of_code is None else attribute.leaf_of_code
    node = np.append(tree.node_of_leaf[own], common).astype(np.int64)
    first = tree.first_leaf[node].astype(np.int64)
    none = np.empty(0, dtype=np.int64)
    return Cover(attribute, index, first, first + tree.leaf_count[node] - 1, node, none, none)


def _value_sets(attribute: Attribute, index: IntArray, part: IntArray, code: IntArray, whole: BoolArray) -> Cover:
    """Lay out exact codes, then the tight sets and whole domains of the parts, in the order of the parts."""
    domain = attribute.domain
    sizes = np.bincount(part, minlength=len(whole))
    tight_start = domain + np.cumsum(sizes) - sizes
    pool = np.concatenate([np.arange(domain, dtype=np.int64), code])
    start = np.concatenate([np.arange(domain, dtype=np.int64), np.where(whole, 0, tight_start)])
    size = np.concatenate([np.ones(domain, dtype=np.int64), np.where(whole, domain, sizes)])
    members = pool[ranges(start, size)]
    offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    none = np.empty(0, dtype=np.int64)
    return Cover(attribute, index, members[offsets[:-1]], members[offsets[1:] - 1], none, offsets, members)


def certain(cover: Cover, slots: IntArray, holds: BoolArray) -> BoolArray:
    """Whether a predicate holds for every value of the table that the printed value of each slot may stand for.

    Args:
        cover: the published values.
        slots: slots to look at, shape (m,).
        holds: truth of the predicate for each code, shape (domain,).

    Returns:
        Shape (m,). Leaves of the hierarchy that the table does not contain say nothing.
    """
    group = cover.index[slots]
    if len(slots) == 0:
        return np.empty(0, dtype=bool)
    if cover.attribute.kind == "nominal":
        size = cover.leaves[group]
        members = cover.members[ranges(cover.offsets[group], size)]
        fails = np.add.reduceat((~holds[members]).astype(np.int64), np.cumsum(size) - size)
    else:
        axis = np.flatnonzero(~holds).astype(np.int64)
        if cover.attribute.leaf_of_code is not None:
            axis = cover.attribute.leaf_of_code[axis].astype(np.int64)
        before = np.concatenate([[0], np.cumsum(np.bincount(axis, minlength=width_of(cover.attribute)))])
        fails = before[cover.upper[group] + 1] - before[cover.lower[group]]
    return np.asarray(fails == 0, dtype=bool)


def covers_codes(cover: Cover, codes: CodeArray) -> BoolArray:
    """Whether the printed value of each slot stands, among others, for the given code."""
    if cover.attribute.kind == "nominal":
        domain = cover.attribute.domain
        pairs = np.repeat(np.arange(len(cover.offsets) - 1), np.diff(cover.offsets)) * domain + cover.members
        wanted = cover.index * domain + codes
        place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        return np.asarray(pairs[place] == wanted, dtype=bool)
    axis = codes.astype(np.int64)
    if cover.attribute.leaf_of_code is not None:
        axis = cover.attribute.leaf_of_code[axis].astype(np.int64)
    return np.asarray((cover.lower[cover.index] <= axis) & (axis <= cover.upper[cover.index]), dtype=bool)


def loss_of(cover: Cover) -> FloatArray:
    """NCP of each group of a cover."""
    return box_width(cover.attribute, cover.lower, cover.upper, cover.leaves)


def as_cells(cover: Cover) -> Cells:
    """The cover as cells of the released table."""
    attribute = cover.attribute
    if attribute.hierarchy is not None:
        return Node(attribute.hierarchy.labels, cover.node.astype(np.int32), cover.index)
    if attribute.kind == "nominal":
        return ValueSet(attribute.name, cover.offsets, cover.members.astype(np.int32), cover.index)
    return interval(attribute, cover.lower, cover.upper, cover.index)
