"""What a group of rows must satisfy before it may be released together.

Guarantees: k-anonymity (Sweeney 2002); distinct, entropy and recursive (c, l)-diversity (Machanavajjhala et al. 2006);
frequency l-diversity (share of every sensitive value at most 1/l), also among the rows that are alike; t-closeness: the
earth mover's distance between group and table is at most t, with three ground distances (Li, Li and Venkatasubramanian
2007); all of several. Where rows belong to individuals, all of them count individuals: a group's size is the number of
its individuals, a value's count the number of those that have it. `OfRows` counts rows all the same, for else a single
row may show a value more often, and `PersonShare` bounds the share of one individual in a group's rows.

To add one, subclass `PrivacyModel`. A partitioner only checks the parts of a group, so a model need not be monotone
under union; but where the full table fails there is no partition at all.

Cost: one sort of the rows for the cells, then linear in the occupied (group, value) cells; for t over a hierarchy times
its height. It does not depend on the size of the domain.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import (
    CONDITIONAL,
    DISTINCT,
    ENTROPY,
    EQUAL,
    FREQUENCY,
    FREQUENCY_OF_SOME,
    HIERARCHICAL,
    ORDERED,
    PERSON_ROWS,
    RECURSIVE,
    SIZE,
    TOLERANCE,
    Check,
)
from duckdb_anon.kernels.partition.sort_count import order_by
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.hierarchy import Hierarchy

BoolArray = NDArray[np.bool_]
_DENOMINATOR = 10**6


class PrivacyModel(ABC):
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
    def checks(self, table_counts: IntArray) -> list[Check]:
        """The same condition on one part at a time; `table_counts` has the table's rows (persons) by sensitive code."""

    @abstractmethod
    def holds(self, groups: Groups) -> BoolArray:
        """Whether each group satisfies it, shape (groups,)."""

    @abstractmethod
    def best_achievable(self, table: Groups) -> str:
        """What is required, and how far the table, as one group, can go."""


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """At least k rows: |G| >= k."""

    k: int

    @property
    def needs_sensitive(self) -> bool:
        return False

    @property
    def min_size(self) -> int:
        return self.k

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(SIZE, (self.k,))]

    def holds(self, groups: Groups) -> BoolArray:
        return groups.sizes >= self.k

    def best_achievable(self, table: Groups) -> str:
        return f"k = {self.k} was requested; the largest k this table can meet is {int(table.sizes.sum())}"


@dataclass(frozen=True)
class _Diversity(PrivacyModel):
    least: float  # l

    @property
    def min_size(self) -> int:
        return _fewest(self.least)

    @abstractmethod
    def effective(self, groups: Groups) -> FloatArray:
        """The largest l that each group satisfies, shape (groups,)."""

    def holds(self, groups: Groups) -> BoolArray:
        return self.effective(groups) >= self.least - TOLERANCE

    def best_achievable(self, table: Groups) -> str:
        best = _rounded_down(float(self.effective(table).min()))
        return f"l = {self.least:g} was requested; the largest l this table can meet is {best:g}"


@dataclass(frozen=True)
class DistinctDiversity(_Diversity):
    """At least l different sensitive values."""

    def effective(self, groups: Groups) -> FloatArray:
        return np.diff(groups.cells.offsets).astype(np.float64)

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(DISTINCT, (self.least,))]


@dataclass(frozen=True)
class FrequencyDiversity(_Diversity):
    """Every sensitive value has a share of at most 1/l: max_s c_s * l <= |G|, in whole numbers.

    Values that are excepted may have any share (Machanavajjhala et al. 2007, section 4.2: don't-care values).
    """

    excepted: tuple[int, ...] = ()  # their codes

    @property
    def min_size(self) -> int:
        return 1 if self.excepted else _fewest(self.least)

    def _largest(self, groups: Groups) -> IntArray:
        if not self.excepted or len(groups) == 0:
            return groups.largest
        counts = np.where(np.isin(groups.cells.code, self.excepted), 0, groups.cells.counts)
        return np.asarray(np.maximum.reduceat(counts, groups.cells.offsets[:-1]))

    def effective(self, groups: Groups) -> FloatArray:
        return groups.sizes / np.maximum(self._largest(groups), 1)

    def checks(self, table_counts: IntArray) -> list[Check]:
        if not self.excepted:
            return [Check(FREQUENCY, _exact(self.least))]
        counted = np.ones(len(table_counts), dtype=np.int32)
        counted[[code for code in self.excepted if code < len(counted)]] = 0
        return [Check(FREQUENCY_OF_SOME, _exact(self.least), codes=counted)]

    def holds(self, groups: Groups) -> BoolArray:
        return ~_too_frequent(self._largest(groups), groups.sizes, self.least)


