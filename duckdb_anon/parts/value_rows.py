"""A part by the rows each of its values has, with every sensitive value: enough to judge any cut without asking again.

A cut sends the values of one attribute to its sides, so the rows of a side and its sensitive values are sums of these
cells. Persons with several rows are not: one may have rows on both sides. Cost: linear in the cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.split_from_counts import Cut, GroupCounts
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodeArray, IntArray


@dataclass(frozen=True)
class Cells:
    """A part by its values.

    Attributes:
        code: of each attribute, the code of each cell.
        sensitive: of each attribute, the sensitive code of each cell; all 0 where no requirement reads any.
        rows: of each attribute, the rows of each cell.
    """

    code: tuple[IntArray, ...]
    sensitive: tuple[IntArray, ...]
    rows: tuple[IntArray, ...]

    def counts(self) -> GroupCounts:
        """Rows of each value of each attribute.

        >>> Cells((np.array([4, 0, 4]),), (np.array([0, 0, 1]),), (np.array([5, 2, 3]),)).counts().rows[0].tolist()
        [2, 8]
        """
        codes, rows = [], []
        for code, many in zip(self.code, self.rows, strict=True):
            values, place = np.unique(code, return_inverse=True)
            codes.append(values)
            rows.append(summed(place, many, len(values)))
        return GroupCounts(tuple(codes), tuple(rows))

    def sides(self, cut: Cut) -> tuple[IntArray, IntArray, IntArray]:
        """Side, sensitive code and rows of the cells the cut makes, rows of one side and code not yet added up."""
        k = cut.attribute
        return cut.part[self.code[k]], self.sensitive[k], self.rows[k]


def summed(place: IntArray, rows: IntArray, size: int) -> IntArray:
    """Rows of each place; whole numbers throughout, for floating sums of many rows are not exact."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, place, rows)
    return total


def sensitive_codes(combinations: CodeArray, codes: IntArray, columns: list[IntArray]) -> IntArray:
    """Code a requirement reads for each row of some combinations of sensitive values.

    Args:
        combinations: every combination that occurs, shape (combinations, sensitive columns).
        codes: its code.
        columns: sensitive columns of the rows; each row is one of the combinations.

    >>> sensitive_codes(np.array([[0, 1], [2, 0]]), np.array([7, 9]), [np.array([2, 0, 2]), np.array([0, 1, 0])])
    array([9, 7, 9])
    """
    every = keys_of([np.r_[combinations[:, k].astype(np.int64), column] for k, column in enumerate(columns)])
    code_of = np.full(every.number, -1, dtype=np.int64)
    code_of[every.of_row[: len(combinations)]] = codes
    return np.asarray(code_of[every.of_row[len(combinations) :]], dtype=np.int64)
