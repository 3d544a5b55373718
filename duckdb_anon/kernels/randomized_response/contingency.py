"""The occupied cells of a coded table, from which the disclosure risk of randomization is computed.

A table over QI A_1..A_m and a sensitive attribute S is represented by its occupied QI cells and its occupied
(cell, value) pairs, both far fewer than the product of the domains. Cost: one sort of n row keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from duckdb_anon.kernels.row_keys import joint
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Occupied:
    """Occupied cells of a table for one sensitive attribute."""

    sizes: tuple[int, ...]  # domain size of each QI attribute
    sensitive_size: int  # domain size of the sensitive attribute
    records: int  # number of rows
    cell_codes: CodeArray  # QI codes of each occupied cell, shape (m, cells)
    cell_count: IntArray  # rows of each occupied cell, shape (cells,)
    pair_cell: IntArray  # occupied cell of each (cell, value) pair, shape (pairs,)
    pair_value: IntArray  # sensitive code of each pair, shape (pairs,)
    pair_count: IntArray  # rows of each pair, shape (pairs,)

    @property
    def conditional(self) -> FloatArray:
        """Share of each pair's value inside its QI cell (`c` in Result 1 of the paper), shape (pairs,)."""
        return self.pair_count / self.cell_count[self.pair_cell]

    @property
    def cell_share(self) -> FloatArray:
        """Share of all rows in each occupied cell, shape (cells,)."""
        return self.cell_count / self.records

    @property
    def marginal(self) -> FloatArray:
        """Share of each sensitive value in the table, shape (sensitive_size,)."""
        return np.bincount(self.pair_value, self.pair_count, self.sensitive_size) / self.records

    def dense_qi(self) -> FloatArray:
        """Shares of all QI cells as an array with one axis per QI attribute."""
        shares = np.zeros(self.sizes)
        shares[tuple(self.cell_codes)] = self.cell_share
        return shares

    def folded(self, axes: Sequence[int]) -> Occupied:
        """Return the same cells with the QI attributes other than `axes` combined into one, the first.

        The combined attribute has a value for each combination that occurs, however large the product is.
        """
        rest = [k for k in range(len(self.sizes)) if k not in axes]
        key = joint([self.cell_codes[k] for k in rest], [self.sizes[k] for k in rest], len(self.cell_count))
        values, value_of_cell = np.unique(key, return_inverse=True)
        codes = np.concatenate([value_of_cell[None, :].astype(np.int32), self.cell_codes[list(axes)]])
        return replace(self, sizes=(len(values), *(self.sizes[k] for k in axes)), cell_codes=codes)


def occupied_cells(
    qi: Sequence[CodeArray], sizes: Sequence[int], sensitive: CodeArray, sensitive_size: int
) -> Occupied:
    """Count the occupied QI cells and the values inside them."""
    records = len(sensitive)
    _, first_row, cell_of_row, cell_count = np.unique(
        joint(qi, sizes, records), return_index=True, return_inverse=True, return_counts=True
    )
    pair, pair_count = np.unique(cell_of_row * np.int64(sensitive_size) + sensitive, return_counts=True)
    return Occupied(
        tuple(sizes),
        sensitive_size,
        records,
        np.array([codes[first_row] for codes in qi], dtype=np.int32).reshape(len(qi), len(first_row)),
        cell_count.astype(np.int64),
        pair // sensitive_size,
        pair % sensitive_size,
        pair_count.astype(np.int64),
    )
