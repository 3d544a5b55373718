"""Search of the generalization lattice for the node of least information loss, by branch and bound.

Loss is the normalized certainty penalty (Xu et al. 2006), the mean over rows and quasi-identifiers, where a suppressed
row counts as fully generalized (1). Losses within 1e-12 are ties, broken by the smaller height (sum of levels), then by
the smaller level of the first attribute. The result is that of an exhaustive search. Every node has a lower bound of
its loss: without suppression its own NCP; and a row that fails a row-monotone condition at a node fails it at every
more specific node, so the rows suppressed there raise the bounds of all of them, to infinity where there are too many
(predictive tagging). Nodes are checked from the most general ones down, in steps that double while nodes pass, so that
a check excludes many nodes and counts few classes; nodes whose bound is not below the best loss are never checked.
Papers: LeFevre, DeWitt and Ramakrishnan (2005), Incognito; Kohlmayer et al. (2012), Flash, for the order of the search.
Cost: one roll-up a checked node, from the set of the most specific levels that are still possible; exponential in the
attributes at worst.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.generalize import interval, range_width, set_width
from duckdb_anon.kernels.partition.privacy_models import (
    All,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    OfColumn,
    OfRows,
    PersonShare,
    PrivacyModel,
    RecursiveDiversity,
    TCloseness,
)
from duckdb_anon.kernels.row_keys import compact, joint, keys_of
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import Cells, Node, ValueSet


# Levels of generalization of one attribute: at each level every value of the domain has one generalized value. A
# hierarchy gives its own levels. Without one, a nominal attribute has its values and the set of all of them. An ordered
# attribute has its values, then intervals of equally many distinct values, `branching` of which are merged from level
# to level, then one interval (LeFevre, DeWitt and Ramakrishnan 2005 leave the levels to the user). NULL and numbers
# that are not finite stay separate below the last level. Cost: domain times levels.
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


_DIGITS = 12
_ROUNDING = 1e-13
"""More than rounding errors change a loss, less than half a unit of its last digit that counts."""
_TOLERANCE = 1 - 1e-6
"""Shares are compared with smaller tolerances than this, so what follows from them must not be stricter."""


def number_of_nodes(attributes: Sequence[GeneralizationLevels]) -> int:
    """How many level vectors the lattice has."""
    return math.prod(attribute.height + 1 for attribute in attributes)


def necessary_condition(
    requirement: PrivacyModel, table_counts: IntArray, *, suppressing: bool, persons: bool
) -> PrivacyModel | None:
    """The strictest known consequence of a requirement that excludes more specific nodes.

    With suppression, a row whose class fails it at a node fails it at every more specific node; without, a node with a
    failing class has only failing nodes below it. Shares of a class (entropy, frequency, closeness) do not have the
    first property, and shares that count persons not even the second.

    >>> necessary_condition(EntropyDiversity(2), np.array([5, 5]), suppressing=False, persons=False)
    EntropyDiversity(least=2)
    >>> necessary_condition(TCloseness(0.3, 'equal'), np.array([5, 3, 2]), suppressing=True, persons=False)
    DistinctDiversity(least=2)
    """
    if isinstance(requirement, (All, OfColumn, OfRows)):
        return _of_composite(requirement, table_counts, suppressing, persons)
    if isinstance(requirement, (KAnonymity, DistinctDiversity)) or not (suppressing or persons):
        return requirement
    if isinstance(requirement, PersonShare):
        return KAnonymity(math.ceil(requirement.least * _TOLERANCE)) if suppressing else requirement
    if isinstance(requirement, (EntropyDiversity, FrequencyDiversity, RecursiveDiversity)):
        return DistinctDiversity(requirement.least * _TOLERANCE)
    if isinstance(requirement, TCloseness) and requirement.ground == "equal":
        return DistinctDiversity(_fewest_values(requirement, table_counts))
    return None


def _fewest_values(requirement: TCloseness, table_counts: IntArray) -> int:
    """Values that a class of equal distance t or less has: those it lacks have a share of at most t in the table."""
    counts = table_counts if requirement.whole_counts is None else requirement.whole_counts
    shares = np.sort(counts / max(int(counts.sum()), 1))[::-1]
    return int(np.searchsorted(np.cumsum(shares), _TOLERANCE - requirement.t)) + 1


def _of_composite(
    requirement: All | OfColumn | OfRows, table_counts: IntArray, suppressing: bool, persons: bool
) -> PrivacyModel | None:
    if isinstance(requirement, All):
        parts = [
            necessary_condition(part, table_counts, suppressing=suppressing, persons=persons)
            for part in requirement.parts
        ]
        if all(a is b for a, b in zip(parts, requirement.parts, strict=True)):
            return requirement
        found = tuple(part for part in parts if part is not None)
        return (found[0] if len(found) == 1 else All(found)) if found else None
    if isinstance(requirement, OfRows):
        persons = False
    elif persons:
        # a person counts once for each value of the column, so the counts of combinations do not give its shares
        table_counts = np.ones(1, dtype=np.int64)
    else:
        table_counts = np.bincount(requirement.code_of[: len(table_counts)], weights=table_counts).astype(np.int64)
    part = necessary_condition(requirement.part, table_counts, suppressing=suppressing, persons=persons)
    return requirement if part is requirement.part else None if part is None else replace(requirement, part=part)


def least_loss_node(table: FrequencySet, requirement: PrivacyModel, allowed: int) -> Levels | None:
    """Return the levels of least loss at which at most `allowed` rows are in classes that fail the requirement.

    `allowed`: most rows that may be suppressed. Returns the level of each quasi-identifier; None where no level vector
    satisfies the requirement.
    """
    return _Search(table, requirement, allowed).run()


class _Search:
    """The lattice as an array, one axis an attribute, with a lower bound of the loss of every node."""

    def __init__(self, table: FrequencySet, requirement: PrivacyModel, allowed: int) -> None:
        self._set = table
        self._requirement = requirement
        self._allowed = allowed
        self._necessary = necessary_condition(
            requirement, table.table_counts, suppressing=allowed > 0, persons=table.person is not None
        )
        # constant attributes have one level and need no axis
        self._axes = [i for i, attribute in enumerate(table.attributes) if attribute.height > 0]
        self._shape = tuple(table.attributes[i].height + 1 for i in self._axes)
        self._weight = 1 / (max(int(table.rows.sum()), 1) * max(len(table.attributes), 1))
        self._ncp = self._sum_of(table.losses_by_level(), slice(None))
        self._bound = np.array(np.round(self._ncp - _ROUNDING, _DIGITS))
        self._height = np.sum(np.indices(self._shape), axis=0) if self._axes else np.zeros((), dtype=np.int64)
        self._best: tuple[float, int, int] = (np.inf, 0, 0)

    def run(self) -> Levels | None:
        """Check nodes until no bound is below the best loss."""
        bound, height = self._bound.reshape(-1), self._height.reshape(-1)
        # the most general nodes first, of equal height those of most loss
        possible = np.lexsort((-bound, -height))
        first_count, step = len(possible), 1
        while len(possible):
            tick()
            if 2 * len(possible) <= first_count:
                self._raise_levels(possible)
                first_count = len(possible)
            position = int(possible[min(step, len(possible)) - 1])
            step = 2 * step if self._check(position) else 1
            loss, least_height, least = self._best
            tied = (height[possible] < least_height) | ((height[possible] == least_height) & (possible < least))
            possible = possible[(bound[possible] < loss) | ((bound[possible] == loss) & tied)]
        return self._levels(self._best[2]) if np.isfinite(self._best[0]) else None

    def _check(self, position: int) -> bool:
        """Whether a node is valid; lowers the best loss and raises the bounds of more specific nodes."""
        node = self._levels(position)
        class_of = self._set.classes(node)
        groups = self._set.groups(class_of)
        certain = self._failing(self._necessary, groups, class_of)
        valid = self._rows(certain) <= self._allowed
        self._raise_bounds(node, certain, valid)
        self._bound.reshape(-1)[position] = np.inf
        if not valid:
            return False
        failing = certain
        if self._necessary is not self._requirement:
            failing = self._failing(self._requirement, groups, class_of)
            if self._rows(failing) > self._allowed:
                return False
        loss = round(float(self._with_suppressed(node, failing, exact=True)[(-1,) * len(self._axes)]), _DIGITS)
        self._best = min(self._best, (loss, sum(node), position))
        return True

    def _failing(self, condition: PrivacyModel | None, groups: Groups, class_of: IntArray) -> IntArray:
        """Combinations whose class does not satisfy a condition."""
        if condition is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(~condition.holds(groups)[class_of])

    def _raise_bounds(self, node: Levels, failing: IntArray, valid: bool) -> None:
        """Bounds of a node and all below it from the rows that certainly fail there."""
        below = self._box(node)
        if not valid:
            self._bound[below] = np.inf
        elif len(failing):
            loss = np.round(self._with_suppressed(node, failing) - _ROUNDING, _DIGITS)
            np.maximum(self._bound[below], loss, out=self._bound[below])

    def _with_suppressed(self, node: Levels, failing: IntArray, *, exact: bool = False) -> FloatArray:
        """Loss of the nodes from the set's levels to `node`, or of `node` alone, if the failing rows are suppressed."""
        box = self._box(node, exact=exact)
        if len(failing) == 0:
            return self._ncp[box]
        suppressed = self._rows(failing) * len(self._set.attributes) * self._weight
        return self._ncp[box] + suppressed - self._sum_of(self._set.losses_by_level(failing), box)

    def _sum_of(self, losses: list[FloatArray], box: tuple[slice, ...] | slice) -> FloatArray:
        """Mean over rows and attributes of every node in a box."""
        result = np.zeros(())
        for axis, i in enumerate(self._axes):
            part = losses[i][box if isinstance(box, slice) else box[axis]] * self._weight
            result = result[..., None] + part
        return result

    def _raise_levels(self, possible: IntArray) -> None:
        """Roll the set up to the most specific levels that are still possible, so that checks count less."""
        node = list(self._set.node)
        for i, levels in zip(self._axes, np.unravel_index(possible, self._shape), strict=True):
            node[i] = int(levels.min())
        if tuple(node) != self._set.node:
            self._set = self._set.roll_up(tuple(node))

    def _box(self, node: Levels, *, exact: bool = False) -> tuple[slice, ...]:
        low = node if exact else self._set.node
        return tuple(slice(low[i], node[i] + 1) for i in self._axes)

    def _levels(self, position: int) -> Levels:
        node = [0] * len(self._set.attributes)
        for i, level in zip(self._axes, np.unravel_index(position, self._shape), strict=True):
            node[i] = int(level)
        return tuple(node)

    def _rows(self, combinations: IntArray) -> int:
        return int(self._set.rows[combinations].sum())
