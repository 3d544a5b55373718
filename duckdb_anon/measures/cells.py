"""Published cells: what each covers, the share it gives a value, its distance from one, and draws from it.

A cell of any format is one or several ranges of the values of its domain, in the order of their codes, or of the leaves
where there is a hierarchy: a value, an interval or a node is one range; a set, the counts of a bucket and a list of
nodes have one a member. Values of a range are equally likely. A list of nodes stands for one value a node, every other
cell for one value. Distances are Gower's (1971), in [0, 1]: ordered differences over the range of the domain, nominal
0 or 1, in a hierarchy the share of the height to climb; 0 inside a cell, else to its nearer end.
Cost: linear in cells and members; `shares` also in the values that cells of several ranges, or nodes, cover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.kernels.row_keys import keys_of, keys_of_lists
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import BoolArray, ReadColumn, ReadTable

_MOST_ENTRIES = 1 << 25
"""Cells times values up to which it is looked up which cells cover which values."""
_MOST_COMPARED = 4_000_000
"""Individuals times boxes that are compared at a time."""


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """Some cells of one released column."""

    column: ReadColumn
    rows: IntArray  # a row that shows each cell, shape (cells,)
    of_row: IntArray  # cell of each row
    offsets: IntArray  # cell c has the ranges offsets[c]:offsets[c + 1], shape (cells + 1,)
    first: IntArray  # first, end: places of the values of each range, end excluded
    end: IntArray
    weight: FloatArray  # how much each range counts against the others of its cell

    @classmethod
    def distinct(cls, column: ReadColumn) -> PublishedCells:
        """The different cells of a column."""
        keys = keys_of([cell_numbers(column)])
        return cls(column, keys.first, keys.of_row, *_ranges(column, keys.first))

    @classmethod
    def of_rows(cls, column: ReadColumn, rows: IntArray) -> PublishedCells:
        """A cell for each of some rows."""
        return cls(column, rows, np.arange(len(rows)), *_ranges(column, rows))

    @property
    def number(self) -> int:
        """How many cells."""
        return len(self.offsets) - 1

    @property
    def domain(self) -> Attribute:
        """The values that cells stand for."""
        return self.column.domain

    @property
    def plain(self) -> bool:
        """Whether every cell is one value."""
        return self.column.plain

    @cached_property
    def codes(self) -> CodeArray:
        """Code of each cell of plain values."""
        return self._code_of_position[self.first].astype(np.int32)

    @cached_property
    def cell_of_code(self) -> IntArray:
        """Cell of each value of the domain, of different cells of plain values, -1 where there is none."""
        cell = np.full(self.domain.size, -1, dtype=np.int64)
        cell[self.codes] = np.arange(self.number)
        return cell

    @cached_property
    def weights(self) -> FloatArray:
        """Released rows of each cell."""
        return np.bincount(self.of_row, minlength=self.number).astype(np.float64)

    @cached_property
    def sizes(self) -> FloatArray:
        """Number of values that each cell covers; those of several nodes of a list are added up."""
        width = (self.end - self.first).astype(np.float64)
        return np.bincount(self._cell_of_range, weights=width, minlength=self.number).astype(np.float64)

    @cached_property
    def levels(self) -> IntArray:
        """Level of each cell in the hierarchy; without one 0 for a single value and 1 for several."""
        if self.column.node is not None and not self.column.plain and not self.column.several:
            return self.domain.tree()[0].level[self.column.node[self.rows]].astype(np.int64)
        return (self.sizes > 1).astype(np.int64)

    @cached_property
    def anything(self) -> BoolArray:
        """Whether each cell may stand for NULL, or what is no finite number, as well as for numbers."""
        if self.column.lower is None:
            return np.zeros(self.number, dtype=bool)
        return (self.column.lower[self.rows] < 0) | self.domain.mixed(self.first, self.end - 1)

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Places on the number line of the ends of each value or interval; finite ones where it covers everything."""
        special, last = self.domain.special_from, self.end - 1
        finite = np.where(self.first < special, np.minimum(last, max(special - 1, 0)), last)
        return self.domain.positions[self.first], self.domain.positions[finite]

    def middles(self) -> FloatArray:
        """Place of each cell on the number line: the middle of an interval, else the most frequent value it covers."""
        if self.plain:
            return self.domain.positions[self.codes]
        if self.column.ordered:
            return np.add(*self.ends) / 2
        even = self.even_shares
        common = self.weights @ even
        cell = np.repeat(np.arange(self.number), np.diff(even.indptr))
        order = np.lexsort((even.indices, -common[even.indices], cell))
        likeliest = np.zeros(self.number, dtype=np.int64)
        filled = np.flatnonzero(np.diff(even.indptr))
        likeliest[filled] = even.indices[order[even.indptr[filled]]]
        return self.domain.positions[likeliest]

    def covered(self, values: NDArray[Any]) -> BoolArray:
        """Whether each cell covers each value, shape (values, cells)."""
        if self.domain.size * self.number <= _MOST_ENTRIES:
            found: BoolArray = self._table[values]
            return found
        return self._compared(values)

    @cached_property
    def _table(self) -> BoolArray:
        """The cells that cover each value of the domain, where these are few."""
        return self._compared(np.arange(self.domain.size))

    def _compared(self, values: NDArray[Any]) -> BoolArray:
        if self.column.several:
            return np.asarray(self._by_value[values].toarray() > 0)
        position = self._position_of_code[values][:, None]
        inside: BoolArray = (position >= self.first) & (position < self.end)
        return inside

    def chance(self, values: NDArray[Any]) -> FloatArray:
        """Chance of each value where each list of nodes is published, at most 1, shape (values, cells)."""
        return np.asarray(np.minimum(self._by_value[values].toarray(), 1.0))

    @cached_property
    def shares(self) -> scipy.sparse.csr_matrix:
        """How many of each value a cell stands for, on average, shape (cells, domain): 1 in all, in lists 1 a node."""
        share = self.weight / np.maximum(self.end - self.first, 1)
        if not self.column.lists_nodes:
            cell = self._cell_of_range
            share = share / np.bincount(cell, weights=self.weight, minlength=self.number)[cell]
        return self._of_ranges(share)

    @cached_property
    def times(self) -> scipy.sparse.csr_matrix:
        """How many ranges of a cell cover each value, shape (cells, domain)."""
        return self._of_ranges(np.ones(len(self.first)))

    def _of_ranges(self, amount: FloatArray) -> scipy.sparse.csr_matrix:
        """Sums by cell and value of an amount that each range gives to each of its values."""
        width = self.end - self.first
        codes = self._code_of_position[ranges(self.first, width)]
        offsets = np.concatenate([[0], np.cumsum(width)])[self.offsets]
        found = scipy.sparse.csr_matrix((np.repeat(amount, width), codes, offsets), (self.number, self.domain.size))
        found.sum_duplicates()
        return found

    @cached_property
    def even_shares(self) -> scipy.sparse.csr_matrix:
        """The same where all values that a cell covers are equally likely, 1 in all."""
        if not self.column.several:
            return self.shares
        shares = self.shares.copy()
        shares.data = np.repeat(1 / np.maximum(np.diff(shares.indptr), 1), np.diff(shares.indptr))
        return shares

    def in_bins(self, bin_of_code: IntArray) -> scipy.sparse.csr_matrix:
        """Share of each bin in each cell, all values that it covers being equally likely, shape (cells, bins)."""
        bins = int(bin_of_code.max()) + 1
        if self.domain.kind == "ordered" and not self.column.several:
            edge = np.searchsorted(bin_of_code, np.arange(bins + 1))
            inside = np.minimum(self.end[:, None], edge[1:]) - np.maximum(self.first[:, None], edge[:-1])
            return scipy.sparse.csr_matrix(np.maximum(inside, 0) / self.sizes[:, None])
        codes = np.arange(self.domain.size)
        to_bin = scipy.sparse.csr_matrix((np.ones(len(codes)), (codes, bin_of_code)), (len(codes), bins))
        return scipy.sparse.csr_matrix(self.even_shares @ to_bin)

    @cached_property
    def _by_value(self) -> scipy.sparse.csr_matrix:
        return self.shares.T.tocsr()

    def distance(self, values: NDArray[Any]) -> FloatArray:
        """Distance of each value from each cell, in [0, 1], shape (values, cells)."""
        away: Any = 1.0
        if self.domain.kind == "hierarchy" and not self.column.several:
            away = self._in_the_tree(values)
        elif self.column.ordered:
            position, special = self.domain.positions, self.domain.special_from
            here = position[values][:, None]
            away = np.maximum(position[self.first] - here, here - position[self.end - 1]) / (self.domain.span or 1.0)
            # NULL and what is not finite are as far as can be from every other value
            away = np.where((values[:, None] >= special) | (self.first >= special), 1.0, np.clip(away, 0.0, 1.0))
        return np.where(self.covered(values), 0.0, away)

    def _in_the_tree(self, values: NDArray[Any]) -> FloatArray:
        """Level of the lowest node above both, over the height: from the root down, as long as both lie below."""
        tree, leaf = self.domain.tree()
        height = max(tree.height, 1)
        chain = tree.ancestors[:, leaf[values]]
        distance = np.repeat(tree.level[chain[0]][:, None] / height, self.number, axis=1)
        for nodes in chain[1:]:
            first = tree.first_leaf[nodes][:, None]
            below = (self.first >= first) & (self.end <= first + tree.leaf_count[nodes][:, None])
            np.copyto(distance, tree.level[nodes][:, None] / height, where=below)
        return distance

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Code of one value for each row: a range by its weight, then any value of the range."""
        chance = rng.random(len(self.of_row))
        member = self.of_row
        if self.column.several:
            before = np.concatenate([[0], np.cumsum(self.weight)])
            start, end = before[self.offsets[member]], before[self.offsets[member + 1]]
            member = np.searchsorted(before, start + np.floor(chance * (end - start)), side="right") - 1
            member = np.minimum(member, len(self.first) - 1)
        if self.column.lists_nodes:
            chance = rng.random(len(self.of_row))
        width = (self.end - self.first)[member]
        return self._code_of_position[self.first[member] + np.floor(chance * width).astype(np.int64)]

    @cached_property
    def _cell_of_range(self) -> IntArray:
        return np.repeat(np.arange(self.number), np.diff(self.offsets))

    @cached_property
    def _position_of_code(self) -> IntArray:
        return _positions(self.domain)

    @cached_property
    def _code_of_position(self) -> IntArray:
        if self.domain.leaf_of_code is None:
            return np.arange(self.domain.size)
        return self.domain.code_of_leaf.astype(np.int64)


def _positions(domain: Attribute) -> IntArray:
    """Place of each code in the order that ranges are of."""
    return np.arange(domain.size) if domain.leaf_of_code is None else domain.leaf_of_code.astype(np.int64)


def _ranges(column: ReadColumn, rows: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Offsets, first and last places, and weights of the ranges of some rows' cells."""
    offsets, weight, member = np.arange(len(rows) + 1), np.ones(len(rows)), rows
    if column.offsets is not None:
        sizes = np.diff(column.offsets)[rows]
        offsets, member = np.concatenate([[0], np.cumsum(sizes)]), ranges(column.offsets[rows], sizes)
        weight = np.ones(len(member)) if column.counts is None else column.counts[member].astype(np.float64)
    if column.lower is not None and column.upper is not None:
        lower, upper = column.lower[rows].astype(np.int64), column.upper[rows].astype(np.int64)
        end = np.where(lower < 0, column.domain.size, np.maximum(upper, lower) + 1)
        return offsets, np.maximum(lower, 0), end, weight
    if column.codes is None and column.node is not None:
        tree, _ = column.domain.tree()
        node = column.node[member]
        first = tree.first_leaf[node].astype(np.int64)
        return offsets, first, first + tree.leaf_count[node], weight
    if column.codes is None:
        raise ColumnError(f"column '{column.domain.name}' holds {column.cells} and cannot be read as rows or boxes")
    first = _positions(column.domain)[column.codes[member]]
    return offsets, first, first + 1, weight


