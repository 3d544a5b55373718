"""Requirements on one of several sensitive columns.

Groups are cut with one sensitive code a row. With several sensitive columns that code stands for the combination of
their values, and a requirement on one of them looks through it at that column alone. Guarantee: each column satisfies
its requirement in every group. Whoever already knows a person's value of one sensitive column may rule out rows by
it, and what is then left of another column is not bounded (Machanavajjhala et al. 2007, on several sensitive
attributes). Cost: one sort of the occupied (group, combination) cells a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_models import BoolArray, Requirement
from duckdb_anon.kernels.partition.rules import Rule
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodeArray, IntArray


@dataclass(frozen=True, eq=False)
class OfColumn(Requirement):
    """A requirement on one column of a combination.

    Attributes:
        part: what the column must satisfy.
        column: name of the column, for messages.
        code_of: the column's code for each code of the combination, shape (combinations,).
    """

    part: Requirement
    column: str
    code_of: CodeArray

    @property
    def min_size(self) -> int:
        """Rows a group needs."""
        return self.part.min_size

    def rules(self, table_counts: IntArray) -> list[Rule]:
        """See `Requirement.rules`."""
        table = np.bincount(self.code_of, weights=table_counts, minlength=int(self.code_of.max()) + 1)
        return [rule._replace(view=self.code_of) for rule in self.part.rules(table.astype(np.int64))]

    def holds(self, groups: Groups) -> BoolArray:
        """See `Requirement.holds`."""
        return self.part.holds(groups.seen_through(self.code_of))

    def attained(self, whole: Groups) -> str:
        """See `Requirement.attained`."""
        return f"'{self.column}': {self.part.attained(whole.seen_through(self.code_of))}"


def combine(columns: Sequence[CodeArray]) -> tuple[CodeArray, tuple[CodeArray, ...]]:
    """Give each combination of codes that occurs a code of its own.

    Args:
        columns: codes of each column, shape (n,) each, one column or more.

    Returns:
        The combination's code of each row, shape (n,), and for each column its code by combination.

    >>> rows, of_column = combine([np.array([1, 0, 1], dtype=np.int32), np.array([2, 2, 2], dtype=np.int32)])
    >>> rows.tolist(), [codes.tolist() for codes in of_column]
    ([1, 0, 1], [[0, 1], [2, 2]])
    """
    rows, first = keys_of(columns)
    return rows.astype(np.int32), tuple(codes[first] for codes in columns)
