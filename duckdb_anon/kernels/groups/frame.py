"""The rows of all groups that may still be cut, side by side, so that one array pass serves a whole level.

Rows of a group are neighbours. Groups are numbered by where they came from (parent, then part), which makes
the numbering a function of the table's content and not of the order of its rows.

Cost: one level costs a few passes over the rows still active; nothing is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.groups.packed import part_sizes, ranges, stable_order
from duckdb_anon.kernels.groups.requirements import BoolArray, Groups, Requirement
from duckdb_anon.model.table import Attribute, CodeArray, IntArray

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


class Cut(NamedTuple):
    """How the groups of a frame are cut: part of each row, and which groups are cut at all.

    Attributes:
        part: part of each row, 0 .. parts - 1, shape (rows,); meaningless in groups that are not cut.
        parts: exclusive bound of `part`.
        accepted: for each group whether its cut satisfies the requirement.
    """

    part: Integers
    parts: int
    accepted: BoolArray


class Proposal(NamedTuple):
    """A cut proposed for some groups of a frame.

    Attributes:
        groups: these groups, ascending.
        places: where their rows are in the frame, as `Frame.rows_of` gives them.
        local: position in `groups` of each of these rows.
        part: part of each of these rows.
        parts: exclusive bound of `part`.
    """

    groups: IntArray
    places: IntArray | slice
    local: IntArray
    part: Integers
    parts: int


class Settled(NamedTuple):
    """Groups that are final: their source rows, group after group, and their sizes."""

    rows: CodeArray
    sizes: IntArray


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
                np.take(attribute.leaf_of_code, attribute.codes, out=place, mode="clip")
        every = np.arange(rows, dtype=np.int32)
        return Frame(every, codes, sensitive, np.zeros(1, dtype=np.int64), np.array([rows]))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.starts)

    def rows_of(self, groups: IntArray) -> tuple[IntArray | slice, IntArray]:
        """Return the places of the rows of some groups, and for each its position in `groups`."""
        local = np.repeat(np.arange(len(groups)), self.sizes[groups])
        if len(groups) == len(self):
            return slice(None), local
        return ranges(self.starts[groups], self.sizes[groups]), local

    def settled(self) -> Settled:
        """Declare all groups final."""
        return Settled(self.rows, self.sizes)

    def cut(self, cut: Cut, min_size: int) -> tuple[list[Settled], Frame]:
        """Carry out a cut.

        Args:
            cut: the cut of each group.
            min_size: parts too small to be cut again into two of this size are final.

        Returns:
            The final groups (those not cut, then the small parts), and the frame of the other parts.
        """
        refused = np.flatnonzero(~cut.accepted)
        places, _ = self.rows_of(refused)
        final = [Settled(self.rows[places], self.sizes[refused])] if len(refused) else []
        groups = np.flatnonzero(cut.accepted)
        places, _ = self.rows_of(groups)
        order, sizes = stable_order(cut.part[places], self.sizes[groups], cut.parts)
        if not isinstance(places, slice):
            order = places[order]
        starts = np.cumsum(sizes) - sizes
        small = sizes < 2 * min_size
        if small.any():
            rows = self.rows[order[ranges(starts[small], sizes[small])]]
            final.append(Settled(rows, sizes[small]))
            order = order[ranges(starts[~small], sizes[~small])]
        return final, self._taken(order, sizes[~small])

    def _taken(self, order: IntArray, sizes: IntArray) -> Frame:
        codes = np.empty((len(self.codes), len(order)), dtype=np.int32)
        for new, old in zip(codes, self.codes, strict=True):
            np.take(old, order, out=new, mode="clip")
        sensitive = None if self.sensitive is None else self.sensitive[order]
        return Frame(self.rows[order], codes, sensitive, np.cumsum(sizes) - sizes, sizes)


def acceptable(problem: Problem, frame: Frame, proposal: Proposal) -> BoolArray:
    """Say which groups may be cut as proposed: two parts or more, each satisfying the requirement.

    Returns:
        Shape (groups of the proposal,).
    """
    groups, places, local, part, parts = proposal
    sizes = part_sizes(part, frame.sizes[groups], parts)
    enough: BoolArray = ((sizes == 0) | (sizes >= problem.requirement.min_size)).all(axis=1)
    enough &= (sizes > 0).sum(axis=1) > 1
    if not enough.any():
        return enough
    wanted = (sizes > 0) & enough[:, None]
    parent = np.nonzero(wanted)[0]
    number = np.cumsum(wanted.ravel()) - 1
    # Rows are looked at only if the requirement asks for more than sizes.
    kept: BoolArray | slice = slice(None) if enough.all() else enough[local]

    def rows_of_parts() -> tuple[Integers, Integers | None]:
        sensitive = None if frame.sensitive is None else frame.sensitive[places][kept]
        return number[(local * parts + part)[kept]], sensitive

    def rows_of_parents() -> tuple[Integers, Integers | None]:
        return local, None if frame.sensitive is None else frame.sensitive[places]

    counts = problem.table_counts
    parents = Groups.on_demand(rows_of_parents, counts, frame.sizes[groups])
    children = Groups.on_demand(rows_of_parts, counts, sizes[wanted], parents, parent)
    enough[parent[~problem.requirement.holds(children)]] = False
    return enough