@dataclass(frozen=True)
class EntropyDiversity(_Diversity):
    """The entropy of the sensitive values is at least ln l (tolerance 1e-9)."""

    def effective(self, groups: Groups) -> FloatArray:
        count = groups.cells.counts
        inner = groups.sum_cells(count * np.log(count))
        entropy: FloatArray = np.exp(np.log(groups.totals) - inner / groups.totals)
        return entropy

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(ENTROPY, (math.log(self.least),))]

    def holds(self, groups: Groups) -> BoolArray:
        return np.log(self.effective(groups)) >= math.log(self.least) - TOLERANCE


@dataclass(frozen=True)
class RecursiveDiversity(PrivacyModel):
    """Recursive (c, l): counts r_1 >= .. >= r_m have m >= l and r_1 < c * (r_l + .. + r_m)."""

    c: float
    least: int

    @property
    def min_size(self) -> int:
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

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(RECURSIVE, (self.least, *_exact(self.c)))]

    def holds(self, groups: Groups) -> BoolArray:
        numerator, denominator = _exact(self.c)
        return groups.largest * denominator < self._tail(groups) * numerator

    def best_achievable(self, table: Groups) -> str:
        required = f"recursive (c = {self.c:g}, l = {self.least}) was requested"
        tail = int(self._tail(table).min())
        if tail == 0:
            return f"{required}, the largest l this table can meet is {len(table.cells.code)}"
        return f"{required}, with this l the table needs a c above {int(table.largest.max()) / tail:.6g}"


@dataclass(frozen=True)
class ConditionalDiversity(PrivacyModel):
    """Frequency l-diversity of the sensitive value among the rows of a group that are alike, such as by a column part.

    Slicing is l-diverse (Li, Li, Zhang and Molloy 2012, section 5) where p(t, s), a mixture over buckets of the share
    of value s among the rows whose last column part is that of record t, is at most 1/l; so it is enough that all
    these shares are. Buckets from cuts that never separate equal values differ in the range of the attribute cut
    between them: a record matches its own bucket only, and the condition is also necessary. It is put on combined
    codes: each stands for a part and a sensitive value. Where rows belong to persons, each counts once for every code
    and once for every part.
    """

    l: float  # noqa: E741 - the letter of the papers
    part_of_code: IntArray  # part of each combined code; all zero when the sensitive value is alone
    among: str = "rows that agree on the attributes of its column (sensitive_column := 'alone' asks less)"

    @property
    def min_size(self) -> int:
        return _fewest(self.l)

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(CONDITIONAL, _exact(self.l), codes=self.part_of_code.astype(np.int32))]

    def _rows_of_part(self, groups: Groups) -> IntArray:
        """Rows (persons) of each cell's group that have its part."""
        cells, parts = groups.cells, groups.project_codes(self.part_of_code).cells
        domain = int(self.part_of_code.max(initial=0)) + 1
        key = cells.group * domain + self.part_of_code[cells.code]
        rows: IntArray = parts.counts[np.searchsorted(parts.group * domain + parts.code, key)]
        return rows

    def holds(self, groups: Groups) -> BoolArray:
        frequent = _too_frequent(groups.cells.counts, self._rows_of_part(groups), self.l)
        return np.asarray(groups.sum_cells(frequent) == 0)

    def best_achievable(self, table: Groups) -> str:
        best = float((self._rows_of_part(table) / table.cells.counts).min())
        return (
            f"l = {self.l:g} was requested for the sensitive value among {self.among}; the largest l this table can "
            f"meet is {best:.4g}"
        )


