"""Making rows that certainly violate a rule compatible again, by generalizing cells.

A printed row violates a rule with certainty when every value its printed values may stand for satisfies all
of the rule's predicates (any of them, for rules on one and the same quasi-identifier). For each bucket with
such a row the cheapest attribute of the rule (smallest added normalized certainty penalty of that attribute) is
generalized in the whole cell, just far enough, if need be to its whole domain; the rest of the cell is made
k-anonymous (see `cell_parts`). Cells without a violation are left alone: k-anonymity of cells is no guarantee of
the whole table (Hasan et al. 2018, section 4.1.4 and Tables 6 and 7).
Cost: a few passes over the slots a round; the number of rounds is at most the number of (attribute, level)
pairs, in practice one to three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import run_starts
from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.kernels.slicing.cell_parts import CellRows, parts_of_cells
from duckdb_anon.kernels.slicing.covers import EXACT, Cover, box_cover, certain, exact_cover, loss_of
from duckdb_anon.kernels.slicing.validity_rules import ValidityRules
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError, listed


@dataclass
class SlicedTable:
    """Slots of a sliced table after the permutation, and how far its cells are generalized.

    Attributes:
        attributes: the quasi-identifiers.
        columns: their places, column by column.
        codes: code of each quasi-identifier in each slot, each of shape (slots,).
        sensitive: sensitive code of each slot.
        bucket: bucket of each slot, 0 .. buckets - 1, non-decreasing.
        k: size of the parts of a generalized cell.
        level: for each attribute and bucket: 0 as is, 1 + steps above the tight box of the whole cell.
        forced: for each column whether all of its cells are made k-anonymous.
    """

    attributes: Sequence[Attribute]
    columns: Sequence[tuple[int, ...]]
    codes: Sequence[CodeArray]
    sensitive: CodeArray
    bucket: IntArray
    k: int
    forced: frozenset[int] = frozenset()
    level: IntArray = field(init=False)
    _raised: dict[tuple[int, int], tuple[Cover, FloatArray]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Start with nothing generalized."""
        self.first = run_starts(self.bucket)
        self.size = np.diff(np.append(self.first, len(self.bucket)))
        self.level = np.zeros((len(self.attributes), len(self.first)), dtype=np.int64)

    def raised(self, attribute: int, level: int) -> tuple[Cover, FloatArray]:
        """Return the cover with every cell of an attribute raised to `level` >= 1, and each bucket's NCP."""
        if (attribute, level) not in self._raised:
            lift = np.full(len(self.first), level - 1, dtype=np.int64)
            cover = box_cover(self.attributes[attribute], self.codes[attribute], self.bucket, lift)
            self._raised[attribute, level] = (cover, loss_of(cover)[cover.index[self.first]])
        return self._raised[attribute, level]

    def top_level(self, attribute: int) -> int:
        """Level at which the attribute stands for its whole domain."""
        tree = self.attributes[attribute].hierarchy
        return 2 if tree is None else 1 + tree.height


def repair(table: SlicedTable, rules: ValidityRules) -> list[Cover]:
    """Generalize cells until no row violates a rule with certainty.

    Args:
        table: the permuted slots; its `level` is changed.
        rules: what must not be printed.

    Returns:
        One cover for each quasi-identifier.

    Raises:
        ParameterError: a sensitive value is forbidden with every value of a rule's quasi-identifiers, so that not even
            their whole domains would help; in all other cases a repair exists and is found.
    """
    covers = build_covers(table)
    slots, numbers = rules.violated(table.codes, table.sensitive)
    # All of them are looked at in every round: raising one attribute of a cell cuts the rest of the cell anew, and a
    # row that a part had hidden may print its own values again.
    while len(still := still_violated(rules, covers, slots, numbers)):
        _raise_cells(table, rules, covers, slots[still], numbers[still])
        covers = build_covers(table)
    return covers


def still_violated(rules: ValidityRules, covers: Sequence[Cover], slots: IntArray, numbers: IntArray) -> IntArray:
    """Return the entries whose rule is satisfied with certainty by the published values.

    Args:
        rules: the rules.
        covers: published values by attribute.
        slots: slots looked at.
        numbers: number of the rule each slot is held against.
    """
    found = [np.empty(0, dtype=np.int64)]
    order = np.argsort(numbers, kind="stable")
    for entries in np.split(order, run_starts(numbers[order])[1:]) if len(order) else ():
        sure = np.ones(len(entries), dtype=bool)
        for q, holds in rules.predicates(int(numbers[entries[0]])).items():
            sure &= certain(covers[q], slots[entries], holds)
        found.append(entries[sure])
    return np.sort(np.concatenate(found))


