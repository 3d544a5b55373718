"""Generalizing cells of a sliced table until no published row certainly violates a validity rule.

A row violates a rule with certainty when every value its published values may stand for satisfies all of the rule's
predicates. In each bucket with such a row the cheapest attribute of the rule (smallest added normalized certainty
penalty) is generalized in the whole cell, just far enough. The other attributes of that cell are made k-anonymous
(Hasan, Jiang, Chen and Wang 2018, section 4.1.4), as their Tables 6 and 7 show: combinations of values that occur k
times or more stay, the other rows are cut by strict Mondrian, and fewer than k rows left over join the combination
whose common box loses least. Cells without a violation stay as they are (`forced` columns excepted): k-anonymity of
cells is no guarantee of the whole table. Cost: a few passes over the slots per round; one to three rounds in practice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from duckdb_anon.kernels.partition.generalize import box_loss
from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import offsets_of, ranges, run_starts
from duckdb_anon.kernels.row_keys import compact, keys_of
from duckdb_anon.kernels.slicing.covers import EXACT, Cover, cover_of, width_of
from duckdb_anon.kernels.slicing.validity_rules import ValidityRules
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError, listed


@dataclass
class SlicedTable:
    """Slots of a sliced table after the permutation, and how far its cells are generalized."""

    attributes: Sequence[Attribute]  # the quasi-identifiers
    columns: Sequence[tuple[int, ...]]  # their indices, column by column
    codes: Sequence[CodeArray]  # code of each quasi-identifier in each slot, each of shape (slots,)
    sensitive: CodeArray  # sensitive code of each slot
    bucket: IntArray  # bucket of each slot, 0 .. buckets - 1, non-decreasing
    k: int  # size of the parts of a generalized cell
    forced: frozenset[int] = frozenset()  # columns whose cells are all made k-anonymous
    # for each attribute and bucket: 0 as it is, 1 + steps above the tight box of the whole cell
    level: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing generalized."""
        self.first = run_starts(self.bucket)
        self.size = np.diff(np.append(self.first, len(self.bucket)))
        self.level = np.zeros((len(self.attributes), len(self.first)), dtype=np.int64)


def repair(table: SlicedTable, rules: ValidityRules) -> list[Cover]:
    """Generalize cells until no row violates a rule with certainty.

    Args:
        rules: what must not be published.

    Returns:
        One cover for each quasi-identifier.

    Raises:
        ParameterError: a sensitive value is forbidden with every value of a rule's quasi-identifiers, so that not even
            their whole domains would help; in all other cases a repair exists and is found.
    """
    covers = build_covers(table)
    slots, numbers = rules.violated(table.codes, table.sensitive)
    # All of them are tested in every round: raising one attribute of a cell cuts the rest of the cell anew, and a
    # row that a part had hidden may be published with its original values again.
    while len(still := still_violated(rules, covers, slots, numbers)):
        _raise_cells(table, rules, covers, slots[still], numbers[still])
        covers = build_covers(table)
    return covers


def check_repaired(table: SlicedTable, rules: ValidityRules, covers: Sequence[Cover]) -> None:
    """Check the finished cells.

    Raises:
        RequirementError: a published value misses the value it replaces, a forced column has a combination of fewer
        than
            k rows, or a row still violates a rule.
    """
    if not all(bool(cover.contains(codes).all()) for cover, codes in zip(covers, table.codes, strict=True)):
        raise RequirementError("merging: a generalized value misses its own value; nothing is released")
    for number in table.forced:
        combination = keys_of([table.bucket, *(covers[q].cells.index for q in table.columns[number])]).of_row
        fewest = int(np.bincount(combination).min())
        if fewest < table.k:
            raise RequirementError(
                f"merging: a generalized cell has a part of {fewest} rows, below k := {table.k}; nothing is released"
            )
    left = len(still_violated(rules, covers, *rules.violated(table.codes, table.sensitive)))
    if left:
        raise RequirementError(f"merging: {left} rows still contradict a rule; nothing is released")


def still_violated(rules: ValidityRules, covers: Sequence[Cover], slots: IntArray, numbers: IntArray) -> IntArray:
    """Return the entries of (slot, number of a rule) whose rule the published values satisfy with certainty."""
    violated = [np.empty(0, dtype=np.int64)]
    order = np.argsort(numbers, kind="stable")
    for entries in np.split(order, run_starts(numbers[order])[1:]) if len(order) else ():
        sure = np.ones(len(entries), dtype=bool)
        for q, holds in rules.predicates(int(numbers[entries[0]])).items():
            sure &= covers[q].certain(slots[entries], holds)
        violated.append(entries[sure])
    return np.sort(np.concatenate(violated))


