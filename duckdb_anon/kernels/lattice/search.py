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
from dataclasses import replace

import numpy as np

from duckdb_anon.kernels.lattice.levels import FrequencySet, GeneralizationLevels, Levels
from duckdb_anon.kernels.partition.equivalence_classes import Groups
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
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import tick

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
