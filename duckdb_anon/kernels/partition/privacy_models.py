"""What a group of rows must satisfy before it may be released together.

Guarantees: k-anonymity (Sweeney 2002), distinct, entropy and recursive (c, l)-diversity (Machanavajjhala
et al. 2006), frequency l-diversity (share of every sensitive value at most 1/l), t-closeness (Li, Li and
Venkatasubramanian 2007), and all of several. Where rows belong to persons, all of them count persons: a group's size
is the number of its persons, a value's count the number of persons that have it.

Writing another one: subclass `Requirement`, set `min_size`, give `holds` and `attained`, and `rules`: the same
condition for one part at a time, see `privacy_checks_jit.Check`. `holds` receives `Groups`: sizes, the occupied
(group, sensitive code, count) cells and the counts of the whole table. A partitioner only ever
checks the parts of a group, so a requirement need not be monotone under union; but where the whole table fails, there
is no partition at all.

Cost: one sort of the rows for the cells, then linear in the number of cells.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import (
    DISTINCT,
    ENTROPY,
    FREQUENCY,
    RECURSIVE,
    SIZE,
    TOLERANCE,
    Check,
)
from duckdb_anon.kernels.partition.sort_count import order_by
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

BoolArray = NDArray[np.bool_]
_DENOMINATOR = 10**6


class Requirement(ABC):
    """A condition on groups."""

    @property
    def min_size(self) -> int:
        """Rows without which no group can satisfy it; lets a partitioner stop early."""
        return 1

    @property
    def needs_sensitive(self) -> bool:
        """Whether `holds` reads sensitive codes."""
        return True

    @abstractmethod
    def rules(self, table_counts: IntArray) -> list[Check]:
        """Say the requirement as rules, which a partitioner checks on one part at a time.

        Args:
            table_counts: rows (persons) of the whole table with each sensitive code.
        """

    @abstractmethod
    def holds(self, groups: Groups) -> BoolArray:
        """Return for each group whether it satisfies the requirement, shape (groups,)."""

    @abstractmethod
    def attained(self, whole: Groups) -> str:
        """Say, for the table as one group, what is asked and how far the table can go."""


@dataclass(frozen=True)
class KAnonymity(Requirement):
    """At least k rows: |G| >= k."""

    k: int

    @property
    def needs_sensitive(self) -> bool:
        """It counts rows only."""
        return False

    @property
    def min_size(self) -> int:
        """Rows a group needs."""
        return self.k

    def rules(self, table_counts: IntArray) -> list[Check]:
        return [Check(SIZE, (self.k,))]

    def holds(self, groups: Groups) -> BoolArray:
        return groups.sizes >= self.k

    def attained(self, whole: Groups) -> str:
        return f"k = {self.k} is asked, the largest k this table can meet is {int(whole.sizes.sum())}"


class _Diversity(Requirement):
    least: float

    @property
    def min_size(self) -> int:
        """Rows a group needs: l values of one row each."""
        return max(1, math.ceil(self.least - TOLERANCE))

    @abstractmethod
    def effective(self, groups: Groups) -> FloatArray:
        """Return the largest l each group satisfies, shape (groups,)."""

    def attained(self, whole: Groups) -> str:
        best = math.floor(float(self.effective(whole).min()) * 1000 + 1e-6) / 1000
        return f"l = {self.least:g} is asked, the largest l this table can meet is {best:g}"


@dataclass(frozen=True)
class DistinctDiversity(_Diversity):
    """At least l (`least`) different sensitive values."""

    least: float

    def effective(self, groups: Groups) -> FloatArray:
        return np.diff(groups.cells.offsets).astype(np.float64)

    def rules(self, table_counts: IntArray) -> list[Check]:
        return [Check(DISTINCT, (self.least,))]

    def holds(self, groups: Groups) -> BoolArray:
        return self.effective(groups) >= self.least - TOLERANCE


@dataclass(frozen=True)
class FrequencyDiversity(_Diversity):
    """Every sensitive value has a share of at most 1/l: max_s c_s * l <= |G|, in whole numbers."""

    least: float

    def effective(self, groups: Groups) -> FloatArray:
        return groups.sizes / groups.largest

    def rules(self, table_counts: IntArray) -> list[Check]:
        exact = Fraction(self.least).limit_denominator(_DENOMINATOR)
        return [Check(FREQUENCY, (exact.numerator, exact.denominator))]

    def holds(self, groups: Groups) -> BoolArray:
        exact = Fraction(self.least).limit_denominator(_DENOMINATOR)
        return groups.largest * exact.numerator <= groups.sizes * exact.denominator


@dataclass(frozen=True)
class EntropyDiversity(_Diversity):
    """The entropy of the sensitive values is at least ln l (tolerance 1e-9)."""

    least: float

    def effective(self, groups: Groups) -> FloatArray:
        count = groups.cells.counts
        inner = groups.sum_cells(count * np.log(count))
        entropy: FloatArray = np.exp(np.log(groups.totals) - inner / groups.totals)
        return entropy

    def rules(self, table_counts: IntArray) -> list[Check]:
        return [Check(ENTROPY, (math.log(self.least),))]

    def holds(self, groups: Groups) -> BoolArray:
        return np.log(self.effective(groups)) >= math.log(self.least) - TOLERANCE


@dataclass(frozen=True)
class RecursiveDiversity(Requirement):
    """Recursive (c, l): counts r_1 >= .. >= r_m have m >= l and r_1 < c * (r_l + .. + r_m)."""

    c: float
    least: int

    @property
    def min_size(self) -> int:
        """Rows a group needs."""
        return max(1, self.least)

    def _tail(self, groups: Groups) -> IntArray:
        """Rows outside the l - 1 most frequent values of each group."""
        cells = groups.cells
        most = int(cells.counts.max(initial=0))
        order = order_by(cells.group, most - cells.counts, most + 1)
        rank = np.arange(len(order)) - cells.offsets[cells.group]
        rare = np.where(rank >= self.least - 1, cells.counts[order], 0)
        tail: IntArray = np.add.reduceat(rare, cells.offsets[:-1])
        return tail

    def rules(self, table_counts: IntArray) -> list[Check]:
        exact = Fraction(self.c).limit_denominator(_DENOMINATOR)
        return [Check(RECURSIVE, (self.least, exact.numerator, exact.denominator))]

    def holds(self, groups: Groups) -> BoolArray:
        exact = Fraction(self.c).limit_denominator(_DENOMINATOR)
        return groups.largest * exact.denominator < self._tail(groups) * exact.numerator

    def attained(self, whole: Groups) -> str:
        asked = f"recursive (c = {self.c:g}, l = {self.least}) is asked"
        tail = int(self._tail(whole).min())
        if tail == 0:
            return f"{asked}, the largest l this table can meet is {len(whole.cells.code)}"
        return f"{asked}, with this l the table needs a c above {int(whole.largest.max()) / tail:.6g}"


@dataclass(frozen=True)
class All(Requirement):
    """Several requirements at once."""

    parts: tuple[Requirement, ...]

    @property
    def min_size(self) -> int:
        """The largest minimum of the parts."""
        return max((part.min_size for part in self.parts), default=1)

    @property
    def needs_sensitive(self) -> bool:
        """Whether any part does."""
        return any(part.needs_sensitive for part in self.parts)

    def rules(self, table_counts: IntArray) -> list[Check]:
        return [rule for part in self.parts for rule in part.rules(table_counts)]

    def holds(self, groups: Groups) -> BoolArray:
        result = np.ones(len(groups), dtype=bool)
        for part in self.parts:
            result &= part.holds(groups)
        return result

    def attained(self, whole: Groups) -> str:
        return "; ".join(part.attained(whole) for part in self.parts if not part.holds(whole).all())


@dataclass(frozen=True, eq=False)
class OfColumn(Requirement):
    """A requirement on one of several sensitive columns, whose combination has one code a row.

    An attacker who knows a person's value of one sensitive column may rule out rows by it; what is then left of
    another column is not bounded (Machanavajjhala et al. 2007, on several sensitive attributes).
    """

    part: Requirement  # what the column must satisfy
    column: str  # name of the column, for messages
    code_of: CodeArray  # the column's code for each code of the combination, shape (combinations,)

    @property
    def min_size(self) -> int:
        """Rows a group needs."""
        return self.part.min_size

    def rules(self, table_counts: IntArray) -> list[Check]:
        table = np.bincount(self.code_of, weights=table_counts, minlength=int(self.code_of.max()) + 1)
        return [rule._replace(view=self.code_of) for rule in self.part.rules(table.astype(np.int64))]

    def holds(self, groups: Groups) -> BoolArray:
        return self.part.holds(groups.seen_through(self.code_of))

    def attained(self, whole: Groups) -> str:
        return f"'{self.column}': {self.part.attained(whole.seen_through(self.code_of))}"


def combine(columns: Sequence[CodeArray]) -> tuple[CodeArray, tuple[CodeArray, ...]]:
    """Give each combination of codes that occurs a code of its own.

    >>> rows, of_column = combine([np.array([1, 0, 1], dtype=np.int32), np.array([2, 2, 2], dtype=np.int32)])
    >>> rows.tolist(), [codes.tolist() for codes in of_column]
    ([1, 0, 1], [[0, 1], [2, 2]])
    """
    rows, first = keys_of(columns)
    return rows.astype(np.int32), tuple(codes[first] for codes in columns)