def _raise_cells(
    table: SlicedTable, rules: ValidityRules, covers: Sequence[Cover], slots: IntArray, numbers: IntArray
) -> None:
    """Raise, in each bucket with a violation, one attribute of its first violated rule."""
    order = np.lexsort((numbers, table.bucket[slots]))
    firsts = order[run_starts(table.bucket[slots[order]])]
    firsts = firsts[np.argsort(numbers[firsts], kind="stable")]
    for entries in np.split(firsts, run_starts(numbers[firsts])[1:]):
        buckets = table.bucket[slots[entries]]
        predicates = rules.predicates(int(numbers[entries[0]]))
        options = [_lowest_level(table, covers[q], q, holds, buckets) for q, holds in predicates.items()]
        cost = np.array([option[1] for option in options])
        hopeless = int(np.sum(~np.isfinite(cost.min(axis=0))))
        if hopeless:
            names = listed(table.attributes[q].name for q in predicates)
            raise ParameterError(
                f"merging: a sensitive value of the table is forbidden by rules := with every value of {names}, so no "
                f"generalization makes {hopeless} buckets valid; narrow the rules on {names} or drop them"
            )
        best = np.argmin(cost, axis=0)
        for number, q in enumerate(predicates):
            chosen = best == number
            table.level[q, buckets[chosen]] = options[number][0][chosen]


def _lowest_level(
    table: SlicedTable, present: Cover, q: int, holds: BoolArray, buckets: IntArray
) -> tuple[IntArray, FloatArray]:
    """Lowest level at which the predicate is no longer certain, and the NCP it adds in each bucket (ascending)."""
    attribute, size = table.attributes[q], table.size[buckets]
    slots = ranges(table.first[buckets], size)
    part = np.repeat(np.arange(len(buckets)), size)
    first = np.cumsum(size) - size
    before = np.add.reduceat(present.loss[present.cells.index[slots]], first)
    level = np.zeros(len(buckets), dtype=np.int64)
    cost = np.full(len(buckets), np.inf)
    highest = 2 if attribute.hierarchy is None else 1 + attribute.hierarchy.height
    for candidate in range(1, highest + 1):
        cover = cover_of(attribute, table.codes[q][slots], part, np.full(len(buckets), candidate - 1))
        helps = (level == 0) & (candidate > table.level[q, buckets]) & ~cover.certain(first, holds)
        level[helps] = candidate
        cost[helps] = (cover.loss[cover.cells.index[first]] * size - before)[helps]
    return level, cost


def build_covers(table: SlicedTable) -> list[Cover]:
    """Return the published values of each attribute at the table's present levels."""
    covers: dict[int, Cover] = {}
    for number, column in enumerate(table.columns):
        members = list(column)
        touched = np.any(table.level[members] > 0, axis=0) | (number in table.forced)
        slots = np.flatnonzero(touched[table.bucket])
        raised: BoolArray = np.asarray(table.level[members][:, table.bucket[slots]] > 0)
        rows = CellRows(
            [table.attributes[q] for q in members],
            [table.codes[q][slots] for q in members],
            list(~raised),
            table.bucket[slots],
        )
        part = parts_of_cells(rows, table.k)
        covers |= {q: _cover(table, q, slots, part, raised[i]) for i, q in enumerate(members)}
    return [covers[q] for q in range(len(table.attributes))]


def _cover(table: SlicedTable, q: int, slots: IntArray, part: IntArray, raised: BoolArray) -> Cover:
    """Cover of one attribute: raised cells share one box, the others have their parts."""
    buckets = len(table.first)
    boxed = raised | (part != EXACT)
    part_of_slot = np.full(len(table.bucket), EXACT, dtype=np.int64)
    part_of_slot[slots[boxed]] = np.where(raised, table.bucket[slots], buckets + part)[boxed]
    lift = np.zeros(buckets + int(part.max(initial=EXACT)) + 1, dtype=np.int64)
    lift[:buckets] = np.maximum(table.level[q] - 1, 0)
    return cover_of(table.attributes[q], table.codes[q], part_of_slot, lift)


@dataclass(frozen=True)
class CellRows:
    """Rows of the cells of one column that are to be generalized."""

    attributes: Sequence[Attribute]  # attributes of the column
    codes: Sequence[CodeArray]  # code of each attribute in each row, each of shape (rows,)
    # for each attribute and row whether it counts; attributes that were already generalized for the whole cell do not
    taking_part: Sequence[BoolArray]
    bucket: IntArray  # bucket of each row, shape (rows,)

    def axis(self, i: int) -> IntArray:
        """Leaf or code of each row on attribute i; 0 where it does not take part."""
        leaf = self.attributes[i].leaf_of_code
        place = self.codes[i] if leaf is None else leaf[self.codes[i]]
        return np.where(self.taking_part[i], place, 0).astype(np.int64)

    def line(self, i: int) -> tuple[FloatArray, float]:
        """Places on a number line and its length, for the normalized widths of Mondrian."""
        attribute = self.attributes[i]
        if attribute.kind == "ordered":
            return np.where(self.taking_part[i], attribute.positions[self.codes[i]], 0.0), attribute.span
        return self.axis(i).astype(np.float64), float(width_of(attribute) - 1)


