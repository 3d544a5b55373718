"""Columns of a release as the model sees them: values in bins, and cells that weigh the bins they may stand for.

The values of a column lie on a line of *atoms*: its codes, the leaves of its hierarchy from left to right, or the
segments between the ends of its intervals. A cell is a range of atoms (an exact value, an interval, a node) or a
weighted list of them (a set, a randomized value). Atoms have shares, learnt from all cells of the column; neighbouring
atoms with small shares are put into one bin.
Cost: cells times the bins that each covers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.cell_shares import Lists, Ranges
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

MOST_BINS = 32
_LEAST = 1e-12


@dataclass(frozen=True)
class Noisy:
    """Cells that show an atom which may be another one's.

    Of a row with atom x, cell c is seen with probability `base[c]`, and `extra[c]` more where x is `own[c]`.
    """

    atom: IntArray
    extra: FloatArray
    base: FloatArray


Cells: TypeAlias = Ranges | Lists | Noisy


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

    cells: Cells
    cell: CodeArray
    shares: FloatArray
    bin: IntArray
    offsets: IntArray
    bins: CodeArray
    odds: FloatArray
    of_null: FloatArray | None = None
    tight: IntArray | None = None

    @staticmethod
    def of(cells: Cells, cell: NDArray[Any], shares: FloatArray, most: int = MOST_BINS) -> Column:
        """Put the values of a column into bins.

        `most`: greatest number of bins.
        """
        shares = np.maximum(shares / shares.sum(), _LEAST)
        bin_of_atom = _bins(shares, most)
        offsets, bins, odds = _cell_odds(cells, shares, bin_of_atom)
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

        >>> column = Column.of(Ranges(np.array([0]), np.array([3])), np.zeros(2), np.ones(4), 2)
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
        edges = np.searchsorted(self.bin, np.arange(self.size + 1))
        if isinstance(self.cells, Ranges):
            first = np.maximum(self.cells.first[cell], edges[bins])
            last = np.minimum(self.cells.last[cell], edges[bins + 1] - 1)
            return _places(self.shares, first, last, random)
        if isinstance(self.cells, Noisy):
            atom, base = self.cells.atom[cell], self.cells.base[cell]
            extra = np.where(self.bin[atom] == bins, np.maximum(self.cells.extra[cell], 0.0) * self.shares[atom], 0.0)
            others = base * np.bincount(self.bin, self.shares, self.size)[bins]
            its_own = random * (extra + others) < extra
            left = (random * (extra + others) - extra) / np.where(others > 0, others, 1.0)
            found = _places(self.shares, edges[bins], edges[bins + 1] - 1, np.clip(left, 0.0, 1.0))
            return np.where(its_own, atom, found)
        key = self.cells.cell * self.size + self.bin[self.cells.atoms]
        order = np.argsort(key, kind="stable")
        atoms = self.cells.atoms[order]
        wanted = cell.astype(np.int64) * self.size + bins
        first = np.searchsorted(key[order], wanted)
        last = np.searchsorted(key[order], wanted, side="right") - 1
        weights = self.shares[atoms] * self.cells.weights[order]
        return np.asarray(atoms[_places(weights, first, last, random)])


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


def _cell_odds(cells: Cells, shares: FloatArray, bin_of_atom: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    if isinstance(cells, Ranges):
        return _range_odds(cells, shares, bin_of_atom)
    if isinstance(cells, Lists):
        return _list_odds(cells, shares, bin_of_atom)
    mass = np.bincount(bin_of_atom, shares)
    odds = np.repeat(cells.base[:, None], len(mass), axis=1)
    atom = bin_of_atom[cells.atom]
    odds[np.arange(len(atom)), atom] += cells.extra * shares[cells.atom] / mass[atom]
    return np.arange(len(atom) + 1) * len(mass), np.tile(np.arange(len(mass)), len(atom)), odds.ravel()


def _range_odds(cells: Ranges, shares: FloatArray, bin_of_atom: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    before = np.concatenate([[0.0], np.cumsum(shares)])
    edges = np.searchsorted(bin_of_atom, np.arange(bin_of_atom[-1] + 2))
    lowest, highest = bin_of_atom[cells.first], bin_of_atom[cells.last]
    offsets = np.concatenate([[0], np.cumsum(highest - lowest + 1)])
    cell = np.repeat(np.arange(len(lowest)), highest - lowest + 1)
    bins = lowest[cell] + np.arange(offsets[-1]) - offsets[cell]
    first = np.maximum(edges[bins], cells.first[cell])
    last = np.minimum(edges[bins + 1] - 1, cells.last[cell])
    all_of_it = last - first == edges[bins + 1] - 1 - edges[bins]
    share = (before[last + 1] - before[first]) / (before[edges[bins + 1]] - before[edges[bins]])
    return offsets, bins, np.where(all_of_it, 1.0, np.minimum(share, 1.0))


def _list_odds(cells: Lists, shares: FloatArray, bin_of_atom: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    size = int(bin_of_atom[-1]) + 1
    key, index = np.unique(cells.cell * size + bin_of_atom[cells.atoms], return_inverse=True)
    mass = np.bincount(bin_of_atom, shares, size)
    odds = np.bincount(index, shares[cells.atoms] * cells.weights, len(key)) / mass[key % size]
    return np.searchsorted(key, np.arange(len(cells.offsets)) * size), key % size, odds


def _places(weights: FloatArray, first: IntArray, last: IntArray, random: FloatArray) -> IntArray:
    """A place in `first` .. `last` by its weight."""
    before = np.concatenate([[0.0], np.cumsum(weights)])
    wanted = before[first] + random * (before[last + 1] - before[first])
    return np.asarray(np.clip(np.searchsorted(before, wanted, side="right") - 1, first, last))