def _raise_cells(
    table: SlicedTable, rules: ValidityRules, covers: Sequence[Cover], slots: IntArray, numbers: IntArray
) -> None:
    """Raise, in each bucket with a violation, one attribute of its first violated rule."""
    order = np.lexsort((numbers, table.bucket[slots]))
    firsts = order[run_starts(table.bucket[slots[order]])]
    firsts = firsts[np.argsort(numbers[firsts], kind="stable")]
    for entries in np.split(firsts, run_starts(numbers[firsts])[1:]):
        number = int(numbers[entries[0]])
        buckets = table.bucket[slots[entries]]
        predicates = rules.predicates(number)
        options = [_cheapest_level(table, covers, q, holds, buckets) for q, holds in predicates.items()]
        cost = np.array([option[1] for option in options])
        best = np.argmin(cost, axis=0)
        if not np.isfinite(cost.min(axis=0)).all():
            names = listed(table.attributes[q].name for q in predicates)
            raise ParameterError(
                f"merging: a sensitive value of the table is forbidden by rules := with every value of {names}, so no "
                f"generalization makes {int(np.sum(~np.isfinite(cost.min(axis=0))))} buckets valid; narrow the rules "
                f"on {names} or drop them"
            )
        for place, q in enumerate(predicates):
            chosen = best == place
            table.level[q, buckets[chosen]] = options[place][0][chosen]


def _cheapest_level(
    table: SlicedTable, covers: Sequence[Cover], q: int, holds: BoolArray, buckets: IntArray
) -> tuple[IntArray, FloatArray]:
    """Lowest level at which the predicate is no longer certain, and the NCP it adds to the cell."""
    level = np.zeros(len(buckets), dtype=np.int64)
    cost = np.full(len(buckets), np.inf)
    per_slot = loss_of(covers[q])[covers[q].index]
    now = np.add.reduceat(per_slot, table.first)[buckets]
    for candidate in range(1, table.top_level(q) + 1):
        cover, loss = table.raised(q, candidate)
        open_ = (level == 0) & (candidate > table.level[q, buckets])
        helps = open_ & ~certain(cover, table.first[buckets], holds)
        level[helps] = candidate
        cost[helps] = (loss[buckets] * table.size[buckets] - now)[helps]
    return level, cost


def build_covers(table: SlicedTable) -> list[Cover]:
    """Return the published values of each attribute at the table's present levels."""
    covers: list[Cover] = [None] * len(table.attributes)  # type: ignore[list-item]
    for number, column in enumerate(table.columns):
        members = list(column)
        touched = np.any(table.level[members] > 0, axis=0) | np.full(len(table.first), number in table.forced)
        slots = np.flatnonzero(touched[table.bucket])
        raised: BoolArray = np.asarray(table.level[members][:, table.bucket[slots]] > 0)
        rows = CellRows(
            [table.attributes[q] for q in members],
            [table.codes[q][slots] for q in members],
            list(~raised),
            table.bucket[slots],
        )
        part = parts_of_cells(rows, table.k) if len(slots) else np.empty(0, dtype=np.int64)
        for place, q in enumerate(members):
            covers[q] = _cover(table, q, slots, part, raised[place])
    return covers


def _cover(table: SlicedTable, q: int, slots: IntArray, part: IntArray, raised: BoolArray) -> Cover:
    """Cover of one attribute: raised cells share one box, the others keep their parts."""
    attribute, codes = table.attributes[q], table.codes[q]
    boxed = raised | (part != EXACT)
    if not boxed.any():
        return exact_cover(attribute, codes)
    buckets = len(table.first)
    label = np.where(raised, table.bucket[slots], buckets + part)[boxed]
    number = compact(label)
    lift = np.zeros(int(number.max()) + 1, dtype=np.int64)
    own = raised[boxed]
    lift[number[own]] = table.level[q, label[own]] - 1
    part_of_slot = np.full(len(codes), EXACT, dtype=np.int64)
    part_of_slot[slots[boxed]] = number
    return box_cover(attribute, codes, part_of_slot, lift)
