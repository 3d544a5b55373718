"""The line of a column: the atoms that its cells are made of, in order, and the values that each atom stands for.

Atoms are the codes of an attribute in their order, the leaves of its hierarchy from left to right, or segments of
numbers: every end of an interval alone, and what is between two neighbouring ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.number_scale import Numbers

NO_CODE = 2**31 - 1
"""Code of NULL where no row of the release has it alone."""


@dataclass(frozen=True, eq=False)
class Line:
    """The atoms of a column.

    Attributes:
        domain: the attribute.
        codes: code (in a hierarchy: leaf) of each atom, -1 where it is a segment of numbers, shape (atoms,).
        low, high: first and last number of each segment on the attribute's scale; None where there are no segments.
        widths: number of values of each atom, a length for measured types.
    """

    domain: Attribute
    codes: CodeArray
    widths: FloatArray
    low: Numbers | None = None
    high: Numbers | None = None

    @staticmethod
    def of_widths(widths: FloatArray) -> Line:
        """A line of atoms of which nothing is known but how many values each has."""
        codes, atoms = np.arange(len(widths), dtype=np.int32), np.arange(len(widths))
        domain = Attribute("", "nominal", codes[:0], atoms.astype(np.float64), len(atoms), -1, atoms[:0])
        return Line(domain, codes, widths)

    @staticmethod
    def of(domain: Attribute) -> Line:
        """Atoms that are codes, or the leaves of a hierarchy."""
        atoms = domain.hierarchy.leaves if domain.hierarchy is not None else domain.size
        return Line(domain, np.arange(atoms, dtype=np.int32), np.ones(atoms))

    @cached_property
    def atom_of_code(self) -> IntArray:
        """Atom of each code of the domain."""
        return self.domain.place_of_code.astype(np.int64)

    @cached_property
    def code_of_atom(self) -> IntArray:
        """Code of each atom; for lines of codes and leaves."""
        return self.domain.code_of_leaf.astype(np.int64) if self.domain.leaf_of_code is not None else self.atom_of_code

    @staticmethod
    def segments(domain: Attribute, numbers: Numbers, lower: IntArray, upper: IntArray) -> Line:
        """-infinity, segments between the ends of intervals, what else is no number, NULL.

        Args:
            domain: the attribute.
            numbers: number of each of its codes that has one.
            lower, upper: codes of the ends of the intervals, -1 for an interval without ends, which may be NULL.
        """
        finite, closed = ((ends >= 0) & (ends < domain.special_from) for ends in (lower, upper))
        low, high = _segments(numbers[lower[finite]], numbers[upper[closed]])  # ends of one cell may be infinite alone
        before = [domain.minus_infinity] if domain.minus_infinity >= 0 else []
        after = [code for code in range(domain.special_from, domain.size) if code != domain.minus_infinity]
        if (lower < 0).any() and domain.null_code < 0:
            after.append(NO_CODE)
        codes = np.array([*before, *([-1] * len(low)), *after], dtype=np.int32)
        with np.errstate(over="ignore"):
            width = high.astype(np.float64) - low.astype(np.float64) + (0.0 if numbers.dtype == np.float64 else 1.0)
        widths = np.ones(len(codes))
        # so that their sum is finite
        widths[codes == -1] = np.minimum(width, np.finfo(np.float64).max / (2 * len(codes)))
        zeros = (np.zeros(len(before), low.dtype), np.zeros(len(after), low.dtype))
        padded = (np.concatenate([zeros[0], ends, zeros[1]]) for ends in (low, high))
        return Line(domain, codes, widths, *padded)

    def places(self, numbers: Numbers, lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray]:
        """First and last atom of intervals on a line of segments; those without ends cover all but NULL."""
        first, last = np.zeros(len(lower), dtype=np.int64), np.full(len(lower), len(self.codes) - 1)
        last -= int((lower < 0).any())
        inside = np.flatnonzero(self.codes == -1)
        before = int(inside[0]) if len(inside) else 0
        atom_of_special = {int(code): atom for atom, code in enumerate(self.codes) if code >= 0}
        starts = np.zeros(0) if self.low is None else self.low[inside]
        for ends, atoms in ((lower, first), (upper, last)):
            known = (ends >= 0) & (ends < self.domain.special_from)
            # the atom of an end alone comes before the segment that starts there
            atoms[known] = before + np.searchsorted(starts, numbers[ends[known]])
            special = (ends >= 0) & ~known
            atoms[special] = [atom_of_special[int(code)] for code in ends[special]]
        return first, np.maximum(first, last)

    def numbers(self, atoms: IntArray, random: FloatArray) -> Numbers:
        """Numbers in the segments of atoms, even in each.

        `random`: a number in [0, 1) for each.
        """
        if self.low is None or self.high is None:
            raise TypeError("a line of codes has no segments of numbers")
        low, high = self.low[atoms], self.high[atoms]
        if low.dtype == np.float64:
            measured: Numbers = np.clip(low * (1 - random) + high * random, low, high)
            return measured
        width = high.astype(np.float64) - low.astype(np.float64) + 1
        counted: Numbers = np.minimum(low + np.floor(random * width).astype(np.int64), high)
        return counted

    def away(self, atoms: IntArray, first: NDArray[Any], last: NDArray[Any]) -> FloatArray:
        """Distance of atoms from ranges of numbers, over the range of the domain, in [0, 1], shape (atoms, ranges)."""
        position, special = self.domain.positions, self.domain.special_from
        here = position[atoms][:, None]
        away = np.maximum(position[first] - here, here - position[last]) / (self.domain.span or 1.0)
        # NULL and what is not finite are as far as can be from every other value
        return np.where((atoms[:, None] >= special) | (first >= special), 1.0, np.clip(away, 0.0, 1.0))

    def climb(self, atoms: IntArray, first: NDArray[Any], last: NDArray[Any]) -> FloatArray:
        """Level of the lowest node above leaves and ranges of leaves, over the height, shape (atoms, ranges)."""
        tree, _ = self.domain.tree()
        height = max(tree.height, 1)
        chain = tree.ancestors[:, atoms]
        distance = np.repeat(tree.level[chain[0]][:, None] / height, len(first), axis=1)
        # from the root down, as long as both lie below
        for nodes in chain[1:]:
            start = tree.first_leaf[nodes][:, None]
            below = (first >= start) & (last < start + tree.leaf_count[nodes][:, None])
            np.copyto(distance, tree.level[nodes][:, None] / height, where=below)
        return distance


def _segments(lower: Numbers, upper: Numbers) -> tuple[Numbers, Numbers]:
    """First and last number of each segment: every end alone, and what is between two."""
    ends = np.concatenate([lower, upper])
    if lower.dtype == np.float64:
        points = np.unique(ends)
        after = np.arange(1, len(points))
        return np.insert(points, after, points[:-1]), np.insert(points, after, points[1:])
    largest = ends.max(initial=np.iinfo(np.int64).min)
    starts = np.unique(np.concatenate([ends, ends[ends < largest] + 1]))  # the largest may be the end of the type
    return starts, np.concatenate([starts[1:] - 1, [largest] * (len(starts) > 0)])


def quantile_bins(counts: NDArray[Any], bins: int, rows: int, *, below: bool = False) -> IntArray:
    """Bin of each value, about as many rows in each: by where its own rows end, or with `below` those before it.

    >>> quantile_bins(np.array([1, 1, 4, 2]), 4, 8).tolist()
    [0, 0, 1, 2]
    """
    position = np.cumsum(counts) - (counts if below else 1)
    bin_of_value = np.minimum(position * bins // max(rows, 1), bins - 1)
    return np.unique(bin_of_value, return_inverse=True)[1].astype(np.int64)
