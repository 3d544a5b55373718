"""Levels of generalization of one attribute: at each level every value of the domain has one generalized value.

A hierarchy gives its own levels. Without one, a nominal attribute has its values and the set of all of them. An
ordered attribute has its values, then intervals of equally many distinct values, `branching` of which are merged from
level to level, then one interval (LeFevre, DeWitt and Ramakrishnan 2005 leave the levels to the user). NULL and numbers
that are not finite stay separate below the last level. Cost: domain times levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.partition.generalize import interval, range_width, set_width
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.released_columns import Cells, Node, ValueSet


@dataclass(frozen=True)
class GeneralizationLevels:
    """The levels of an attribute, from its values (0) to a single generalized value (`height`)."""

    attribute: Attribute  # the attribute
    # for each level the generalized value of each code, shape (domain,), values 0, 1, ... all used
    value_of_code: tuple[IntArray, ...]
    # for each level the hierarchy node of each generalized value; empty without a hierarchy
    node_of_value: tuple[IntArray, ...] = ()

    @property
    def height(self) -> int:
        """Number of the last level."""
        return len(self.value_of_code) - 1

    def size(self, level: int) -> int:
        """Number of generalized values at a level."""
        return int(self.value_of_code[level].max(initial=-1)) + 1

    def up(self, low: int, high: int) -> CodeArray:
        """Value at level `high` of each value at level `low`."""
        result = np.empty(self.size(low), dtype=np.int32)
        result[self.value_of_code[low]] = self.value_of_code[high]
        return result

    def ncp(self, level: int) -> FloatArray:
        """Normalized certainty penalty (Xu et al. 2006) of each value at a level, in [0, 1]."""
        value, attribute = self.value_of_code[level], self.attribute
        if attribute.hierarchy is not None:
            leaves = attribute.hierarchy.leaf_count[self.node_of_value[level]]
            share: FloatArray = np.where(leaves > 1, leaves / attribute.hierarchy.leaves, 0.0)
            return share
        if attribute.kind == "nominal":
            return set_width(attribute, np.bincount(value))
        return range_width(attribute, *self._ends(level))

    @cached_property
    def penalties(self) -> list[FloatArray]:
        """The normalized certainty penalties of all levels."""
        return [self.ncp(level) for level in range(self.height + 1)]

    @cached_property
    def steps(self) -> list[CodeArray]:
        """For each level but the last, the value at the next level of each value."""
        return [self.up(level, level + 1) for level in range(self.height)]

    def cells(self, level: int) -> Cells:
        """What each row publishes at a level: node, set or interval."""
        attribute, value = self.attribute, self.value_of_code[level]
        index = value[attribute.codes]
        if attribute.hierarchy is not None:
            return Node(attribute.hierarchy.labels, self.node_of_value[level].astype(np.int32), index)
        if attribute.kind == "nominal":
            offsets = np.concatenate(([0], np.cumsum(np.bincount(value)))).astype(np.int64)
            return ValueSet(attribute.name, offsets, np.argsort(value, kind="stable").astype(np.int32), index)
        return interval(attribute, *self._ends(level), index)

    def _ends(self, level: int) -> tuple[IntArray, IntArray]:
        """Smallest and largest code of each value of an ordered attribute."""
        value = self.value_of_code[level]
        low = np.searchsorted(value, np.arange(self.size(level)))
        return low.astype(np.int64), np.append(low[1:], len(value)).astype(np.int64) - 1


def generalization_levels(attribute: Attribute, branching: int = 4) -> GeneralizationLevels:
    """Return the levels of an attribute.

    `branching`: intervals of an ordered attribute that are merged from level to level, 2 or more.

    >>> codes = np.arange(10, dtype=np.int32)
    >>> age = Attribute('age', 'ordered', codes, np.arange(10.0), 10, -1, np.arange(10))
    >>> [generalization_levels(age).size(level) for level in range(3)]
    [10, 4, 1]
    """
    if attribute.hierarchy is not None:
        return _of_hierarchy(attribute, attribute.hierarchy, attribute.place_of_code.astype(np.int64))
    codes = np.arange(attribute.domain, dtype=np.int64)
    levels = [codes]
    if attribute.kind == "ordered":
        finite = attribute.special_from
        intervals = 1
        while intervals * branching < finite:
            intervals *= branching
        while intervals > 1:
            rank = np.minimum(codes, finite) * intervals // max(finite, 1)
            levels.append(np.where(codes < finite, rank, intervals + codes - finite))
            intervals //= branching
    if attribute.domain > 1:
        levels.append(np.zeros_like(codes))
    return GeneralizationLevels(attribute, tuple(levels))


def _of_hierarchy(attribute: Attribute, hierarchy: Hierarchy, leaf_of_code: IntArray) -> GeneralizationLevels:
    values: list[IntArray] = []
    nodes: list[IntArray] = []
    for ancestor_of_leaf in hierarchy.ancestors[::-1]:
        node, value = np.unique(ancestor_of_leaf[leaf_of_code], return_inverse=True)
        if nodes and np.array_equal(node, nodes[-1]):
            continue  # no value has an ancestor on this level
        nodes.append(node.astype(np.int64))
        values.append(value.astype(np.int64))
    return GeneralizationLevels(attribute, tuple(values), tuple(nodes))
