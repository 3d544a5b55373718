"""Groups that pose the same linear program.

The program of a group depends on its gaps and counts only, not on where the values lie, not on their scale
and not on their direction; for nominal attributes not on their order either. Each distinct program is solved
once. On the census table of the paper this leaves about a fifth of the programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.random_output_tables.lp_grouping import Classes
from duckdb_anon.model.coded_table import FloatArray, IntArray, Kind

_DIGITS = 12


@dataclass(frozen=True)
class Patterns:
    """Distinct programs of one width, and the pieces that pose them.

    Attributes:
        gaps: gaps between neighbouring classes as shares of their sum, shape (patterns, width - 1).
        count: records in each class, shape (patterns, width).
        pattern_of: pattern of each piece, shape (pieces,).
        member: class of each piece at each place of its pattern, shape (pieces, width).
    """

    gaps: FloatArray
    count: IntArray
    pattern_of: IntArray
    member: IntArray

    @property
    def width(self) -> int:
        """Classes of a group."""
        return int(self.count.shape[1])


def find_patterns(kind: Kind, classes: Classes, first: IntArray) -> Iterator[Patterns]:
    """Yield the distinct programs of every width from 1 up, with the pieces that pose them.

    Args:
        kind: how gaps combine to distances.
        classes: the classes of all groups.
        first: first class of each piece of consecutive classes, and the number of classes at the end.
    """
    width_of_piece = np.diff(first)
    for width in np.unique(width_of_piece[width_of_piece > 0]):
        pieces = np.flatnonzero(width_of_piece == width)
        member = first[pieces][:, None] + np.arange(width)
        gaps = np.zeros((len(pieces), width - 1)) if kind == "nominal" else classes.gaps[member[:, :-1]]
        count = classes.count[member]
        if kind == "nominal":
            order = np.argsort(count, axis=1, kind="stable")
            member, count = np.take_along_axis(member, order, 1), np.take_along_axis(count, order, 1)
        else:
            total = gaps.sum(axis=1, keepdims=True)
            gaps = np.round(gaps / np.where(total > 0, total, 1.0), _DIGITS)
            flip = _mirror_is_smaller(gaps, count)
            member[flip], count[flip], gaps[flip] = member[flip, ::-1], count[flip, ::-1], gaps[flip, ::-1]
        rows = np.ascontiguousarray(np.concatenate([count.astype(np.float64), gaps], axis=1))
        sample, pattern_of = _distinct(rows)
        yield Patterns(gaps[sample], count[sample], pattern_of, member)


def _mirror_is_smaller(gaps: FloatArray, count: IntArray) -> IntArray:
    """Return the rows whose mirror image comes first in lexicographic order."""
    key = np.concatenate([count, gaps], axis=1)
    mirror = np.concatenate([count[:, ::-1], gaps[:, ::-1]], axis=1)
    differs = key != mirror
    place = differs.argmax(axis=1)
    at = np.arange(len(key))
    return np.flatnonzero(differs.any(axis=1) & (mirror[at, place] < key[at, place]))


def _distinct(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Return a sample row of each distinct row, and which one each row equals."""
    if len(rows) < 2:
        return np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    order = np.lexsort(rows.T[::-1])
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(fresh) - 1
    return order[fresh], number
