"""Random output tables of one attribute for all groups, and drawing from them.

Released: for each record one value of its group, drawn from its row of the table. Guarantee: in every column
of every table no record has more than the share delta of the column's mass (Li et al. 2020, section 3),
checked on the finished tables by `verify`. Cost: linear in the number of positive entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.random_output_tables.delta import Delta
from duckdb_anon.kernels.random_output_tables.distance import pair_distance
from duckdb_anon.kernels.random_output_tables.lp_grouping import Classes
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError

TOLERANCE = 1e-7


@dataclass(frozen=True)
class OutputTable:
    """Positive entries of all tables, sorted by group, original and output value: muco_tables' columns.

    Attributes:
        group: group number.
        original: code of the original value.
        output: code of the published value.
        probability: that a record of that group and value is published as `output`.
    """

    group: IntArray
    original: CodeArray
    output: CodeArray
    probability: FloatArray


@dataclass(frozen=True)
class MutualCover:
    """Random output tables of one attribute, one a group.

    Attributes:
        attribute: the attribute.
        classes: the (group, value) classes.
        offsets: class c owns entries offsets[c]:offsets[c + 1], shape (classes + 1,).
        column: the class whose value an entry publishes, in the same group.
        probability: probability of each entry, positive; the entries of a class sum to 1.
    """

    attribute: Attribute
    classes: Classes
    offsets: IntArray
    column: IntArray
    probability: FloatArray

    @cached_property
    def row(self) -> IntArray:
        """Class of each entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def draw(self, rng: np.random.Generator) -> CodeArray:
        """Draw the published code of every row, independently; shape (n,)."""
        classes = self.classes
        # Draws go to rows in sorted order, so a seed means the same release however the rows are ordered.
        spot = rng.random(len(classes.rows))
        total = np.cumsum(self.probability)
        before = np.concatenate([[0.0], total])[self.offsets[:-1]]
        mass = np.diff(np.append(before, total[-1:]))
        own = classes.class_of_sorted
        entry = np.searchsorted(total, before[own] + spot * mass[own], side="right")
        # Rounding at the very end of a row falls back to its last positive column.
        entry = np.clip(entry, self.offsets[own], self.offsets[own + 1] - 1)
        published = np.empty(len(own), dtype=np.int32)
        published[classes.rows] = classes.code[self.column[entry]]
        return published

    @cached_property
    def cost(self) -> FloatArray:
        """Expected total distance between original and published values of each group, shape (groups,)."""
        classes = self.classes
        distance = pair_distance(self.attribute, classes.code[self.row], classes.code[self.column])
        weight = classes.count[self.row] * self.probability * distance
        return _summed(classes.group[self.row], weight, classes.groups)

    @cached_property
    def column_mass(self) -> FloatArray:
        """Expected number of records published as each class, shape (classes,)."""
        weight = self.classes.count[self.row] * self.probability
        return _summed(self.column, weight, len(self.classes.code))

    @cached_property
    def kept(self) -> FloatArray:
        """Probability that a record of each class is published with its own value, shape (classes,)."""
        own = self.column == self.row
        return _summed(self.row[own], self.probability[own], len(self.classes.code))

    @property
    def max_ratio(self) -> float:
        """Largest share of one record in the mass of a column: the delta these tables attain."""
        return float((self.probability / self.column_mass[self.column]).max(initial=0.0))

    def verify(self, delta: Delta) -> None:
        """Check the finished tables.

        Raises:
            RequirementError: a row does not sum to 1, or a record exceeds its share of a column.
        """
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

    def table(self) -> OutputTable:
        """Return all positive entries."""
        classes = self.classes
        return OutputTable(classes.group[self.row], classes.code[self.row], classes.code[self.column], self.probability)


def _summed(place: IntArray, amount: FloatArray, places: int) -> FloatArray:
    return np.bincount(place, weights=amount, minlength=places).astype(np.float64)
