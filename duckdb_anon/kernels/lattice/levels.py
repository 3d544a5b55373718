"""Levels of generalization of one attribute: at each level every value of the domain has one generalized value.

A hierarchy gives its own levels. Without one, a nominal attribute has its values and the set of all of them. An
ordered attribute has its values, then intervals of equally many distinct values, `branching` of which are merged from
level to level, then one interval (LeFevre, DeWitt and Ramakrishnan 2005 leave the levels to the user). NULL and numbers
that are not finite stay separate below the last level. Cost: domain times levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.generalize import interval, range_width, set_width
from duckdb_anon.kernels.row_keys import compact, joint, keys_of
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


Levels = tuple[int, ...]


# Frequency sets: how many rows share generalized quasi-identifiers, a sensitive value and a person. The table is
# counted once. Every other frequency set is rolled up from a finer one (LeFevre, DeWitt and Ramakrishnan 2005, section
# 3.2), so its cost depends on the distinct combinations and not on the rows.
@dataclass(frozen=True)
class FrequencySet:
    """Distinct combinations of generalized values, sensitive code and person, with their number of rows."""

    attributes: tuple[GeneralizationLevels, ...]  # the levels of each quasi-identifier
    node: Levels  # level of each quasi-identifier here
    values: tuple[CodeArray, ...]  # generalized value of each quasi-identifier, shape (combinations,) each
    rows: IntArray  # number of rows of each combination
    table_counts: IntArray  # rows (persons) of the table with each sensitive code
    sensitive: CodeArray | None = None  # sensitive code of each combination, None if nothing depends on it
    person: CodeArray | None = None  # person of each combination, None where every row is a person

    @classmethod
    def of_table(
        cls, attributes: Sequence[GeneralizationLevels], sensitive: CodeArray | None, person: CodeArray | None = None
    ) -> FrequencySet:
        """Count the combinations of n rows: `attributes` are the levels of each quasi-identifier, n codes each."""
        columns = [a.attribute.codes for a in attributes]
        found = keys_of([*columns, *(codes for codes in (sensitive, person) if codes is not None)])
        rows, sizes = found.first, np.bincount(found.of_row)
        values = tuple(a.value_of_code[0][a.attribute.codes[rows]].astype(np.int32) for a in attributes)
        sensitive = None if sensitive is None else sensitive[rows]
        person = None if person is None else person[rows]
        group_of_row = np.zeros(len(rows), dtype=np.int64)
        counts = Groups(group_of_row, sensitive, person=person, weights=sizes).table_counts
        return cls(tuple(attributes), (0,) * len(values), values, sizes, counts, sensitive, person)

    def classes(self, node: Levels) -> IntArray:
        """Equivalence class of each combination once generalized to `node`, numbered 0, 1, ... without gaps."""
        columns = self._generalized(node)
        sizes = [int(column.max(initial=0)) + 1 for column in columns]
        return compact(joint(columns, sizes, rows=len(self.rows)))

    def groups(self, class_of_combination: IntArray) -> Groups:
        """The classes, ready to be checked against a requirement."""
        return Groups(class_of_combination, self.sensitive, self.table_counts, self.person, self.rows)

    def roll_up(self, node: Levels) -> FrequencySet:
        """The frequency set at more general levels, equal combinations merged."""
        columns = [
            a.up(low, high)[value]
            for a, low, high, value in zip(self.attributes, self.node, node, self.values, strict=True)
        ]
        identity = [column for column in (self.sensitive, self.person) if column is not None]
        keys = keys_of([*columns, *identity])
        return FrequencySet(
            self.attributes,
            node,
            tuple(column[keys.first] for column in columns),
            np.bincount(keys.of_row, weights=self.rows).astype(np.int64),
            self.table_counts,
            None if self.sensitive is None else self.sensitive[keys.first],
            None if self.person is None else self.person[keys.first],
        )

    def losses_by_level(self, part: IntArray | None = None) -> list[FloatArray]:
        """Sum of the rows' NCP on each attribute at each level, 0 below the levels of this set."""
        rows = (self.rows if part is None else self.rows[part]).astype(np.float64)
        result = []
        for attribute, low, value in zip(self.attributes, self.node, self.values, strict=True):
            count = np.bincount(value if part is None else value[part], weights=rows, minlength=attribute.size(low))
            losses = [0.0] * low
            for level in range(low, attribute.height + 1):
                losses.append(float(count @ attribute.penalties[level]))
                if level < attribute.height:
                    count = np.bincount(attribute.steps[level], weights=count)
            result.append(np.array(losses))
        return result

    def _generalized(self, node: Levels) -> list[CodeArray]:
        """Values at a more general node, of the attributes that are not fully generalized there."""
        levels = zip(self.attributes, self.node, node, self.values, strict=True)
        return [
            value if low == high else attribute.up(low, high)[value]
            for attribute, low, high, value in levels
            if high < attribute.height
        ]