@dataclass(frozen=True)
class PersonShare(PrivacyModel):
    """No person has more than the share 1 / `least` of a group's rows; so it has that many persons or more."""

    least: float  # 1 or more

    @property
    def min_size(self) -> int:
        return _fewest(self.least)

    @property
    def needs_sensitive(self) -> bool:
        return False

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(PERSON_ROWS, _exact(self.least))]

    def holds(self, groups: Groups) -> BoolArray:
        return FrequencyDiversity(self.least).holds(groups.of_rows("person"))

    def best_achievable(self, table: Groups) -> str:
        rows = table.of_rows("person")
        most = _rounded_down(float((rows.sizes / rows.largest).min()))
        return f"at most 1/{self.least:g} of a group's rows may belong to one individual; in the table 1/{most:g} are"


@dataclass(frozen=True)
class All(PrivacyModel):
    """Several models at once."""

    parts: tuple[PrivacyModel, ...]

    @property
    def min_size(self) -> int:
        return max((part.min_size for part in self.parts), default=1)

    @property
    def needs_sensitive(self) -> bool:
        return any(part.needs_sensitive for part in self.parts)

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [check for part in self.parts for check in part.checks(table_counts)]

    def holds(self, groups: Groups) -> BoolArray:
        return np.logical_and.reduce([part.holds(groups) for part in self.parts])

    def best_achievable(self, table: Groups) -> str:
        return "; ".join(part.best_achievable(table) for part in self.parts if not part.holds(table).all())


@dataclass(frozen=True, eq=False)
class OfColumn(PrivacyModel):
    """A model of one of several sensitive columns, whose combination has one code a row.

    An attacker who knows a person's value of one sensitive column may rule out rows by it; what is then left of
    another column is not bounded (Machanavajjhala et al. 2007, on several sensitive attributes).
    """

    part: PrivacyModel  # what the column must satisfy
    column: str  # name of the column, for messages
    code_of: CodeArray  # the column's code for each code of the combination, shape (combinations,)

    @property
    def min_size(self) -> int:
        return self.part.min_size

    def checks(self, table_counts: IntArray) -> list[Check]:
        table = np.bincount(self.code_of, weights=table_counts, minlength=int(self.code_of.max()) + 1)
        return [check._replace(view=self.code_of) for check in self.part.checks(table.astype(np.int64))]

    def holds(self, groups: Groups) -> BoolArray:
        return self.part.holds(groups.project_codes(self.code_of))

    def best_achievable(self, table: Groups) -> str:
        return f"'{self.column}': {self.part.best_achievable(table.project_codes(self.code_of))}"


@dataclass(frozen=True)
class OfRows(PrivacyModel):
    """A model of sensitive values that counts rows even where persons are counted."""

    part: PrivacyModel

    @property
    def min_size(self) -> int:
        return self.part.min_size

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [check._replace(rows=True) for check in self.part.checks(table_counts)]

    def holds(self, groups: Groups) -> BoolArray:
        return self.part.holds(groups.of_rows("value"))

    def best_achievable(self, table: Groups) -> str:
        return f"of rows, {self.part.best_achievable(table.of_rows('value'))}"


def require_table(function: str, model: PrivacyModel, table: Groups) -> None:
    """Raise a RequirementError, which says what the table can meet, unless the full table satisfies the model."""
    if not model.holds(table).all():
        raise RequirementError(
            f"{function}: the table as one group fails the requirement: {model.best_achievable(table)}"
        )


def of_persons_and_rows(diversity: PrivacyModel, least: float) -> PrivacyModel:
    """`diversity` whether persons or rows are counted, and no person has more than 1 / `least` of the rows."""
    return All((diversity, OfRows(diversity), PersonShare(least)))


def diverse_persons(least: float, excepted: tuple[int, ...] = ()) -> PrivacyModel:
    """No value is had by more than 1 / `least` of the persons; no value, no person has more than that of the rows."""
    return of_persons_and_rows(FrequencyDiversity(least, excepted), least)


