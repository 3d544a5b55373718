"""One sensitive column of a release, as attackers count it: which values each row, or each unit of equal rows, carries.

A row shows one value; or the counts of its bucket, and carries each value to its share; or a list of nodes for all
values of one person, each node one value, any leaf below it equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.line import quantile_bins
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.progress import tick

MOST_ENTRIES = 200_000_000
BINS = 24
"""Quantile bins of ordered sensitive values, for models of them."""


@dataclass(frozen=True)
class Secret:
    """One sensitive column."""

    name: str
    part: int  # number of the part it stands in; -1 where a sliced release has no quasi-identifier in its part
    by_voter: scipy.sparse.csr_matrix  # rows of each voter that carry each code, shape (voters, codes)
    shares: scipy.sparse.csr_matrix  # how much of each code each cell carries, shape (cells, codes)
    cell_of_row: IntArray  # cell of each released row
    mixed: bool  # whether rows show the counts of their bucket and not their own values
    listed: bool = False  # whether rows show lists, all values of a person
    ordered: bool = False  # whether its values have an order

    @property
    def domain(self) -> int:
        """Number of codes."""
        return int(self.by_voter.shape[1])

    @property
    def rows_of_code(self) -> FloatArray:
        """Rows that carry each code, shape (codes,)."""
        return np.asarray(self.by_voter.sum(axis=0)).ravel()

    def of_rows(self, rows: IntArray) -> scipy.sparse.csr_matrix:
        """How much of each code released rows carry, shape (rows, codes)."""
        return self.shares[self.cell_of_row[rows]]

    def bins(self) -> IntArray:
        """Bin of each value: quantiles of many ordered values, else the values themselves."""
        if not self.ordered or self.domain <= 2 * BINS:
            return np.arange(self.domain)
        rows = self.rows_of_code
        return quantile_bins(rows, BINS, max(1, round(float(rows.sum()))))


def read_secret(name: str, column: Ranges, part: int, voter: IntArray, weight: FloatArray, voters: int) -> Secret:
    """Read a released sensitive column in part number `part`."""
    if not (column.plain or column.counted or column.lists_nodes):
        raise ColumnError(
            f"the release's sensitive column '{name}' holds {column.holds}; an attacker reads plain values, counts of "
            "them, and lists of nodes with a row a person (made without explode)"
        )
    tick()
    cells = column.different
    entries = int(cells.sizes[cells.of_row].sum())
    if column.lists_nodes and entries > MOST_ENTRIES:
        raise RequirementError(
            f"the lists of '{name}' stand for {entries:,} values, too many to vote on; attack a sample of the release"
        )
    tick()
    cell_of_voter = scipy.sparse.csr_matrix((weight, (voter, cells.of_row)), (voters, cells.number))
    tick()
    carried = cell_of_voter @ cells.shares
    tick()
    carried.sort_indices()
    return Secret(
        name, part, carried, cells.shares, cells.of_row, column.counted, column.lists_nodes,
        column.domain.kind == "ordered",
    )  # fmt: skip