def cell_numbers(column: ReadColumn) -> IntArray:
    """A number for each row, equal where the published cells are equal."""
    if column.lower is not None and column.upper is not None:
        return (column.lower.astype(np.int64) + 1) * (column.domain.size + 1) + column.upper + 1
    members = column.node if column.codes is None else column.codes
    if members is None:
        raise ColumnError(f"column '{column.domain.name}' holds {column.cells}; releases of rows and boxes are read")
    if column.offsets is None:
        return members.astype(np.int64)
    return keys_of_lists(column.offsets, members, *([] if column.counts is None else [column.counts])).of_row


def comparable(column: ReadColumn) -> PublishedCells:
    """The different cells of a column that values are compared with."""
    if column.counted:
        raise ColumnError(
            f"column '{column.domain.name}' of the release holds counts, not values or boxes; "
            "name the columns to look at, without it"
        )
    return PublishedCells.distinct(column)


@dataclass(frozen=True, eq=False)
class Boxes:
    """The different combinations of cells of several columns."""

    of_row: IntArray  # box of each released row
    first_row: IntArray  # a released row of each box
    columns: list[PublishedCells]  # their cells, one a box

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.first_row)

    def matches(self, values: Sequence[NDArray[Any]]) -> scipy.sparse.csr_matrix:
        """Which boxes cover each individual, from codes by column: 1 where one does, shape (individuals, boxes)."""
        if all(cells.plain for cells in self.columns):
            pairs = zip(self.columns, values, strict=True)
            keys = keys_of([np.concatenate([cells.codes, codes]) for cells, codes in pairs])
            of_box, of_individual = keys.of_row[: self.number], keys.of_row[self.number :]
            box = np.full(keys.number, -1, dtype=np.int64)
            box[of_box] = np.arange(self.number)
            found = np.flatnonzero(box[of_individual] >= 0)
            entries = (found, box[of_individual[found]])
            return scipy.sparse.csr_matrix((np.ones(len(found)), entries), (len(of_individual), self.number))
        alike = keys_of(values)
        step = max(1, _MOST_COMPARED // self.number)
        blocks = []
        for at in range(0, alike.number, step):
            tick()
            some = alike.first[at : at + step]
            covered = self.columns[0].covered(values[0][some])
            for cells, codes in zip(self.columns[1:], values[1:], strict=True):
                covered &= cells.covered(codes[some])
            blocks.append(scipy.sparse.csr_matrix(covered, dtype=np.float64))
        return scipy.sparse.vstack(blocks, format="csr")[alike.of_row]


def distinct_boxes(release: ReadTable, names: Sequence[str]) -> Boxes:
    """Find the different boxes of a release over some of its columns."""
    columns = [release.columns[name] for name in names]
    keys = keys_of([cell_numbers(column) for column in columns])
    return Boxes(keys.of_row, keys.first, [PublishedCells.of_rows(column, keys.first) for column in columns])


def quantile_bins(counts: NDArray[Any], bins: int, rows: int, *, below: bool = False) -> IntArray:
    """Bin of each value, about as many rows in each: by where its own rows end, or with `below` those before it.

    >>> quantile_bins(np.array([1, 1, 4, 2]), 4, 8).tolist()
    [0, 0, 1, 2]
    """
    position = np.cumsum(counts) - (counts if below else 1)
    bin_of_value = np.minimum(position * bins // max(rows, 1), bins - 1)
    return np.unique(bin_of_value, return_inverse=True)[1].astype(np.int64)


def slices(release: ReadTable, names: Sequence[str]) -> dict[str, list[int]]:
    """Places of columns by the slice that they are fields of; a column of its own is a slice of its own."""
    found: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        found.setdefault(release.columns[name].slice or f" {name}", []).append(position)
    return found
