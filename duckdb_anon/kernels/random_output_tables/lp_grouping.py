"""The linear programs of one attribute: distances, classes of equal rows, pieces of wide groups, distinct programs.

* All three distances of MuCo follow from the gaps between neighbouring values: their sum for numbers, the largest gap
  for a hierarchy whose leaves stand left to right, and 0/1 for nominal values.
* Rows of a group with equal values can share one row of the random output table: averaging an optimal table over
  permutations of equal rows preserves cost and constraints. So programs are about classes (group, value) with a count.
* Any division of a group's classes into pieces of at least 1/delta records, each with separate tables, satisfies delta
  in the group: columns of different pieces do not meet. It gives up some cost for time, which grows with the square of
  the classes and more.
* A program depends on its gaps and counts only, not on where values lie, their scale or direction, and for nominal
  attributes not on their order. Each distinct program is solved once.

Source: Li et al. (2020), arXiv 2008.10771, sections 3, 4. Cost: one sort of the rows, a few passes over the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckdb_anon.kernels.partition.sort_count import offsets_of, order_by, ranges, run_starts
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray, Kind

_LARGE = 1e150


def safe_positions(attribute: Attribute) -> FloatArray:
    """Return positions whose differences cannot overflow; scaled by a power of two, which is exact."""
    positions = attribute.positions.astype(np.float64)
    largest = float(np.abs(positions).max(initial=0.0))
    if largest > _LARGE:
        positions = np.asarray(np.ldexp(positions, -int(np.frexp(largest)[1])))
    return positions


def pair_distance(attribute: Attribute, first: CodeArray, second: CodeArray) -> FloatArray:
    """Return the distance of each pair of codes: |difference|, 0/1, or height of the common ancestor / of the tree."""
    if attribute.kind == "ordered":
        positions = safe_positions(attribute)
        return np.asarray(np.abs(positions[first] - positions[second]))
    if attribute.kind == "nominal":
        return np.asarray(first != second, dtype=np.float64)
    tree, leaf_of_code = attribute.tree()
    node, _ = tree.common(leaf_of_code[first], leaf_of_code[second])
    return np.asarray(tree.level[node] / max(tree.height, 1), dtype=np.float64)


def spread(kind: Kind, gaps: FloatArray) -> FloatArray:
    """Expand gaps, shape (batch, classes - 1), to distance matrices, shape (batch, classes, classes)."""
    batch, classes = gaps.shape[0], gaps.shape[1] + 1
    if kind == "nominal":
        return np.broadcast_to(1.0 - np.eye(classes), (batch, classes, classes)).copy()
    if kind == "ordered":
        index = np.concatenate([np.zeros((batch, 1)), np.cumsum(gaps, axis=1)], axis=1)
        return np.asarray(np.abs(index[:, :, None] - index[:, None, :]))
    distance = np.zeros((batch, classes, classes))
    for first in range(classes - 1):
        reach = np.maximum.accumulate(gaps[:, first:], axis=1)
        distance[:, first, first + 1 :] = reach
        distance[:, first + 1 :, first] = reach
    return distance


_DIGITS = 12


@dataclass(frozen=True)
class Classes:
    """The classes of one attribute, sorted by group and within a group along the attribute."""

    rows: IntArray  # row numbers sorted by class, ties by row number, shape (n,)
    class_of_sorted: IntArray  # class of each entry of `rows`, shape (n,)
    code: CodeArray  # value of each class
    count: IntArray  # rows in each class
    group: IntArray  # group of each class
    first: IntArray  # first class of each group, and the number of classes at the end, shape (groups + 1,)
    gaps: FloatArray  # distance from each class to the next one; 0 for the last one of a group

    @property
    def groups(self) -> int:
        """Number of groups, empty ones included."""
        return len(self.first) - 1

    @cached_property
    def starts(self) -> IntArray:
        """First index into `rows` of each class, and n at the end, shape (classes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.count)]).astype(np.int64)

    @cached_property
    def class_of_row(self) -> IntArray:
        """Class of each row, shape (n,)."""
        class_of_row = np.empty(len(self.rows), dtype=np.int64)
        class_of_row[self.rows] = self.class_of_sorted
        return class_of_row

    @cached_property
    def group_of_row(self) -> IntArray:
        """Group of each row, shape (n,)."""
        return self.group[self.class_of_row]


