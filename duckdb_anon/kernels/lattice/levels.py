"""Levels of generalization of one attribute: at each, every value of the domain has one place.

A hierarchy gives its own levels. Without one, a nominal attribute has its values and the set of all of them; an
ordered one has its values, then intervals of equally many distinct values, `branching` of them merged from
level to level, and at last everything (LeFevre, DeWitt and Ramakrishnan 2005 leave the levels to the
user). NULL and numbers that are not finite keep a place of their own below the last level.
Cost: domain times levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.generalize import interval
from duckdb_anon.kernels.partition.ncp import range_width, set_width
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.released_columns import Cells, Node, ValueSet


@dataclass(frozen=True)
class Generalizations:
    """The levels of an attribute, from its values (0) to a single place (`height`).

    Attributes:
        attribute: the attribute.
        place_of_code: for each level the place of each code, shape (domain,), places 0, 1, ... all used.
        node_of_place: for each level the hierarchy node of each place; empty without a hierarchy.
    """

    attribute: Attribute
    place_of_code: tuple[IntArray, ...]
    node_of_place: tuple[IntArray, ...] = ()

    @property
    def height(self) -> int:
        """Number of the last level."""
        return len(self.place_of_code) - 1

    def places(self, level: int) -> int:
        """Number of places at a level."""
        return int(self.place_of_code[level].max(initial=-1)) + 1

    def up(self, low: int, high: int) -> CodeArray:
        """Place at level `high` of each place at level `low`."""
        result = np.empty(self.places(low), dtype=np.int32)
        result[self.place_of_code[low]] = self.place_of_code[high]
        return result

    def ncp(self, level: int) -> FloatArray:
        """Normalized certainty penalty (Xu et al. 2006) of each place at a level, in [0, 1]."""
        place, attribute = self.place_of_code[level], self.attribute
        if attribute.hierarchy is not None:
            leaves = attribute.hierarchy.leaf_count[self.node_of_place[level]]
            share: FloatArray = np.where(leaves > 1, leaves / attribute.hierarchy.leaves, 0.0)
            return share
        if attribute.kind == "nominal":
            return set_width(attribute, np.bincount(place))
        return range_width(attribute, *self._ends(level))

    def cells(self, level: int) -> Cells:
        """What each row publishes at a level: node, set or interval."""
        attribute, place = self.attribute, self.place_of_code[level]
        index = place[attribute.codes]
        if attribute.hierarchy is not None:
            return Node(attribute.hierarchy.labels, self.node_of_place[level].astype(np.int32), index)
        if attribute.kind == "nominal":
            offsets = np.concatenate(([0], np.cumsum(np.bincount(place)))).astype(np.int64)
            return ValueSet(attribute.name, offsets, np.argsort(place, kind="stable").astype(np.int32), index)
        return interval(attribute, *self._ends(level), index)

    def _ends(self, level: int) -> tuple[IntArray, IntArray]:
        """Smallest and largest code of each place of an ordered attribute."""
        place = self.place_of_code[level]
        low = np.searchsorted(place, np.arange(self.places(level)))
        return low.astype(np.int64), np.append(low[1:], len(place)).astype(np.int64) - 1


def ladder_of(attribute: Attribute, branching: int = 4) -> Generalizations:
    """Return the levels of an attribute.

    Args:
        attribute: n codes.
        branching: intervals of an ordered attribute that are merged from level to level, 2 or more.

    >>> codes = np.arange(10, dtype=np.int32)
    >>> age = Attribute('age', 'ordered', codes, np.arange(10.0), 10, -1, np.arange(10))
    >>> [ladder_of(age).places(level) for level in range(3)]
    [10, 4, 1]
    """
    if attribute.hierarchy is not None and attribute.leaf_of_code is not None:
        return _of_tree(attribute, attribute.hierarchy, attribute.leaf_of_code.astype(np.int64))
    every = np.arange(attribute.domain, dtype=np.int64)
    levels = [every]
    if attribute.kind == "ordered":
        finite = attribute.special_from
        intervals = 1
        while intervals * branching < finite:
            intervals *= branching
        while intervals > 1:
            rank = np.minimum(every, finite) * intervals // max(finite, 1)
            levels.append(np.where(every < finite, rank, intervals + every - finite))
            intervals //= branching
    if attribute.domain > 1:
        levels.append(np.zeros_like(every))
    return Generalizations(attribute, tuple(levels))


def _of_tree(attribute: Attribute, tree: Hierarchy, leaf_of_code: IntArray) -> Generalizations:
    places: list[IntArray] = []
    nodes: list[IntArray] = []
    for chain in tree.ancestors[::-1]:
        node, place = np.unique(chain[leaf_of_code], return_inverse=True)
        if nodes and len(node) == len(nodes[-1]) and (node == nodes[-1]).all():
            continue  # no value has an ancestor on this level
        nodes.append(node.astype(np.int64))
        places.append(place.astype(np.int64))
    return Generalizations(attribute, tuple(places), tuple(nodes))
