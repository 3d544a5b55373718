"""Rows of equal value in the same group, found for all groups at once.

Rows of a group with equal values can share one row of the random output table without changing the optimum:
averaging an optimal table over permutations of equal rows keeps cost and constraints. So everything works on
classes (group, value) with a count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.random_output_tables.distance import leaf_order, pair_distance
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Classes:
    """The classes of one attribute, sorted by group and within a group along the attribute.

    Attributes:
        rows: row numbers sorted by class, ties by row number, shape (n,).
        class_of_sorted: class of each entry of `rows`, shape (n,).
        code: value of each class.
        count: rows in each class.
        group: group of each class.
        first: first class of each group, and the number of classes at the end, shape (groups + 1,).
        gaps: distance from each class to the next one; 0 for the last one of a group.
    """

    rows: IntArray
    class_of_sorted: IntArray
    code: CodeArray
    count: IntArray
    group: IntArray
    first: IntArray
    gaps: FloatArray

    @property
    def groups(self) -> int:
        """Number of groups, empty ones included."""
        return len(self.first) - 1

    @cached_property
    def starts(self) -> IntArray:
        """First place in `rows` of each class, and n at the end, shape (classes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.count)]).astype(np.int64)

    @cached_property
    def class_of_row(self) -> IntArray:
        """Class of each row, shape (n,)."""
        own = np.empty(len(self.rows), dtype=np.int64)
        own[self.rows] = self.class_of_sorted
        return own

    @cached_property
    def group_of_row(self) -> IntArray:
        """Group of each row, shape (n,)."""
        return self.group[self.class_of_row]


def find_classes(attribute: Attribute, group_of_row: IntArray) -> Classes:
    """Sort rows into classes; groups are numbered 0 .. max(group_of_row)."""
    rows_total = len(group_of_row)
    groups = int(group_of_row.max(initial=-1)) + 1
    domain = max(attribute.domain, 1)
    place = leaf_order(attribute)
    key = group_of_row.astype(np.int64) * domain + place[attribute.codes]
    rows, key = _sort_with_rows(key, groups * domain)
    fresh = np.empty(rows_total, dtype=bool)
    fresh[:1] = True
    np.not_equal(key[1:], key[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    code = attribute.codes[rows[starts]]
    group = key[starts] // domain
    count = np.diff(starts, append=rows_total)
    first = np.searchsorted(group, np.arange(groups + 1)).astype(np.int64)
    gaps = np.zeros(len(starts))
    if len(starts) > 1:
        gaps[:-1] = pair_distance(attribute, code[:-1], code[1:])
        gaps[first[1:][first[1:] > 0] - 1] = 0.0
    return Classes(rows, np.cumsum(fresh) - 1, code, count, group, first, gaps)


def _sort_with_rows(key: IntArray, keys: int) -> tuple[IntArray, IntArray]:
    """Return (row numbers, keys) sorted by key, then row; one plain sort where key and row fit in 63 bits."""
    total = len(key)
    if keys * max(total, 1) < 2**62:
        packed = np.sort(key * total + np.arange(total))
        sorted_key = packed // max(total, 1)
        return packed - sorted_key * total, sorted_key
    order = np.argsort(key, kind="stable")
    return order, key[order]