def combine(columns: Sequence[CodeArray]) -> tuple[CodeArray, tuple[CodeArray, ...]]:
    """Give each combination of codes that occurs a code of its own; return it by row, and each column's code by it.

    >>> rows, of_column = combine([np.array([1, 0, 1], dtype=np.int32), np.array([2, 2, 2], dtype=np.int32)])
    >>> rows.tolist(), [codes.tolist() for codes in of_column]
    ([1, 0, 1], [[0, 1], [2, 2]])
    """
    rows, first = keys_of(columns)
    return rows.astype(np.int32), tuple(codes[first] for codes in columns)


def _fewest(least: float) -> int:
    """Rows a group needs that has l values of one row each."""
    return max(1, math.ceil(least - TOLERANCE))


def _exact(number: float) -> tuple[int, int]:
    exact = Fraction(number).limit_denominator(_DENOMINATOR)
    return exact.numerator, exact.denominator


def _too_frequent(count: IntArray, rows: IntArray, least: float) -> BoolArray:
    """Whether a count is more than 1/l of some rows, in whole numbers."""
    numerator, denominator = _exact(least)
    return np.asarray(count * numerator > rows * denominator)


def _rounded_down(number: float) -> float:
    return math.floor(number * 1000 + 1e-6) / 1000


Ground = Literal["equal", "ordered", "hierarchical"]


@dataclass(frozen=True, eq=False)
class TCloseness(PrivacyModel):
    """Earth mover's distance to the table's distribution at most t."""

    t: float  # largest distance allowed, 0 .. 1 (tolerance 1e-9)
    # 'equal' (any two values are 1 apart), 'ordered' (values i and j of m are |i - j| / (m - 1) apart, codes in order
    # of value) or 'hierarchical' (height of the lowest common ancestor over the height of the tree)
    ground: Ground = "equal"
    hierarchy: Hierarchy | None = None  # the tree, for 'hierarchical'
    leaf_of_code: CodeArray | None = None  # its leaf for each sensitive code
    # rows of the whole table with each code, where the rows at hand are a part of it
    whole_counts: IntArray | None = None

    def distance(self, groups: Groups) -> FloatArray:
        """Return the earth mover's distance of each group to the table, shape (groups,)."""
        if self.whole_counts is not None:
            groups = Groups.of_cells(groups.cells, self.whole_counts, groups.sizes)
        if self.ground == "equal":
            return equal_distance(groups)
        if self.ground == "ordered":
            return ordered_distance(groups)
        return hierarchical_distance(groups, *self._tree)

    @property
    def _tree(self) -> tuple[Hierarchy, CodeArray]:
        if self.hierarchy is None or self.leaf_of_code is None:
            raise ValueError("the hierarchical distance needs a hierarchy and the leaf of each code")
        return self.hierarchy, self.leaf_of_code

    def checks(self, table_counts: IntArray) -> list[Check]:
        counts = table_counts if self.whole_counts is None else self.whole_counts
        shares = counts / counts.sum()
        if self.ground == "equal":
            return [Check(EQUAL, (self.t,), shares=shares)]
        if self.ground == "ordered":
            running = np.cumsum(shares)
            return [Check(ORDERED, (self.t,), shares=np.concatenate((running, [0.0], np.cumsum(running))))]
        step, levels = _steps(self._tree[0]), _levels(*self._tree)
        below = np.zeros(len(step))
        for nodes in levels:
            below += np.bincount(nodes, weights=shares, minlength=len(step))
        below[0] = 0.0
        return [
            Check(
                HIERARCHICAL,
                (self.t,),
                codes=np.concatenate(([len(levels), len(shares)], *levels)).astype(np.int32),
                shares=np.concatenate(([float(below @ step)], np.stack((step, below), axis=1).ravel())),
            )
        ]

    def holds(self, groups: Groups) -> BoolArray:
        return np.asarray(self.distance(groups) <= self.t + TOLERANCE)

    def best_achievable(self, table: Groups) -> str:
        smallest = float(self.distance(table).max(initial=0.0))
        return f"t = {self.t:g} was requested; the smallest t this table can meet is {smallest:.6g}"


