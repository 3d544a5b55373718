"""One published column as the distinct cells an attacker compares a known value with.

A cell is a value, an interval, a set, or a node of a hierarchy. Everything here is a matrix of targets by cells: does
the cell cover the value, and how far is the value from it (range [0, 1], Gower 1971: ordered differences over the
range, nominal 0 or 1, tree distance as the share of the height to climb; 0 inside a cell, else to its nearer end).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.cell_coverage import cell_numbers, cells_of_lists, common_node, covers
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.release_table import BoolArray, ReadColumn


@dataclass(frozen=True)
class PublishedCells:
    """The distinct cells of a column.

    Attributes:
        column: the column as read.
        first_row: a row that shows each cell, shape (cells,).
        of_row: cell of each row, shape (rows,).
    """

    column: ReadColumn
    first_row: IntArray
    of_row: IntArray

    @property
    def number(self) -> int:
        """How many distinct cells there are."""
        return len(self.first_row)

    @property
    def domain(self) -> Attribute:
        """The values targets may have."""
        return self.column.domain

    @property
    def plain(self) -> bool:
        """Whether every cell is one value."""
        return self.column.shape == "value"

    @cached_property
    def codes(self) -> CodeArray:
        """Code of each cell of plain values."""
        return self.column.value_codes()[self.first_row]

    @cached_property
    def weights(self) -> FloatArray:
        """Released rows of each cell."""
        return np.bincount(self.of_row, minlength=self.number).astype(np.float64)

    @cached_property
    def _covers(self) -> BoolArray:
        return np.ascontiguousarray(covers(self.column, self.first_row))

    @cached_property
    def ends(self) -> tuple[CodeArray, CodeArray]:
        """Codes of both ends of each interval; -1 where it stands for anything."""
        column = self.column
        if column.lower is None or column.upper is None:
            raise ColumnError(f"column '{self.domain.name}' is {column.shape}, not intervals")
        return column.lower[self.first_row], column.upper[self.first_row]

    def covered(self, values: CodeArray) -> BoolArray:
        """Whether each cell covers each value, shape (values, cells)."""
        value = values[:, None]
        if self.plain:
            same: BoolArray = self.codes == value
            return same
        if self.column.shape == "interval":
            lower, upper = self.ends
            inside: BoolArray = (lower < 0) | ((value >= lower) & (value <= upper))
            return inside
        return self._covers[values]

    @cached_property
    def covered_values(self) -> FloatArray:
        """Number of values of the domain each cell covers, at least 1."""
        if self.plain:
            return np.ones(self.number)
        if self.column.shape == "interval":
            lower, upper = self.ends
            sizes: FloatArray = np.where(lower < 0, self.domain.size, np.maximum(upper - lower + 1.0, 1.0))
            return sizes
        members: FloatArray = self._covers.sum(axis=0).astype(np.float64)
        return np.maximum(members, 1.0)

    def chance(self, values: CodeArray) -> FloatArray:
        """Chance of each value where each cell is published, shape (values, cells).

        All values of a box are equally likely; each node of a list is one of the values of a person.
        """
        if not self.column.lists_nodes or self.column.node is None or self.column.offsets is None:
            return self.covered(values) / self.covered_values
        tree, leaf = self.domain.tree()
        node, cell = cells_of_lists(self.column, self.first_row)
        below = tree.holds(node[None, :], leaf[values][:, None]) / np.maximum(tree.leaf_count[node], 1)
        sums = np.stack([np.bincount(cell, weights=each, minlength=self.number) for each in below])
        found: FloatArray = np.minimum(sums.reshape(len(values), self.number), 1.0)
        return found

    def distance(self, values: CodeArray) -> FloatArray:
        """Distance of each value from each cell, in [0, 1], shape (values, cells)."""
        if self.domain.kind == "ordered" and self.column.shape in ("value", "interval"):
            return self._along_the_line(values)
        if self.domain.kind == "hierarchy":
            return self._in_the_tree(values)
        return np.where(self.covered(values), 0.0, 1.0)

    def _along_the_line(self, values: CodeArray) -> FloatArray:
        place, special = self.domain.positions, self.domain.special_from
        lower, upper = (self.codes, self.codes) if self.plain else self.ends
        span = self.domain.span or 1.0
        here = place[values][:, None]
        away = np.maximum(np.maximum(place[lower] - here, here - place[upper]), 0.0) / span
        # NULL and what is not finite are as far as can be from every other value
        apart = (values[:, None] >= special) | (lower >= special)
        distance: FloatArray = np.where(self.covered(values), 0.0, np.where(apart, 1.0, np.minimum(away, 1.0)))
        return distance

    @cached_property
    def _tree_distances(self) -> FloatArray:
        """Share of the height from which each cell's node and each value are one, shape (domain, cells)."""
        tree = self.domain.hierarchy
        if tree is None:
            raise ColumnError(f"column '{self.domain.name}' has no hierarchy")
        size, column = self.domain.size, self.column
        every = np.repeat(np.arange(size, dtype=np.int32), self.number)
        if self.plain:
            above = common_node(self.domain, every, np.tile(self.codes, size))
            climbed = tree.level[above].reshape(size, self.number)
        elif column.shape == "node" and column.node is not None:
            climbed = _climbed(self.domain, np.tile(column.node[self.first_row], size), every)
            climbed = climbed.reshape(size, self.number)
        else:
            return np.where(self._covers, 0.0, 1.0)
        distance: FloatArray = np.where(self._covers, 0.0, climbed / max(tree.height, 1))
        return distance

    def _in_the_tree(self, values: CodeArray) -> FloatArray:
        return self._tree_distances[values]


def published_cells(column: ReadColumn, rows: int) -> PublishedCells:
    """Find the distinct cells of a column of `rows` rows.

    Raises:
        ColumnError: when it holds counts, or something else that no value can be compared with.
    """
    if column.shape == "counts":
        raise ColumnError(
            f"column '{column.domain.name}' of the release holds counts, not values or boxes; "
            "name the columns to look at, without it"
        )
    keys = keys_of([cell_numbers(column)])
    return PublishedCells(column, keys.first, keys.of_row)


def _climbed(domain: Attribute, node: CodeArray, values: CodeArray) -> CodeArray:
    """Level of the lowest node above both a node and a value."""
    tree, leaf = domain.tree()
    level: CodeArray = tree.level[tree.lowest_above(node, leaf[values])]
    return level
