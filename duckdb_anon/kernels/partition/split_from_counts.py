"""The cuts of a group that is too large to be held, from counts alone: those of `partition`.

What those three read of a large group is how many rows have each value (`sse`: a sample of its rows), so whoever can
count can cut. A group of more than `by_counts` rows is cut here as it is there, to the same parts: by loss and at
medians exactly, by squared error up to the sample. Cuts come best first; whoever asks checks the parts.
Cost: linear in the values that occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.kernels.partition.partition import WIDTHS, Width
from duckdb_anon.kernels.partition.partition_state import CHILDREN, FREQUENT, ONLY, UP_TO, Columns, Rows, Workspace
from duckdb_anon.kernels.partition.split_candidates import (
    COMPARED_SIZE,
    Candidates,
    LossScore,
    MedianScore,
    loss_cuts,
    median_cuts,
    set_cut,
)
from duckdb_anon.kernels.partition.sse_split import UNRANKED, ErrorScore, left_to_right, sample_cuts, without_tree
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray


@dataclass(frozen=True)
class GroupCounts:
    """A group by the numbers of rows its values have."""

    code: tuple[IntArray, ...]  # codes that occur of each attribute, ascending
    rows: tuple[IntArray, ...]  # rows that have each of them, 1 or more

    @property
    def size(self) -> int:
        """Rows of the group."""
        return int(self.rows[0].sum())


@dataclass(frozen=True)
class Cut:
    """A cut of a group by one attribute."""

    attribute: int  # which one
    part: IntArray  # part of each of the attribute's codes, shape (domain,); 0, 1, ... Codes that do not occur have any
    parts: int  # how many there are


def by_counts(min_size: int) -> int:
    """Rows above which cuts by loss need nothing but counts."""
    return COMPARED_SIZE * min_size


def cuts_by_loss(qi: Sequence[Attribute], counts: GroupCounts, min_size: int) -> Iterator[Cut]:
    """Cuts by the loss to expect, as `partition` tries them in a group of more than `by_counts` rows.

    >>> age = Attribute('age', 'ordered', np.array([0, 1, 2]), np.array([0.0, 1.0, 9.0]), 3, -1, np.arange(3))
    >>> group = GroupCounts((np.arange(3),), (np.array([4, 4, 4]),))
    >>> next(cuts_by_loss((age,), group, 2)).part.tolist()
    [0, 0, 1]
    """
    return _cuts(qi, counts, loss_cuts, LossScore(0), min_size)


def cuts_at_median(qi: Sequence[Attribute], counts: GroupCounts, width: Width) -> Iterator[Cut]:
    """Cuts of each attribute at its median, widest first, as a strict partition tries them."""
    return _cuts(qi, counts, median_cuts, MedianScore(WIDTHS[width], 0), 1)


def _cuts(
    qi: Sequence[Attribute], counts: GroupCounts, list_cuts: Callable[..., int], score: Any, min_size: int
) -> Iterator[Cut]:
    """The cuts that a score lists for a group, best first: its counts stand in the place of those of the full table."""
    columns = Columns.of(tuple(qi))
    size = counts.size
    by_code = np.zeros(int(columns.offset[-1]), dtype=np.int64)
    for attribute, offset, code, rows in zip(qi, columns.offset[:-1], counts.code, counts.rows, strict=True):
        np.add.at(by_code, offset + attribute.place_of_code[code], rows)
    table = Rows.counted(size, by_code)
    space, found = Workspace.of(columns, size), Candidates.of(columns, size)
    listed = list_cuts(columns, table, space, found, score, min_size, 0, size, 0)
    for chosen in np.lexsort((found.loss[:listed], found.turn[:listed])).tolist():
        if found.loss[chosen] < np.inf and set_cut(columns, table, space, found, chosen, 0, size):
            kind, j, at, depth, _ = space.cut.tolist()
            if kind in (UP_TO, FREQUENT, ONLY):
                part, parts = _binary(columns, space, j, kind, at), 2
            else:
                part = _children(qi[j], depth)
                parts = int(part.max()) + 1
                if kind != CHILDREN:
                    part, parts = (part != at).astype(np.int64), 2
            yield Cut(j, part[qi[j].place_of_code], parts)


def _binary(columns: Columns, space: Workspace, j: int, kind: int, at: int) -> IntArray:
    """Part of each code (leaf) of an attribute under a cut in two."""
    low, high = int(columns.offset[j]), int(columns.offset[j + 1])
    if kind == UP_TO:
        return (np.arange(high - low) > at).astype(np.int64)
    rank = space.rank[low:high]
    return (rank > at if kind == FREQUENT else rank != at).astype(np.int64)


def cuts_by_error(qi: Sequence[Attribute], size: int, sample: CodeArray, least: int) -> Iterator[Cut]:
    """Cuts where the squared error falls most, from a sample of the group's rows, as `partition` tries them.

    `sample`: codes of some of its rows, shape (rows, attributes).
    """
    ordered = [left_to_right(attribute) for attribute in qi]
    columns = Columns.of(tuple(without_tree(attribute) for attribute in ordered))
    places = [np.argsort(attribute.left_to_right) for attribute in qi]
    shifted = [place.astype(np.uint64) << shift for place, shift in zip(places, columns.shift, strict=True)]
    rows = len(sample)
    words = columns.packed(rows, lambda j, low, high: shifted[j][sample[low:high, j]])
    score, found = ErrorScore.of(features_of(ordered), len(ordered), rows), Candidates.of(columns, rows)
    space = Workspace.of(columns, rows)
    space.rank[:] = UNRANKED  # of the values that the sample lacks
    score.chosen[:] = np.arange(rows)
    sample_cuts(columns, words, space, found, score, least, size, rows)
    for chosen in np.argsort(found.loss[: int(found.found[0])], kind="stable"):
        j, kind, at = (int(part[chosen]) for part in (found.attribute, found.kind, found.at))
        yield Cut(j, _binary(columns, space, j, kind, at)[places[j]], 2)


def _children(attribute: Attribute, depth: int) -> IntArray:
    """Which child of its ancestor at a depth each leaf is below."""
    if attribute.hierarchy is None:
        raise ValueError(f"attribute '{attribute.name}' has no hierarchy")
    ancestors = attribute.hierarchy.ancestors
    return attribute.hierarchy.ordinal[ancestors[min(depth + 1, len(ancestors) - 1)]].astype(np.int64)