def parts_of_cells(rows: CellRows, k: int) -> IntArray:
    """Cut the rows of each cell; all cells of a column in one pass."""
    part = np.full(len(rows.bucket), EXACT, dtype=np.int64)
    if not len(part):
        return part
    combination = keys_of([rows.bucket, *(rows.axis(i) for i in range(len(rows.attributes)))]).of_row
    left = np.flatnonzero(np.bincount(combination)[combination] < k)
    if len(left):
        lines, spans = zip(*(rows.line(i) for i in range(len(rows.attributes))), strict=True)
        part[left] = median_parts(rows.bucket[left], [line[left] for line in lines], spans, k)
        _absorb(rows, k, combination, part)
    return part


def _absorb(rows: CellRows, k: int, combination: IntArray, part: IntArray) -> None:
    """Let each part of fewer than k rows take in the frequent combination that costs least; changes `part`."""
    members = np.flatnonzero(part != EXACT)
    members = members[np.argsort(part[members], kind="stable")]
    offsets = offsets_of(part[members], int(part.max()) + 1)
    small = np.flatnonzero(np.diff(offsets) < k)
    bucket = rows.bucket[members[offsets[small]]]  # a small part is all that is left of its bucket
    exact = np.flatnonzero(part == EXACT)
    first = exact[np.unique(combination[exact], return_index=True)[1]]
    first = first[np.argsort(rows.bucket[first], kind="stable")]
    low = np.searchsorted(rows.bucket[first], bucket, side="left")
    count = np.searchsorted(rows.bucket[first], bucket, side="right") - low
    pair_part, pair_row = np.repeat(small, count), first[ranges(low, count)]
    if not len(pair_row):
        return
    sizes = np.diff(offsets)[pair_part]
    joined = np.concatenate([members[ranges(offsets[pair_part], sizes)], pair_row])
    pair = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.arange(len(sizes))])
    cost = np.zeros(len(sizes))
    for attribute, codes, taking_part in zip(rows.attributes, rows.codes, rows.taking_part, strict=True):
        loss = box_loss(replace(attribute, codes=codes[joined]), pair).ncp
        cost += np.where(taking_part[pair_row], loss, 0.0)
    order = np.lexsort((combination[pair_row], cost, pair_part))
    best = order[run_starts(pair_part[order])]
    new_part = np.full(int(combination.max()) + 1, EXACT, dtype=np.int64)
    new_part[combination[pair_row[best]]] = pair_part[best]
    part[exact] = new_part[combination[exact]]


def median_parts(set_of_item: IntArray, axes: Sequence[FloatArray], spans: Sequence[float], k: int) -> IntArray:
    """Cut every set into parts of at least k items by strict Mondrian (LeFevre, DeWitt and Ramakrishnan 2006).

    There can be a hundred thousand sets of a few items, so all are cut at once, level by level: each round takes in
    every part the lower median of the widest attribute whose cut leaves k items on both sides.
    """
    part = compact(set_of_item)
    active = np.ones(len(part), dtype=bool)
    while axes and active.any():
        items = np.flatnonzero(active)
        group = compact(part[items])
        cut, goes_left = _widest_cut(group, [axis[items] for axis in axes], spans, k)
        split = cut[group]
        part[items[split & ~goes_left]] += len(part)  # unused numbers: parts stay below len(part)
        part = compact(part)
        active[items[~split]] = False
    return part


def _widest_cut(
    group: IntArray, axes: Sequence[FloatArray], spans: Sequence[float], k: int
) -> tuple[BoolArray, BoolArray]:
    """For each group whether some cut is allowed, and for each item whether it goes left in the widest one."""
    best = np.full(int(group.max()) + 1, -1.0)
    goes_left = np.zeros(len(group), dtype=bool)
    for axis, span in zip(axes, spans, strict=True):
        order = np.lexsort((axis, group))
        value, owner = axis[order], group[order]
        first = run_starts(owner)
        size = np.diff(np.append(first, len(owner)))
        median = value[first + (size - 1) // 2]
        left = value <= median[owner]
        on_left = np.add.reduceat(left.astype(np.int64), first)
        width = (value[first + size - 1] - value[first]) / (span or 1.0)
        better = (on_left >= k) & (size - on_left >= k) & (width > best)
        best[better] = width[better]
        chosen = better[owner]
        goes_left[order[chosen]] = left[chosen]
    return best >= 0, goes_left
