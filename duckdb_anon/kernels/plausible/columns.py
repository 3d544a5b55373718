"""Columns of a release as the model sees them: values in bins, and cells that weigh the bins they may stand for.

The atoms of a column have shares, learnt from all of its cells; neighbouring atoms with small shares are put into one
bin.
Cost: cells times the bins that each covers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

MOST_BINS = 32
_LEAST = 1e-12


@dataclass(frozen=True)
class Column:
    """A column as the model sees it.

    Attributes:
        cells: its distinct cells.
        cell: cell of each row, shape (rows,).
        shares: share of each atom, positive, shape (atoms,).
        bin: bin of each atom, rising, shape (atoms,).
        offsets, bins, odds: where each cell's bins start, the bins, and the probability of the cell given the bin.
        of_null: for each cell the share of its records that are NULL, the last atom, whatever their other columns say;
            None where no cell holds both.
        tight: class of each row whose cell ends at the least and the greatest value of its class, -1 of other rows;
            None where there are none.
    """

    cells: Ranges
    cell: CodeArray
    shares: FloatArray
    bin: IntArray
    offsets: IntArray
    bins: CodeArray
    odds: FloatArray
    of_null: FloatArray | None = None
    tight: IntArray | None = None

    @staticmethod
    def of(cells: Ranges, cell: NDArray[Any], shares: FloatArray, most: int = MOST_BINS) -> Column:
        """Put the values of a column into bins.

        `most`: greatest number of bins.
        """
        shares = np.maximum(shares / shares.sum(), _LEAST)
        bin_of_atom = _bins(shares, most)
        offsets, bins, odds = cells.odds(shares, bin_of_atom)
        return Column(
            cells, cell.astype(np.int32), shares, bin_of_atom, offsets, bins.astype(np.int32), np.maximum(odds, _LEAST)
        )

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.bin[-1]) + 1

    @property
    def open(self) -> bool:
        """Whether some cell may stand for several bins."""
        return bool(np.diff(self.offsets).max(initial=0) > 1)

    @property
    def bin_shares(self) -> FloatArray:
        """Share of each bin, summing to 1."""
        mass = np.bincount(self.bin, self.shares, self.size)
        return np.asarray(mass / mass.sum())

    def of_rows(self, rows: IntArray) -> Column:
        """The column of other rows, each with the cell of one of its own.

        `rows`: rising; copies of a class are classes of their own.
        """
        tight = self.tight
        if tight is not None:
            copy = np.arange(len(rows)) - np.searchsorted(rows, rows)
            tight = np.where(tight[rows] >= 0, tight[rows] + copy * (int(tight.max(initial=-1)) + 1), -1)
        return replace(self, cell=self.cell[rows], tight=tight)

    def atoms(self, cell: CodeArray, bins: CodeArray, random: FloatArray) -> IntArray:
        """Draw an atom of each cell inside a bin by the shares.

        `random`: a number in [0, 1) for each draw.

        >>> from duckdb_anon.kernels.cells.line import Line
        >>> cells = Ranges(Line.of_widths(np.ones(4)), np.array([0]), np.array([3]))
        >>> column = Column.of(cells, np.zeros(2), np.ones(4), 2)
        >>> column.atoms(np.array([0, 0]), np.array([1, 1]), np.array([0.1, 0.9])).tolist()
        [2, 3]
        """
        if self.of_null is None:
            return self._inside(cell, bins, random)
        share = self.of_null[cell]
        rest = np.maximum(random - share, 0.0) / (1 - share)
        return np.where(random < share, len(self.shares) - 1, self._inside(cell, bins, rest))

    def _inside(self, cell: CodeArray, bins: CodeArray, random: FloatArray) -> IntArray:
        if self.size == len(self.shares):
            return bins.astype(np.int64)
        return self.cells.inside(cell, bins, random, self.shares, self.bin)


def _bins(shares: FloatArray, most: int) -> IntArray:
    """Bin of each atom: an atom with more than an even share has one for itself, the others divide what is left."""
    if len(shares) <= most:
        return np.arange(len(shares))
    large = shares > shares.sum() / most
    left = max(1, most - 2 * int(large.sum()))
    even = shares[~large].sum() / left
    level = np.floor(np.cumsum(np.where(large, 0.0, shares)) / even * (1 - 1e-9)).astype(np.int64)
    starts = np.ones(len(shares), dtype=bool)
    starts[1:] = (level[1:] != level[:-1]) | large[1:] | large[:-1]
    return np.asarray(np.cumsum(starts) - 1)
