"""The rows of all groups that may still be cut, side by side, so that one array pass serves a whole level.

Rows of a group are neighbours. Groups are numbered by where they came from (parent, then part), which makes
the numbering a function of the table's content and not of the order of its rows.

Cost: one level costs a few passes and one sort over the rows still active.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.partition.packed import order_by, ranges
from duckdb_anon.partition.requirements import BoolArray, Groups, Requirement
from duckdb_anon.table import Attribute, CodeArray, IntArray

Integers = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """What stays the same over all levels.

    Attributes:
        qi: the attributes to cut on.
        requirement: what every part must satisfy.
        table_counts: rows of the whole table with each sensitive code.
    """

    qi: tuple[Attribute, ...]
    requirement: Requirement
    table_counts: IntArray


@dataclass(frozen=True)
class Cut:
    """How the groups of a frame are cut: part of each row, and which groups are cut at all.

    Attributes:
        part: part of each row, 0 .. parts - 1, shape (rows,); meaningless in groups that are not cut.
        parts: exclusive bound of `part`.
        accepted: for each group whether its cut satisfies the requirement.
    """

    part: Integers
    parts: int
    accepted: BoolArray


@dataclass(frozen=True)
class Frame:
    """Active rows, grouped.

    Attributes:
        rows: source row of each active row.
        codes: code of each attribute and active row, shape (attributes, rows); hierarchies hold leaf numbers.
        sensitive: sensitive code of each active row, or None.
        starts: first active row of each group.
        sizes: number of rows of each group.
    """

    rows: CodeArray
    codes: CodeArray
    sensitive: CodeArray | None
    starts: IntArray
    sizes: IntArray

    @staticmethod
    def of_table(qi: tuple[Attribute, ...], sensitive: CodeArray | None, rows: int) -> Frame:
        """Put a whole table into one group."""
        codes = np.empty((len(qi), rows), dtype=np.int32)
        for place, attribute in zip(codes, qi, strict=True):
            if attribute.leaf_of_code is None:
                place[:] = attribute.codes
            else:
                place[:] = attribute.leaf_of_code[attribute.codes]
        every = np.arange(rows, dtype=np.int32)
        return Frame(every, codes, sensitive, np.zeros(1, dtype=np.int64), np.array([rows]))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.starts)

    def group_of_row(self) -> IntArray:
        """Return the group of each active row."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def rows_of(self, groups: IntArray) -> tuple[IntArray | slice, IntArray]:
        """Return the places of the rows of some groups, and for each its position in `groups`."""
        local = np.repeat(np.arange(len(groups)), self.sizes[groups])
        if len(groups) == len(self):
            return slice(None), local
        return ranges(self.starts[groups], self.sizes[groups]), local

    def keep(self, groups: BoolArray) -> tuple[Frame, Frame]:
        """Split into the groups where `groups` is true and the others, order kept."""
        return self._only(np.flatnonzero(groups)), self._only(np.flatnonzero(~groups))

    def _only(self, groups: IntArray) -> Frame:
        if len(groups) == len(self):
            return self
        places, _ = self.rows_of(groups)
        return self._taken(places, self.sizes[groups])

    def _taken(self, places: IntArray | slice, sizes: IntArray) -> Frame:
        codes = np.empty((len(self.codes), int(sizes.sum())), dtype=np.int32)
        for new, old in zip(codes, self.codes, strict=True):
            new[:] = old[places]
        sensitive = None if self.sensitive is None else self.sensitive[places]
        return Frame(self.rows[places], codes, sensitive, np.cumsum(sizes) - sizes, sizes)

    def cut(self, cut: Cut) -> Frame:
        """Return the frame of all parts; every group of this frame must be accepted."""
        child = self.group_of_row() * cut.parts + cut.part
        order = order_by(child, np.zeros(1, dtype=np.int64), 1)
        counts = np.bincount(child)
        return self._taken(order, counts[counts > 0])


def acceptable(
    problem: Problem, frame: Frame, groups: IntArray, places: IntArray | slice, child: IntArray, parts: int
) -> BoolArray:
    """Say which groups may be cut as proposed.

    Args:
        problem: holds the requirement.
        frame: the active rows.
        groups: the groups for which a cut is proposed.
        places: their rows, as `Frame.rows_of` gives them.
        child: position in `groups` times `parts` plus part, for each of these rows.
        parts: exclusive bound of the part numbers.

    Returns:
        Shape (groups,): there are two parts or more, and each satisfies the requirement.
    """
    sizes = np.bincount(child, minlength=len(groups) * parts).reshape(-1, parts)
    enough: BoolArray = ((sizes == 0) | (sizes >= problem.requirement.min_size)).all(axis=1)
    enough &= (sizes > 0).sum(axis=1) > 1
    if not enough.any():
        return enough
    wanted = (sizes > 0) & enough[:, None]
    number = np.cumsum(wanted.ravel()) - 1
    whole = bool(enough.all())
    kept = slice(None) if whole else enough[child // parts]
    sensitive = None if frame.sensitive is None else frame.sensitive[places][kept]
    parents = Groups((child // parts)[kept], sensitive, problem.table_counts, frame.sizes[groups])
    children = Groups(
        number[child[kept]], sensitive, problem.table_counts, sizes[wanted], parents, np.nonzero(wanted)[0]
    )
    failed = ~problem.requirement.holds(children)
    enough[np.nonzero(wanted)[0][failed]] = False
    return enough
