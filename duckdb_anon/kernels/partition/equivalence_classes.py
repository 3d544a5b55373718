"""Groups as requirements see them: their sizes, and the sensitive values of each with their counts.

Where somebody has several rows, persons are counted. Cost: one pass over the rows, a sort where there are many cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.sort_count import count_cells, offsets_of, order_by, run_starts
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import FloatArray, IntArray

Integers = NDArray[Any]


class SensitiveCells(NamedTuple):
    """Occupied (group, sensitive code) cells, sorted; group g owns offsets[g]:offsets[g + 1]."""

    group: IntArray
    code: IntArray
    counts: IntArray
    offsets: IntArray


class Groups:
    """Groups of rows put before a privacy model.

    Attributes:
        sizes: rows of each group (persons, where rows belong to persons), shape (groups,).
        table_counts: rows (persons) of the whole table with each sensitive code, shape (domain,).
    """

    def __init__(
        self,
        group_of_row: Integers,
        sensitive: Integers | None,
        table_counts: IntArray | None = None,
        person: Integers | None = None,
        weights: IntArray | None = None,
    ) -> None:
        """Take the rows as they are; `weights`: how many equal rows each one stands for."""
        self._group_of_row = group_of_row
        self._sensitive: Integers | None = sensitive
        self._person: Integers | None = person
        self._weights: IntArray | None = weights
        self._by_rows: Mapping[str, Groups] = {}
        self.sizes: IntArray = self._counted(group_of_row)
        if table_counts is None:
            table_counts = np.zeros(0, dtype=np.int64) if sensitive is None else self._counted(sensitive)
        self.table_counts: IntArray = table_counts

    @classmethod
    def of_cells(
        cls, cells: SensitiveCells, table_counts: IntArray, sizes: IntArray, by_rows: Mapping[str, Groups] | None = None
    ) -> Groups:
        """Make groups of known sizes and cells; `by_rows` is what `of_rows` returns, where persons are counted."""
        groups = cls.__new__(cls)
        groups.sizes, groups.table_counts = sizes, table_counts
        groups._sensitive = groups._person = groups._weights = None
        groups._by_rows = by_rows or {}
        groups.__dict__["cells"] = cells
        return groups

    def _counted(self, key: Integers, minlength: int = 0) -> IntArray:
        """Rows (persons) with each key."""
        if self._person is None:
            return np.bincount(key, self._weights, minlength).astype(np.int64)
        return np.bincount(key[keys_of([self._person, key]).first], minlength=minlength)

    def of_rows(self, value: Literal["person", "value"]) -> Groups:
        """The same groups where rows are counted: by the sensitive value, or by the person in its place."""
        if value in self._by_rows:
            return self._by_rows[value]
        code = self._person if value == "person" else self._sensitive
        return Groups(self._group_of_row, code, weights=self._weights)

    def project_codes(self, code_of: Integers) -> Groups:
        """Return the same groups with other sensitive codes, `code_of` their old ones."""
        domain = int(code_of.max(initial=0)) + 1
        if self._sensitive is not None and self._person is not None:
            # a person counts once for each value of this column
            sensitive = code_of[self._sensitive]
            table = self._counted(sensitive, domain)
            return Groups(self._group_of_row, sensitive, table, self._person, self._weights)
        table = np.bincount(code_of[: len(self.table_counts)], weights=self.table_counts, minlength=domain)
        return Groups.of_cells(self.recode_cells(code_of[self.cells.code], domain), table.astype(np.int64), self.sizes)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.sizes)

    @cached_property
    def cells(self) -> SensitiveCells:
        """The sensitive values of each group with their counts."""
        if self._sensitive is None:
            raise ValueError("this requirement needs a sensitive column")
        group_of_row, sensitive = self._group_of_row, self._sensitive
        if self._person is not None:
            once = keys_of([self._person, group_of_row, sensitive]).first
            group_of_row, sensitive = group_of_row[once], sensitive[once]
        elif self._weights is not None:
            keys = keys_of([group_of_row, sensitive])
            group = group_of_row[keys.first].astype(np.int64)
            count = np.bincount(keys.of_row, self._weights).astype(np.int64)
            return SensitiveCells(group, sensitive[keys.first].astype(np.int64), count, offsets_of(group, len(self)))
        domain = max(1, len(self.table_counts))
        group, code, count = count_cells(group_of_row, sensitive, len(self), domain)
        return SensitiveCells(group, code, count, offsets_of(group, len(self)))

    @cached_property
    def totals(self) -> IntArray:
        """Sum of the counts of each group: its rows, or its pairs of person and value; shape (groups,)."""
        return self.sum_cells(self.cells.counts).astype(np.int64)

    @cached_property
    def largest(self) -> IntArray:
        """Count of the most frequent sensitive value of each group, shape (groups,)."""
        if len(self) == 0:
            return np.empty(0, dtype=np.int64)
        result: IntArray = np.maximum.reduceat(self.cells.counts, self.cells.offsets[:-1])
        return result

    def recode_cells(self, code: Integers, domain: int) -> SensitiveCells:
        """The cells under other codes, 0 .. domain - 1, those of one group and code added up."""
        order = order_by(self.cells.group, code, domain)
        key = self.cells.group[order] * domain + code[order]
        starts = run_starts(key)
        count = np.add.reduceat(self.cells.counts[order], starts) if len(starts) else starts
        group = key[starts] // domain
        return SensitiveCells(group, key[starts] % domain, count, offsets_of(group, len(self)))

    def sum_cells(self, values: NDArray[Any]) -> FloatArray:
        """Add up one number a cell within each group, shape (groups,)."""
        if len(self) == 0:
            return np.empty(0, dtype=np.float64)
        return np.add.reduceat(values, self.cells.offsets[:-1]).astype(np.float64)