def find_classes(attribute: Attribute, group_of_row: IntArray) -> Classes:
    """Sort rows into classes; groups are numbered 0 .. max(group_of_row)."""
    groups = int(group_of_row.max(initial=-1)) + 1
    domain = max(attribute.domain, 1)
    index = np.argsort(attribute.left_to_right)[attribute.codes]
    rows = order_by(group_of_row, index, domain)
    key = group_of_row[rows].astype(np.int64) * domain + index[rows]
    starts = run_starts(key)
    code = attribute.codes[rows[starts]]
    count = np.diff(starts, append=len(rows))
    group = key[starts] // domain
    first = offsets_of(group, groups)
    gaps = np.zeros(len(starts))
    if len(starts) > 1:
        gaps[:-1] = pair_distance(attribute, code[:-1], code[1:])
        gaps[first[1:][first[1:] > 0] - 1] = 0.0
    return Classes(rows, np.repeat(np.arange(len(starts)), count), code, count, group, first, gaps)


def cut_wide_groups(classes: Classes, least: int, width: int) -> IntArray:
    """Cut groups of more than `width` classes where both sides have at least `least` records."""
    first = classes.first
    done = np.zeros(len(first) - 1, dtype=bool)
    while True:
        done |= np.diff(first) <= width
        open_pieces = np.flatnonzero(~done)
        if not len(open_pieces):
            return first
        cut = _best_cuts(classes, first[open_pieces], first[open_pieces + 1], least)
        done[open_pieces[cut < 0]] = True
        cut = cut[cut >= 0]
        position = np.searchsorted(first, cut)
        first = np.insert(first, position, cut)
        done = np.insert(done, position - 1, False)


def _best_cuts(classes: Classes, low: IntArray, high: IntArray, least: int) -> IntArray:
    """Return for each piece of classes low .. high - 1 the first class of its right side, -1 where none fits.

    Cuts go where the gap is wide and few records are left over beyond a multiple of 1/delta on either side.
    """
    size = high - low - 1
    piece = np.repeat(np.arange(len(low)), size)
    candidate = ranges(low + 1, size)
    left = classes.starts[candidate] - classes.starts[low[piece]]
    right = classes.starts[high[piece]] - classes.starts[candidate]
    score = classes.gaps[candidate - 1] / (1.0 + np.minimum(left % least, right % least))
    score = np.where((left >= least) & (right >= least), score, 0.0)
    best = np.maximum.reduceat(score, np.cumsum(size) - size)
    hits = np.flatnonzero((score == best[piece]) & (score > 0.0))
    cut = np.full(len(low), -1, dtype=np.int64)
    cut[piece[hits][::-1]] = candidate[hits][::-1]
    return cut


@dataclass(frozen=True)
class Patterns:
    """Distinct programs of one width, and the pieces that pose them."""

    gaps: FloatArray  # gaps between neighbouring classes as shares of their sum, shape (patterns, width - 1)
    count: IntArray  # records in each class, shape (patterns, width)
    pattern_of: IntArray  # pattern of each piece, shape (pieces,)
    member: IntArray  # class of each piece at each position of its pattern, shape (pieces, width)

    @property
    def width(self) -> int:
        """Classes of a piece."""
        return int(self.count.shape[1])


def find_patterns(kind: Kind, classes: Classes, first: IntArray) -> Iterator[Patterns]:
    """Yield the distinct programs of every width from 1 up, with the pieces that pose them."""
    width_of_piece = np.diff(first)
    for width in np.unique(width_of_piece[width_of_piece > 0]):
        member = first[np.flatnonzero(width_of_piece == width)][:, None] + np.arange(width)
        gaps = np.zeros((len(member), width - 1)) if kind == "nominal" else classes.gaps[member[:, :-1]]
        count = classes.count[member]
        if kind == "nominal":
            order = np.argsort(count, axis=1, kind="stable")
            member, count = np.take_along_axis(member, order, 1), np.take_along_axis(count, order, 1)
        else:
            total = gaps.sum(axis=1, keepdims=True)
            gaps = np.round(gaps / np.where(total > 0, total, 1.0), _DIGITS)
            flip = _mirror_is_smaller(gaps, count)
            member[flip], count[flip], gaps[flip] = member[flip, ::-1], count[flip, ::-1], gaps[flip, ::-1]
        sample, pattern_of = _distinct(np.concatenate([count.astype(np.float64), gaps], axis=1))
        yield Patterns(gaps[sample], count[sample], pattern_of, member)


def _mirror_is_smaller(gaps: FloatArray, count: IntArray) -> IntArray:
    """Return the rows whose mirror image comes first in lexicographic order."""
    key = np.concatenate([count, gaps], axis=1)
    mirror = np.concatenate([count[:, ::-1], gaps[:, ::-1]], axis=1)
    differs = key != mirror
    position = differs.argmax(axis=1)
    row = np.arange(len(key))
    return np.flatnonzero(differs.any(axis=1) & (mirror[row, position] < key[row, position]))


def _distinct(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Return a sample row of each distinct row, and which one each row equals; faster than np.unique by axis."""
    order = np.lexsort(rows.T[::-1])
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(fresh) - 1
    return order[fresh], number
