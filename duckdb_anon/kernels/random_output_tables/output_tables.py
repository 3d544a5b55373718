"""Random output tables of one attribute for all groups, and draws from them.

Released: for each record one value of its group, drawn from its row of a random output table. Guarantee,
delta-probability, checked on the finished tables by `verify`: in every column no record has more than the share delta
of the column's mass, so at least 1/delta records may have any released value. It does not bound the risk of
re-identification by delta; see Li et al. (2020), arXiv 2008.10771, section 3. `cover` builds the tables of least
expected distance (section 4); `uniform_cover` those that permuting columns draws from. Departure: output values are
those of the group, which loses nothing for |difference|, tree and 0/1 distances. Cost: a sort, then one small linear
program for each distinct pattern of gaps and counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.sort_count import offsets_of, owners, ranges
from duckdb_anon.kernels.random_output_tables.lp_grouping import (
    Classes,
    Patterns,
    cut_wide_groups,
    find_classes,
    find_patterns,
    pair_distance,
)
from duckdb_anon.kernels.random_output_tables.lp_solver import random_output_tables
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError

TOLERANCE = 1e-7
_RECIPROCAL_TOLERANCE = 1e-9
_EXACT_WIDTH = 256
Entries = tuple[IntArray, IntArray, FloatArray]


@dataclass(frozen=True)
class Delta:
    """A delta in (0, 1]."""

    # delta as a float, exactly 1/K where delta is within 1e-9 of 1/K for an integer K: a float such as 0.1666666667 is
    # meant as 1/6, and the difference decides whether 6 records are enough
    value: float
    # ceil(1/delta), the fewest records that can hide one another (Property 1 of the paper: a group of m records has a
    # random output table iff delta >= 1/m)
    smallest_group: int

    @classmethod
    def of(cls, delta: Fraction | Decimal | float) -> Delta:
        """Read `delta`.

        Raises:
            ParameterError: delta is not in (0, 1].

        >>> Delta.of(0.1666666667).smallest_group, Delta.of(0.3).smallest_group
        (6, 4)
        """
        value = float(delta)
        if not 0.0 < value <= 1.0:
            raise ParameterError(f"muco: delta is {delta}; it must be above 0 and at most 1")
        nearest = round(1.0 / value)
        if abs(value - 1.0 / nearest) <= _RECIPROCAL_TOLERANCE:
            return cls(1.0 / nearest, nearest)
        return cls(value, math.ceil(1.0 / value))

    def require(self, group_sizes: IntArray) -> None:
        """Raise RequirementError unless every nonempty group has at least `smallest_group` records."""
        occupied = group_sizes[group_sizes > 0]
        smallest = int(np.min(occupied)) if len(occupied) else self.smallest_group
        if smallest < self.smallest_group:
            raise RequirementError(
                f"muco: delta {self.value:.6g} needs groups of at least {self.smallest_group} records, but "
                f"one has {smallest}; the smallest delta these groups can meet is 1/{smallest}: raise delta "
                "or l"
            )


@dataclass(frozen=True)
class MutualCover:
    """Random output tables of one attribute, one per group."""

    attribute: Attribute  # the attribute
    classes: Classes  # the (group, value) classes
    offsets: IntArray  # class c owns entries offsets[c]:offsets[c + 1], shape (classes + 1,)
    column: IntArray  # the class whose value an entry publishes, in the same group
    probability: FloatArray  # probability of each entry, positive; the entries of a class sum to 1

    @cached_property
    def row(self) -> IntArray:
        """Class of each entry."""
        return owners(self.offsets)

    def draw(self, rng: np.random.Generator) -> CodeArray:
        """Draw the released code of every row, independently; shape (n,)."""
        classes = self.classes
        # Draws go to rows in sorted order, so a seed means the same release however the rows are ordered.
        uniform = rng.random(len(classes.rows))
        total = np.cumsum(self.probability)
        before = np.concatenate([[0.0], total])[self.offsets[:-1]]
        mass = np.diff(np.append(before, total[-1:]))
        row = classes.class_of_sorted
        entry = np.searchsorted(total, before[row] + uniform * mass[row], side="right")
        # Rounding at the very end of a row falls back to its last positive column.
        entry = np.clip(entry, self.offsets[row], self.offsets[row + 1] - 1)
        released = np.empty(len(row), dtype=np.int32)
        released[classes.rows] = classes.code[self.column[entry]]
        return released

    @cached_property
    def cost(self) -> FloatArray:
        """Expected total distance between original and released values of each group, shape (groups,)."""
        classes = self.classes
        distance = pair_distance(self.attribute, classes.code[self.row], classes.code[self.column])
        weight = classes.count[self.row] * self.probability * distance
        return _summed(classes.group[self.row], weight, classes.groups)

    @cached_property
    def column_mass(self) -> FloatArray:
        """Expected number of records released with the value of each class, shape (classes,)."""
        weight = self.classes.count[self.row] * self.probability
        return _summed(self.column, weight, len(self.classes.code))

    @property
    def max_ratio(self) -> float:
        """Largest share of one record in the mass of a column: the delta these tables attain."""
        return float((self.probability / self.column_mass[self.column]).max(initial=0.0))

    def verify(self, delta: Delta) -> None:
        """Check the finished tables."""
        sums = _summed(self.row, self.probability, len(self.classes.code))
        if len(sums) and float(np.abs(sums - 1.0).max()) > TOLERANCE:
            raise RequirementError(
                f"muco: a row of the random output tables of column '{self.attribute.name}' does not sum "
                "to 1; nothing was released"
            )
        if self.max_ratio > delta.value + TOLERANCE:
            raise RequirementError(
                f"muco: the tables of column '{self.attribute.name}' attain delta {self.max_ratio:.9g}, not "
                f"{delta.value:.9g}; nothing was released"
            )

    def table(self) -> dict[str, NDArray[Any]]:
        """Return all positive entries, sorted by group, original and output value: the columns of muco_tables."""
        classes = self.classes
        return {
            "group_id": classes.group[self.row],
            "original": classes.code[self.row],
            "output": classes.code[self.column],
            "probability": self.probability,
            "records": classes.count[self.row],
        }


def cover(attribute: Attribute, group_of_row: IntArray, delta: Fraction | Decimal | float) -> MutualCover:
    """Build the random output tables of least expected distance of one attribute for all groups.

    The least to 1e-7 of the group's range a record; groups of more than 256 different values are cut first and come
    close.

    Args:
        attribute: codes and distances of the column, n rows.
        delta: largest share of one record in the mass of a column, in (0, 1].

    Returns:
        The tables, verified.

    Raises:
        ParameterError: delta is out of range.
        RequirementError: a group has fewer than ceil(1/delta) rows.

    >>> codes = np.array([0, 0, 1], dtype=np.int32)
    >>> age = Attribute("age", "ordered", codes, np.array([28.0, 29.0]), 2, -1, np.array([0, 2]))
    >>> tables = cover(age, np.zeros(3, dtype=np.int64), 0.5)
    >>> round(float(tables.cost[0]), 6), round(tables.max_ratio, 6)
    (1.0, 0.5)
    """
    required = Delta.of(delta)
    classes = find_classes(attribute, group_of_row)
    required.require(np.bincount(group_of_row, minlength=classes.groups).astype(np.int64))
    pieces = cut_wide_groups(classes, required.smallest_group, _EXACT_WIDTH)
    entries = []
    for patterns in find_patterns(attribute.kind, classes, pieces):
        tables = random_output_tables(attribute.kind, patterns.gaps, patterns.count, required.value)
        entries.append(_expand(patterns, tables))
    result = _assemble(attribute, classes, entries)
    result.verify(required)
    return result


def uniform_cover(attribute: Attribute, group_of_row: IntArray, delta: Fraction | Decimal | float) -> MutualCover:
    """Build the tables that columns permuted inside groups are draws from.

    A record of a group of m is released with a value with probability (rows that have it) / m, so its share of the
    value's mass is 1/m: delta-probability holds with delta = 1/m. Arguments and errors are those of `cover`.

    >>> codes = np.array([0, 0, 1], dtype=np.int32)
    >>> age = Attribute("age", "ordered", codes, np.array([28.0, 29.0]), 2, -1, np.array([0, 2]))
    >>> uniform_cover(age, np.zeros(3, dtype=np.int64), 0.4).max_ratio.__round__(6)
    0.333333
    """
    required = Delta.of(delta)
    classes = find_classes(attribute, group_of_row)
    sizes = np.bincount(group_of_row, minlength=classes.groups).astype(np.int64)
    required.require(sizes)
    width = np.diff(classes.first)[classes.group]
    offsets = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    row, column = owners(offsets), ranges(classes.first[classes.group], width)
    tables = MutualCover(attribute, classes, offsets, column, classes.count[column] / sizes[classes.group[row]])
    tables.verify(required)
    return tables


def _expand(patterns: Patterns, tables: FloatArray) -> Entries:
    """Copy the positive entries of each pattern's table to the groups that pose it."""
    pattern, row, column = np.nonzero(tables)
    probability = tables[pattern, row, column]
    start = np.searchsorted(pattern, np.arange(len(tables) + 1))
    size = np.diff(start)[patterns.pattern_of]
    piece = np.repeat(np.arange(len(size)), size)
    entry = ranges(start[patterns.pattern_of], size)
    return patterns.member[piece, row[entry]], patterns.member[piece, column[entry]], probability[entry]


def _assemble(attribute: Attribute, classes: Classes, entries: list[Entries]) -> MutualCover:
    """Sort entries by class and output value into one flat table."""
    total = len(classes.code)
    if not entries:
        empty = np.zeros(0, dtype=np.int64)
        return MutualCover(attribute, classes, np.zeros(1, dtype=np.int64), empty, np.zeros(0))
    row, column, probability = (np.concatenate(part) for part in zip(*entries, strict=True))
    order = np.argsort(row * total + column, kind="stable")
    return MutualCover(attribute, classes, offsets_of(row[order], total), column[order], probability[order])


def _summed(index: IntArray, amount: FloatArray, size: int) -> FloatArray:
    return np.bincount(index, weights=amount, minlength=size).astype(np.float64)
