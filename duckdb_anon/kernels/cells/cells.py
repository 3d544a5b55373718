"""Published cells over the line of a column: what each covers, the share it gives a value, its distance, draws from it.

A cell of any format is one range of atoms (`Ranges`: a value, an interval, a node) or several (`Lists`: a set, the
counts of a bucket, a list of nodes), or a value that may be another one's (`Noisy`). Values of a range are equally
likely. A list of nodes stands for one value a node, every other cell for one value. Distances are Gower's (1971), in
[0, 1]: ordered differences over the range of the domain, nominal 0 or 1, in a hierarchy the share of the height to
climb; 0 inside a cell, else to its nearer end. Values are codes of the domain wherever a method takes or gives them.
Cost: linear in cells and members; `shares` also in the values that cells of several ranges, or nodes, cover.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.line import Line
from duckdb_anon.kernels.partition.sort_count import owners, ranges
from duckdb_anon.kernels.row_keys import keys_of, keys_of_lists
from duckdb_anon.model.coded_table import Attribute, BoolArray, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError

_MOST_ENTRIES = 1 << 25
"""Cells times values up to which it is looked up which cells cover which values."""
SWAPPED = ", and a table of true values is needed. Is a release in the place of its original?"
Odds = tuple[IntArray, IntArray, FloatArray]
"""Where the bins of each cell start, the bins, and the probability of the cell given each."""


@dataclass(frozen=True)
class Randomization:
    """How a released column was randomized."""

    p: float  # probability that a released value is the true one
    domain: CodeArray  # codes of the values it was drawn from, in the common domain, shape (size,)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Cells that are one range of atoms each.

    Attributes:
        line: the atoms.
        first, last: first and last atom of each range, both inside, shape (cells,).
        of_row: cell of each row; None where each row has a cell of its own.
        holds: what cells are, for messages.
        node: node of the hierarchy that each cell is; None for other cells.
        anything: whether each cell may stand for NULL as well as for values; None where none does.
        of_null: share of the records of cells that may be anything that are NULL; None where the release says nothing.
        slice: name of the STRUCT column that the column was a field of, '' for none.
        channel: how the column was randomized, where the release says so.
    """

    line: Line
    first: NDArray[Any]
    last: NDArray[Any]
    of_row: Any = None
    holds: str = "intervals"
    node: CodeArray | None = None
    anything: Any = None
    of_null: float | None = None
    slice: str = ""
    channel: Randomization | None = None

    several: ClassVar[bool] = False
    """Whether a cell has members: those of a set, values with their counts, or nodes."""
    noisy: ClassVar[bool] = False
    """Whether a cell may be another value's."""

    def __post_init__(self) -> None:
        """Fill in what is the same for all cells."""
        if self.of_row is None:
            object.__setattr__(self, "of_row", np.arange(self.number))
        if self.anything is None:
            object.__setattr__(self, "anything", np.zeros(self.number, dtype=bool))

    @classmethod
    def of_codes(cls, domain: Attribute, codes: NDArray[Any], **more: Any) -> Self:
        """A value a row."""
        atoms = codes if domain.leaf_of_code is None else domain.leaf_of_code[codes]
        return cls(Line.of(domain), atoms, atoms, holds="plain values", **more)

    @classmethod
    def of_ends(cls, domain: Attribute, lower: NDArray[Any], upper: NDArray[Any], **more: Any) -> Self:
        """An interval a row, from the codes of its ends; -1, -1 means anything, NULL included."""
        if domain.minus_infinity >= 0:  # its code is above those of numbers: an open end reaches to the least of them
            lower = np.where((lower == domain.minus_infinity) & (upper != lower), 0, lower)
        anything, first, last = lower < 0, lower, np.maximum(upper, lower)
        if not anything.any():
            return cls(Line.of(domain), first, last, **more)
        first, last = np.maximum(first, 0), np.where(anything, domain.size - 1, last)
        return cls(Line.of(domain), first, last, anything=anything, **more)

    @classmethod
    def of_nodes(cls, domain: Attribute, node: CodeArray, **more: Any) -> Self:
        """A node of the hierarchy a row."""
        tree, _ = domain.tree()
        first = tree.first_leaf[node].astype(np.int64)
        return cls(Line.of(domain), first, first + tree.leaf_count[node] - 1, holds="nodes", node=node, **more)

    def with_blanks(self, of_null: float | None = None) -> Ranges:
        """Values as they are, of which NULL may stand for any, since some were suppressed.

        `of_null`: share of NULLs that are the rows' own, where the release says so.
        """
        blank = self.value_codes() == self.domain.null_code
        first, last = np.where(blank, 0, self.first), np.where(blank, len(self.line.codes) - 1, self.last)
        return replace(self, first=first, last=last, anything=blank, holds="intervals", of_null=of_null)

    @property
    def number(self) -> int:
        """How many cells."""
        return len(self.offsets) - 1

    @property
    def domain(self) -> Attribute:
        """The values that cells stand for."""
        return self.line.domain

    @property
    def plain(self) -> bool:
        """Whether every cell is one value."""
        return self.holds == "plain values"

    @property
    def interval(self) -> bool:
        """Whether a cell is an interval."""
        return self.holds == "intervals"

    @property
    def counted(self) -> bool:
        """Whether a cell holds the counts of the values of a bucket."""
        return self.holds == "counts"

    @property
    def lists_nodes(self) -> bool:
        """Whether a cell is a list of nodes of a hierarchy, one for each value of a person."""
        return self.several and self.node is not None

    @property
    def ordered(self) -> bool:
        """Whether a cell is a number, or an interval of numbers."""
        return self.domain.kind == "ordered" and not self.several

    def value_codes(self) -> CodeArray:
        """Code of each cell of a column of plain values."""
        if not self.plain:
            raise ColumnError(f"column '{self.domain.name}' has no plain values{SWAPPED}")
        codes: CodeArray = self.first if self.domain.leaf_of_code is None else self.domain.code_of_leaf[self.first]
        return codes

    def taken(self, cells: IntArray) -> Self:
        """A cell for each of some cells."""
        node = None if self.node is None else self.node[cells]
        found = {"first": self.first[cells], "last": self.last[cells], "anything": self.anything[cells]}
        return replace(self, **found, node=node, of_row=None)

    def of_rows(self, rows: IntArray) -> Self:
        """A cell for each of some rows."""
        return self.taken(self.of_row[rows])

    @cached_property
    def names(self) -> IntArray:
        """A number for each cell, equal where they are published alike."""
        if self.plain:
            return np.asarray(self.first, dtype=np.int64)
        if self.node is not None:
            return self.node.astype(np.int64)
        ends = (self.first.astype(np.int64) + 1) * (len(self.line.codes) + 1) + self.last + 1
        return np.where(self.anything, 0, ends)

    @cached_property
    def different(self) -> Self:
        """The different cells of a column whose rows have a cell of their own each."""
        keys = keys_of([self.names])
        return replace(self.taken(keys.first), of_row=keys.of_row)

    def comparable(self) -> Self:
        """The different cells, where values can be compared with them."""
        if self.counted:
            raise ColumnError(
                f"column '{self.domain.name}' of the release holds counts, not values or boxes; "
                "name the columns to look at, without it"
            )
        return self.different

    @property
    def items(self) -> Ranges:
        """The members of lists as cells of their own."""
        return Ranges(self.line, self.first, self.last, holds="nodes", node=self.node) if self.several else self

    @cached_property
    def offsets(self) -> IntArray:
        """Cell c has the ranges offsets[c] .. offsets[c + 1], shape (cells + 1,)."""
        return np.arange(len(self.first) + 1)

    @cached_property
    def weight(self) -> FloatArray:
        """How much each range counts against the others of its cell."""
        return np.ones(len(self.first))

    @cached_property
    def widths(self) -> IntArray:
        """Atoms of each range."""
        return np.asarray(self.last - self.first + 1, dtype=np.int64)

    @cached_property
    def cell_of_range(self) -> IntArray:
        """Cell of each range."""
        return owners(self.offsets)

    @cached_property
    def weights(self) -> FloatArray:
        """Released rows of each cell."""
        return np.bincount(self.of_row, minlength=self.number).astype(np.float64)

    @cached_property
    def sizes(self) -> FloatArray:
        """Number of values that each cell covers; those of several nodes of a list are added up."""
        width = self.widths.astype(np.float64)
        return np.bincount(self.cell_of_range, weights=width, minlength=self.number).astype(np.float64)

    @cached_property
    def levels(self) -> IntArray:
        """Level of each cell in the hierarchy, which anything has the highest of; without one 1 for several values."""
        if self.node is not None and not self.several:
            return self.domain.tree()[0].level[self.node].astype(np.int64)
        tree = self.domain.hierarchy
        return np.where(self.sizes > 1, 1 if tree is None or self.several else tree.height, 0)

    @cached_property
    def mixed(self) -> BoolArray:
        """Whether each interval may be NULL, or what is no finite number, as well as numbers."""
        if not self.interval:
            return np.zeros(self.number, dtype=bool)
        return np.asarray(self.anything | self.domain.mixed(self.first, self.last))

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Places on the number line of the ends of each value or interval; finite ones where it covers everything."""
        special = self.domain.special_from
        finite = np.where(self.first < special, np.minimum(self.last, max(special - 1, 0)), self.last)
        return self.domain.positions[self.first], self.domain.positions[finite]

    def middles(self) -> FloatArray:
        """Place of each cell on the number line: the middle of an interval, else the most frequent value it covers."""
        if self.plain:
            return self.domain.positions[self.value_codes()]
        if self.ordered:
            return np.add(*self.ends) / 2
        even = self.even_shares
        common = self.weights @ even
        cell = np.repeat(np.arange(self.number), np.diff(even.indptr))
        order = np.lexsort((even.indices, -common[even.indices], cell))
        likeliest = np.zeros(self.number, dtype=np.int64)
        filled = np.flatnonzero(np.diff(even.indptr))
        likeliest[filled] = even.indices[order[even.indptr[filled]]]
        return self.domain.positions[likeliest]

    def covers(self, values: NDArray[Any]) -> BoolArray:
        """Whether each cell covers each value, shape (values, cells)."""
        if self.domain.size * self.number <= _MOST_ENTRIES:
            found: BoolArray = self._covers_each[values]
            return found
        return self._covers(values)

    @cached_property
    def _covers_each(self) -> BoolArray:
        """The cells that cover each value of the domain, where these are few."""
        return self._covers(np.arange(self.domain.size))

    def _covers(self, values: NDArray[Any]) -> BoolArray:
        atom = self.line.atom_of_code[values][:, None]
        inside: BoolArray = (atom >= self.first) & (atom <= self.last)
        return inside

    @cached_property
    def shares(self) -> scipy.sparse.csr_matrix:
        """How many of each value a cell stands for, on average, shape (cells, domain): 1 in all, in lists 1 a node."""
        share = self.weight / np.maximum(self.widths, 1)
        if not self.lists_nodes:
            cell = self.cell_of_range
            share = share / np.bincount(cell, weights=self.weight, minlength=self.number)[cell]
        return self._of_ranges(share)

    @cached_property
    def by_value(self) -> scipy.sparse.csr_matrix:
        """The same, shape (domain, cells)."""
        return self.shares.T.tocsr()

    def chance(self, values: NDArray[Any]) -> FloatArray:
        """Chance of each value where each list of nodes is published, at most 1, shape (values, cells)."""
        return np.asarray(np.minimum(self.by_value[values].toarray(), 1.0))

    @cached_property
    def times(self) -> scipy.sparse.csr_matrix:
        """How many ranges of a cell cover each value, shape (cells, domain)."""
        return self._of_ranges(np.ones(len(self.first)))

    def _of_ranges(self, amount: FloatArray) -> scipy.sparse.csr_matrix:
        """Sums by cell and value of an amount that each range gives to each of its values."""
        codes = self.line.code_of_atom[ranges(np.asarray(self.first, dtype=np.int64), self.widths)]
        offsets = np.concatenate([[0], np.cumsum(self.widths)])[self.offsets]
        entries = (np.repeat(amount, self.widths), codes, offsets)
        found = scipy.sparse.csr_matrix(entries, (self.number, self.domain.size))
        found.sum_duplicates()
        return found

    @property
    def even_shares(self) -> scipy.sparse.csr_matrix:
        """As `shares`, where all values that a cell covers are equally likely, 1 in all."""
        return self.shares

    def in_bins(self, bin_of_code: IntArray) -> scipy.sparse.csr_matrix:
        """Share of each bin in each cell, all values that it covers being equally likely, shape (cells, bins)."""
        bins = int(bin_of_code.max()) + 1
        if self.ordered:
            edge = np.searchsorted(bin_of_code, np.arange(bins + 1))
            inside = np.minimum(self.last[:, None] + 1, edge[1:]) - np.maximum(self.first[:, None], edge[:-1])
            return scipy.sparse.csr_matrix(np.maximum(inside, 0) / self.sizes[:, None])
        codes = np.arange(self.domain.size)
        to_bin = scipy.sparse.csr_matrix((np.ones(len(codes)), (codes, bin_of_code)), (len(codes), bins))
        return scipy.sparse.csr_matrix(self.even_shares @ to_bin)

    def distance(self, values: NDArray[Any]) -> FloatArray:
        """Distance of each value from each cell, in [0, 1], shape (values, cells)."""
        away: Any = 1.0
        if self.domain.kind == "hierarchy":
            away = self.line.climb(self.line.atom_of_code[values], self.first, self.last)
        elif self.domain.kind == "ordered":
            away = self.line.away(values, self.first, self.last)
        return np.where(self.covers(values), 0.0, away)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Code of one value for each row: a range by its weight, then any value of the range."""
        return self._drawn(self.of_row, rng.random(len(self.of_row)))

    def _drawn(self, member: IntArray, chance: FloatArray) -> IntArray:
        codes: IntArray = self.line.code_of_atom[
            self.first[member] + np.floor(chance * self.widths[member]).astype(np.int64)
        ]
        return codes

    # what a model of shares needs of cells: all of it in atoms

    def mass(self, shares: FloatArray) -> FloatArray:
        """Share of the atoms that each cell covers."""
        before = np.concatenate([[0.0], np.cumsum(shares)])
        return np.asarray(before[self.last + 1] - before[self.first])

    def sums(self, weight: FloatArray, atoms: int) -> FloatArray:
        """For each atom the weights of the cells that cover it."""
        change = np.bincount(self.first, weight, atoms + 1) - np.bincount(self.last + 1, weight, atoms + 1)
        return np.asarray(np.cumsum(change)[:-1])

    def odds(self, shares: FloatArray, bin_of_atom: IntArray) -> Odds:
        """The bins that each cell may stand for, and the probability of the cell given each."""
        before = np.concatenate([[0.0], np.cumsum(shares)])
        edges = np.searchsorted(bin_of_atom, np.arange(bin_of_atom[-1] + 2))
        lowest, highest = bin_of_atom[self.first], bin_of_atom[self.last]
        offsets = np.concatenate([[0], np.cumsum(highest - lowest + 1)])
        cell, bins = owners(offsets), ranges(lowest, highest - lowest + 1)
        first = np.maximum(edges[bins], self.first[cell])
        last = np.minimum(edges[bins + 1] - 1, self.last[cell])
        all_of_it = last - first == edges[bins + 1] - 1 - edges[bins]
        share = (before[last + 1] - before[first]) / (before[edges[bins + 1]] - before[edges[bins]])
        return offsets, bins, np.where(all_of_it, 1.0, np.minimum(share, 1.0))

    def inside(
        self, cell: CodeArray, bins: CodeArray, random: FloatArray, shares: FloatArray, bin_of_atom: IntArray
    ) -> IntArray:
        """An atom of each cell inside a bin, by the shares; `random`: a number in [0, 1) for each."""
        edges = np.searchsorted(bin_of_atom, np.arange(bin_of_atom[-1] + 2))
        first = np.maximum(self.first[cell], edges[bins])
        return _places(shares, first, np.minimum(self.last[cell], edges[bins + 1] - 1), random)

    def with_one_more(self, atom: int) -> Self:
        """The cells, and one that is an atom of its own."""
        return replace(
            self, first=np.append(self.first, atom), last=np.append(self.last, atom), of_row=None, node=None,
            anything=None,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Lists(Ranges):
    """Cells of several ranges, which count against each other by their weights."""

    offsets: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))

    several: ClassVar[bool] = True

    @classmethod
    def of_members(cls, members: Ranges, offsets: IntArray, counts: IntArray | None = None) -> Lists:
        """A list a row: sets of values, values with counts, or nodes, one after another in `members`."""
        weight = np.ones(len(members.first)) if counts is None else counts.astype(np.float64)
        holds = "sets" if counts is None else "counts"
        return cls(
            members.line, members.first, members.last, holds=holds, node=members.node, slice=members.slice,
            offsets=offsets, weight=weight,
        )  # fmt: skip

    def taken(self, cells: IntArray) -> Self:
        """As of any cells."""
        sizes = np.diff(self.offsets)[cells]
        member = ranges(self.offsets[cells], sizes)
        node = None if self.node is None else self.node[member]
        return replace(
            self, first=self.first[member], last=self.last[member], node=node, of_row=None, anything=None,
            offsets=np.concatenate([[0], np.cumsum(sizes)]), weight=self.weight[member],
        )  # fmt: skip

    @cached_property
    def names(self) -> IntArray:
        """As of any cells: lists are alike that have the same members in any order."""
        members = self.line.code_of_atom[self.first] if self.node is None else self.node
        return keys_of_lists(self.offsets, members, *([self.weight.astype(np.int64)] if self.counted else [])).of_row

    def _covers(self, values: NDArray[Any]) -> BoolArray:
        return np.asarray(self.by_value[values].toarray() > 0)

    @cached_property
    def even_shares(self) -> scipy.sparse.csr_matrix:
        """As of any cells: values that are listed are equally likely."""
        shares = self.shares.copy()
        shares.data = np.repeat(1 / np.maximum(np.diff(shares.indptr), 1), np.diff(shares.indptr))
        return shares

    def distance(self, values: NDArray[Any]) -> FloatArray:
        """As of any cells: 0 or 1, since lists have no ends."""
        return np.where(self.covers(values), 0.0, 1.0)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """As of any cells."""
        chance = rng.random(len(self.of_row))
        before = np.concatenate([[0], np.cumsum(self.weight)])
        start, end = before[self.offsets[self.of_row]], before[self.offsets[self.of_row + 1]]
        member = np.searchsorted(before, start + np.floor(chance * (end - start)), side="right") - 1
        if self.lists_nodes:
            chance = rng.random(len(self.of_row))
        return self._drawn(np.minimum(member, len(self.first) - 1), chance)

    def mass(self, shares: FloatArray) -> FloatArray:
        """As of any cells, by the weights of members, which are atoms."""
        return np.bincount(self.cell_of_range, shares[self.first] * self.weight, self.number).astype(np.float64)

    def sums(self, weight: FloatArray, atoms: int) -> FloatArray:
        """As of any cells, by the weights of members."""
        return np.bincount(self.first, self.weight * weight[self.cell_of_range], atoms).astype(np.float64)

    def odds(self, shares: FloatArray, bin_of_atom: IntArray) -> Odds:
        """As of any cells."""
        size = int(bin_of_atom[-1]) + 1
        key, index = np.unique(self.cell_of_range * size + bin_of_atom[self.first], return_inverse=True)
        mass = np.bincount(bin_of_atom, shares, size)
        odds = np.bincount(index, shares[self.first] * self.weight, len(key)) / mass[key % size]
        return np.searchsorted(key, np.arange(len(self.offsets)) * size), key % size, odds

    def inside(
        self, cell: CodeArray, bins: CodeArray, random: FloatArray, shares: FloatArray, bin_of_atom: IntArray
    ) -> IntArray:
        """As of any cells."""
        size = int(bin_of_atom[-1]) + 1
        key = self.cell_of_range * size + bin_of_atom[self.first]
        order = np.argsort(key, kind="stable")
        atoms = self.first[order]
        wanted = cell.astype(np.int64) * size + bins
        first = np.searchsorted(key[order], wanted)
        last = np.searchsorted(key[order], wanted, side="right") - 1
        return np.asarray(atoms[_places(shares[atoms] * self.weight[order], first, last, random)])

    def with_one_more(self, atom: int) -> Self:
        """As of any cells."""
        found = Ranges.with_one_more(self, atom)
        offsets = np.append(self.offsets, self.offsets[-1] + 1)
        return replace(found, offsets=offsets, weight=np.append(self.weight, 1.0))