def equal_distance(groups: Groups) -> FloatArray:
    """Return half the sum of |p - q|, which is the sum of the positive p - q.

    >>> groups = Groups(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([2, 1]))
    >>> equal_distance(groups).round(4).tolist()
    [0.1667, 0.3333]
    """
    cells = groups.cells
    share = cells.counts / groups.totals[cells.group]
    return groups.sum_cells(np.maximum(share - _table_shares(groups)[cells.code], 0.0))


def ordered_distance(groups: Groups) -> FloatArray:
    """Return sum over i < m of |P(i) - Q(i)| / (m - 1), P and Q the cumulative shares of group and table.

    P is constant between two values of the group, Q rises, so |P - Q| is summed over each such stretch from
    the prefix sums of Q and the place where Q passes P.

    >>> groups = Groups(np.zeros(3, dtype=np.int64), np.array([0, 1, 2]), np.ones(9, dtype=np.int64))
    >>> ordered_distance(groups).round(6).tolist()
    [0.375]
    """
    domain = len(groups.table_counts)
    if domain < 2:
        return np.zeros(len(groups))
    cells = groups.cells
    table = np.cumsum(_table_shares(groups))
    prefix = np.concatenate(([0.0], np.cumsum(table)))
    running = np.cumsum(cells.counts)
    before = running[cells.offsets[:-1]] - cells.counts[cells.offsets[:-1]]
    level = (running - before[cells.group]) / groups.totals[cells.group]
    end = np.append(cells.code[1:], domain - 1)
    end[cells.offsets[1:] - 1] = domain - 1
    passed = np.clip(np.searchsorted(table, level), cells.code, np.maximum(end, cells.code))
    below = level * (passed - cells.code) - (prefix[passed] - prefix[cells.code])
    above = (prefix[end] - prefix[passed]) - level * (end - passed)
    # Values before the first one of the group: P is 0 there.
    head = prefix[cells.code[cells.offsets[:-1]]]
    return (groups.sum_cells(below + above) + head) / (domain - 1)


def hierarchical_distance(groups: Groups, hierarchy: Hierarchy, leaf_of_code: CodeArray) -> FloatArray:
    """Return the distance over a tree.

    Mass moved across node N costs height(N) / H; with e the share of group minus table below a node, that
    adds up to the sum over all nodes but the root of |e| (height(parent) - height(node)) / 2 H. Nodes
    without rows of the group have e = -q, summed once for the table and corrected where there are rows.
    """
    if hierarchy.height == 0:
        return np.zeros(len(groups))
    step, shares, cells = _steps(hierarchy), _table_shares(groups), groups.cells
    total = np.zeros(len(groups))
    for node_of_code in _levels(hierarchy, leaf_of_code):
        table = np.bincount(node_of_code, weights=shares, minlength=len(step))
        total += float((table * step).sum())
        group, node, count, _ = groups.recode_cells(node_of_code[cells.code], len(step))
        share = count / groups.totals[group]
        excess = (np.abs(share - table[node]) - table[node]) * step[node]
        total += np.bincount(group, weights=excess, minlength=len(groups))
    return total


def _steps(hierarchy: Hierarchy) -> FloatArray:
    """What mass moved through each node costs, half of it on either side."""
    step = (hierarchy.level[hierarchy.parent] - hierarchy.level) / (2.0 * max(1, hierarchy.height))
    step[0] = 0.0
    return np.asarray(step, dtype=np.float64)


def _levels(hierarchy: Hierarchy, leaf_of_code: CodeArray) -> list[IntArray]:
    """Node of each code at each depth below the root; the root (which costs nothing) where it was met before.

    A leaf above a depth stands for itself there again.
    """
    counted = np.zeros(len(hierarchy.parent), dtype=bool)
    levels = []
    for ancestors in hierarchy.ancestors[1:]:
        node_of_code = ancestors[leaf_of_code.astype(np.int64)]
        node_of_code = np.where(counted[node_of_code], 0, node_of_code)
        counted[node_of_code] = True
        levels.append(node_of_code)
    return levels


def _table_shares(groups: Groups) -> FloatArray:
    shares: FloatArray = groups.table_counts / groups.table_counts.sum()
    return shares