@dataclass(frozen=True, eq=False)
class Noisy(Ranges):
    """Cells that show an atom which may be another one's.

    Of a row with atom x, cell c is seen with probability `base[c]`, and `extra[c]` more where x is its own.
    """

    extra: FloatArray = field(default_factory=lambda: np.zeros(0))
    base: FloatArray = field(default_factory=lambda: np.zeros(0))

    noisy: ClassVar[bool] = True

    def mass(self, shares: FloatArray) -> FloatArray:
        """Probability of each cell, of values with these shares."""
        return np.asarray(self.base * shares.sum() + self.extra * shares[self.first])

    def sums(self, weight: FloatArray, atoms: int) -> FloatArray:
        """As of any cells, by the probability of the cell given the atom."""
        return np.asarray(np.bincount(self.first, self.extra * weight, atoms) + (self.base * weight).sum())

    def odds(self, shares: FloatArray, bin_of_atom: IntArray) -> Odds:
        """As of any cells: every bin may show every cell."""
        mass = np.bincount(bin_of_atom, shares)
        odds = np.repeat(self.base[:, None], len(mass), axis=1)
        own = bin_of_atom[self.first]
        odds[np.arange(len(own)), own] += self.extra * shares[self.first] / mass[own]
        return np.arange(len(own) + 1) * len(mass), np.tile(np.arange(len(mass)), len(own)), odds.ravel()

    def inside(
        self, cell: CodeArray, bins: CodeArray, random: FloatArray, shares: FloatArray, bin_of_atom: IntArray
    ) -> IntArray:
        """As of any cells."""
        edges = np.searchsorted(bin_of_atom, np.arange(bin_of_atom[-1] + 2))
        atom, base = self.first[cell], self.base[cell]
        extra = np.where(bin_of_atom[atom] == bins, np.maximum(self.extra[cell], 0.0) * shares[atom], 0.0)
        others = base * np.bincount(bin_of_atom, shares)[bins]
        its_own = random * (extra + others) < extra
        left = (random * (extra + others) - extra) / np.where(others > 0, others, 1.0)
        found = _places(shares, edges[bins], edges[bins + 1] - 1, np.clip(left, 0.0, 1.0))
        return np.where(its_own, atom, found)


def _places(weights: FloatArray, first: IntArray, last: IntArray, random: FloatArray) -> IntArray:
    """A place in `first` .. `last` by its weight."""
    before = np.concatenate([[0.0], np.cumsum(weights)])
    wanted = before[first] + random * (before[last + 1] - before[first])
    return np.asarray(np.clip(np.searchsorted(before, wanted, side="right") - 1, first, last))
