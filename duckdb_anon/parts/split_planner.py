"""Cutting a table into parts that are small enough, on a sample of its rows; the cuts are a tree, and the tree is SQL.

Every part of the sample that stands for too many rows is cut in two near the middle of an attribute; a cut that leaves
a part which fails the method's requirement gives way to the next best. Then the parts of the table are counted once,
and the rows of a part that fails the requirement go to its sibling. A table of at most `SAMPLE` rows is its own sample.
Rows have codes, columns `_anon_c0`, `_anon_c1`, ...; a tree needs no table of parts: it is a nested CASE over codes,
which DuckDB and Spark evaluate while they count.

Cost: two passes over the codes, and one for each time that parts are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.input_sql import NUMBER
from duckdb_anon.kernels.partition.equivalence_classes import Groups, SensitiveCells
from duckdb_anon.kernels.partition.privacy_models import require_table
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import Attribute, BoolArray, CodeArray, IntArray
from duckdb_anon.model.function_specs import Cutting
from duckdb_anon.model.progress import tick

CODE = "_anon_c"
"""Columns of codes are called so, with the number of the attribute."""
PERSON = "_anon_person"
SAMPLE = 400_000
"""Rows that are cut in memory."""
# A row is in the sample by its number: a multiple of it is spread evenly over the numbers below a prime.
_SPREAD, _PRIME = 7919, 1_000_003


@dataclass(frozen=True)
class Cut:
    """A cut in two by one attribute."""

    attribute: int  # which one
    left: BoolArray  # whether rows with a code go to the first part, shape (domain,)


@dataclass
class CutPart:
    """A group of rows: a part, or the two parts it was cut into."""

    number: int  # unique in the tree
    cut: Cut | None = None  # how it was cut, None for a part
    children: list[CutPart] = field(default_factory=list)  # the parts of the cut

    def leaves(self) -> Iterator[CutPart]:
        """Parts that are not cut."""
        if self.cut is None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def join(self, failing: set[int]) -> None:
        """Let the rows of each of these parts go to its sibling."""
        for child in self.children:
            child.join(failing)
        stay = [child for child in self.children if child.cut is not None or child.number not in failing]
        if len(stay) < len(self.children):
            kept = stay[0] if stay else CutPart(self.number)
            self.number, self.cut, self.children = kept.number, kept.cut, kept.children

    def sql(self) -> str:
        """SQL of the number of the part a row belongs to.

        >>> root = CutPart(0, Cut(1, np.array([True, True, False, True])), [CutPart(1), CutPart(2)])
        >>> root.sql()
        'case when _anon_c1 <= 1 or _anon_c1 = 3 then 1 else 2 end'
        """
        if self.cut is None:
            return str(self.number)
        left, right = self.children
        return f"case when {_on_left(self.cut)} then {left.sql()} else {right.sql()} end"


def cuts(qi: Sequence[Attribute], codes: CodeArray) -> list[Cut]:
    """Cuts of some rows by each attribute, near the middle and then near the quarters, those first that narrow most.

    Ordered values are cut in their order, hierarchies between the children of a node, nominal values into the frequent
    ones and the rest. `codes`: shape (rows, attributes).

    >>> age = Attribute('age', 'ordered', np.array([0, 1, 2]), np.array([0.0, 1.0, 9.0]), 3, -1, np.arange(3))
    >>> [cut.left.tolist() for cut in cuts([age], np.array([[0], [1], [2], [2]]))]
    [[True, True, False], [True, False, False]]
    """
    found: dict[tuple[int, int], tuple[bool, float, Cut]] = {}
    for j, attribute in enumerate(qi):
        rows = np.bincount(codes[:, j], minlength=attribute.domain)
        order = np.argsort(-rows, kind="stable") if attribute.kind == "nominal" else attribute.left_to_right
        place = attribute.positions[order] if attribute.kind == "ordered" else np.arange(len(order), dtype=np.float64)
        here = np.flatnonzero(rows[order])
        if len(here) < 2:
            continue
        total, ends = np.cumsum(rows[order][here]), place[here]
        between = _boundaries(attribute, order[here])
        for share in (0.5, 0.25, 0.75):
            # the boundary nearest to that share of the rows, and the width of the parts on this attribute
            at = int(between[np.abs(total[between] - share * total[-1]).argmin()])
            width = total[at] * (ends[at] - ends[0]) + (total[-1] - total[at]) * (ends[-1] - ends[at + 1])
            left = np.zeros(attribute.domain, dtype=bool)
            left[order[: here[at] + 1]] = True
            saved = (total[-1] * (ends[-1] - ends[0]) - width) / (place[-1] - place[0] or 1.0)
            found.setdefault((j, at), (share != 0.5, -saved, Cut(j, left)))
    return [cut for _, _, cut in sorted(found.values(), key=lambda each: each[:2])]


def _boundaries(attribute: Attribute, codes: IntArray) -> IntArray:
    """After which of some codes an attribute may be cut; in a hierarchy, between the nodes nearest to the root."""
    if attribute.hierarchy is not None:
        for ancestor in attribute.hierarchy.ancestors:
            apart = np.flatnonzero(np.diff(ancestor[attribute.place_of_code[codes]]))
            if len(apart):
                return apart
    return np.arange(len(codes) - 1)


def _on_left(cut: Cut) -> str:
    """Condition that a row goes to the first part of a cut."""
    column = f"{CODE}{cut.attribute}"
    runs = _runs(np.flatnonzero(cut.left))
    last = len(cut.left) - 1
    parts = []
    for low, high in runs:
        if low == high:
            parts.append(f"{column} = {low}")
        elif low == 0:
            parts.append(f"{column} <= {high}")
        elif high == last:
            parts.append(f"{column} >= {low}")
        else:
            parts.append(f"{column} between {low} and {high}")
    return " or ".join(parts)


def _runs(codes: IntArray) -> list[tuple[int, int]]:
    ends = np.flatnonzero(np.diff(codes) > 1)
    return list(zip(codes[np.r_[0, ends + 1]].tolist(), codes[np.r_[ends, len(codes) - 1]].tolist(), strict=True))


def sensitive_codes(combinations: CodeArray, codes: IntArray, columns: Sequence[IntArray]) -> IntArray:
    """Code a requirement reads for each row of some combinations of sensitive values.

    Args:
        combinations: every combination that occurs, shape (combinations, sensitive columns).
        codes: its code.
        columns: sensitive columns of the rows; each row is one of the combinations.

    >>> sensitive_codes(np.array([[0, 1], [2, 0]]), np.array([7, 9]), [np.array([2, 0, 2]), np.array([0, 1, 0])])
    array([9, 7, 9])
    """
    every = keys_of([np.r_[combinations[:, k].astype(np.int64), column] for k, column in enumerate(columns)])
    code_of = np.full(every.number, -1, dtype=np.int64)
    code_of[every.of_row[: len(combinations)]] = codes
    return np.asarray(code_of[every.of_row[len(combinations) :]], dtype=np.int64)


@dataclass(frozen=True)
class CodedPart:
    """A relation of codes, counted by DuckDB or Spark."""

    ask: Callable[[str], pa.Table]  # answers a query in DuckDB's dialect
    relation: str  # what stands after FROM; columns `_anon_rn`, codes, and `_anon_person` where persons are counted
    rows: int  # its rows
    qi: tuple[Attribute, ...]  # attributes of the columns `_anon_c0` ...
    sensitive: tuple[Attribute, ...]  # attributes of the columns after those
    combinations: CodeArray  # codes of each combination of sensitive values there is, shape (combinations, sensitive)
    combination_counts: IntArray  # rows (persons) of the table that have it
    persons: bool = False  # whether persons are counted, not rows


@dataclass
class _Planner:
    coded: CodedPart
    cutting: Cutting
    limit: int
    table_counts: IntArray  # rows (persons) of the table with each sensitive code that the requirement reads

    @staticmethod
    def of(coded: CodedPart, cutting: Cutting, limit: int) -> _Planner:
        nothing = np.zeros(0, dtype=np.int64)
        reads = cutting.requirement.needs_sensitive
        counts = np.bincount(cutting.codes, coded.combination_counts).astype(np.int64) if reads else nothing
        return _Planner(coded, cutting, limit, counts)

    def cut(self, root: CutPart) -> None:
        """Cut the sample until every part of it stands for few enough rows, or cannot be cut."""
        codes, sensitive, person = self._sample()
        share = len(codes) / self.coded.rows
        # of a sample, most rows that three standard errors more would let stand for too many
        most = self.limit if share == 1 else max(1, int(self.limit * share - 3 * np.sqrt(self.limit * share)))
        waiting, number = [(root, np.arange(len(codes)))], 0
        while waiting:
            tick()
            part, mine = waiting.pop()
            for cut in cuts(self.coded.qi, codes[mine]) if len(mine) > most else ():
                side = np.where(cut.left[codes[mine, cut.attribute]], 0, 1)
                of_side = [None if values is None else values[mine] for values in (sensitive, person)]
                if not self.cutting.requirement.holds(Groups(side, of_side[0], self.table_counts, of_side[1])).all():
                    continue
                part.cut, part.children = cut, [CutPart(number + 1), CutPart(number + 2)]
                number += 2
                waiting += [(child, mine[side == k]) for k, child in enumerate(part.children)]
                break

    def _sample(self) -> tuple[CodeArray, IntArray | None, IntArray | None]:
        """Codes, sensitive codes and persons of the sample's rows."""
        q, every = len(self.coded.qi), self.coded.rows <= SAMPLE
        sensitive = self._sensitive_columns() if self.cutting.requirement.needs_sensitive else []
        names = [f"{CODE}{k}" for k in range(q)] + sensitive
        spread = f"({NUMBER} * {_SPREAD}) % {_PRIME} < {round(SAMPLE / self.coded.rows * _PRIME)}"
        person = [PERSON] if self.coded.persons else []
        found = self.coded.ask(
            f"select {', '.join([*names, *person])} from {self.coded.relation} {'' if every else f'where {spread}'} "
            f"order by {NUMBER}"
        )
        columns = [_array(column) for column in found.columns[: len(names)]]
        code = sensitive_codes(self.coded.combinations, self.cutting.codes, columns[q:]) if sensitive else None
        of_person = found.column(PERSON).combine_chunks().dictionary_encode().indices if person else None
        codes = np.stack(columns[:q], axis=1).astype(np.int32)
        return codes, code, None if of_person is None else _array(pa.chunked_array([of_person]))

    def failing(self, root: CutPart) -> set[int]:
        """Numbers of the parts of the table that fail the requirement."""
        placed = f"(select *, {root.sql()} as _anon_part from {self.coded.relation}) as _anon_placed"
        number, sizes = self._counted(placed, (), self._unit)
        holds = self.cutting.requirement.holds(self._groups(placed, number, sizes))
        return {part.number for part in root.leaves()} - set(number[holds].tolist())

    @property
    def _unit(self) -> str:
        return f"count(distinct {PERSON})" if self.coded.persons else "count(*)"

    def _groups(self, placed: str, number: IntArray, sizes: IntArray) -> Groups:
        """Parts as the requirement sees them, in the order of their numbers."""
        nothing, many = np.zeros(0, dtype=np.int64), self._released(sizes)
        by_rows = {"person": self._largest_persons(placed)} if self.coded.persons else {}
        if not self.cutting.requirement.needs_sensitive:
            return Groups.of_cells(SensitiveCells(nothing, nothing, nothing, nothing), nothing, many, by_rows)
        if self.coded.persons:
            of_rows = self._cells(placed, number, "count(*)")
            by_rows["value"] = Groups.of_cells(of_rows, nothing, by_rows["person"].sizes)
        return Groups.of_cells(self._cells(placed, number, self._unit), self.table_counts, many, by_rows)

    def _largest_persons(self, placed: str) -> Groups:
        """The parts by rows, with the rows of the person who has most."""
        inner = f"select _anon_part, count(*) as n from {placed} group by _anon_part, {PERSON}"
        found = self.coded.ask(
            "select _anon_part, cast(max(n) as bigint) as most, cast(sum(n) as bigint) as n "
            f"from ({inner}) as counted group by _anon_part order by _anon_part"
        )
        _, most, rows = (_array(column) for column in found.columns)
        side = np.arange(len(most))
        cells = SensitiveCells(side, np.zeros_like(side), most, np.arange(len(most) + 1))
        return Groups.of_cells(cells, np.zeros(0, dtype=np.int64), rows)

    def _cells(self, placed: str, numbers: IntArray, unit: str) -> SensitiveCells:
        """Sensitive values of each part, in the order of their numbers."""
        number, *values, rows = self._counted(placed, self._sensitive_columns(), unit)
        code = sensitive_codes(self.coded.combinations, self.cutting.codes, values)
        keys = keys_of([number, code])  # several combinations may have one code
        total = np.zeros(keys.number, dtype=np.int64)
        np.add.at(total, keys.of_row, rows)
        index, code = np.searchsorted(numbers, number[keys.first]), code[keys.first]
        offsets = np.searchsorted(index, np.arange(len(numbers) + 1)).astype(np.int64)
        return SensitiveCells(index, code, self._released(total), offsets)

    def _sensitive_columns(self) -> list[str]:
        return [f"{CODE}{len(self.coded.qi) + k}" for k in range(len(self.coded.sensitive))]

    def _released(self, counts: IntArray) -> IntArray:
        """The least of these rows that are likely to be released, where a sample is."""
        if self.cutting.share == 1:
            return counts
        share = self.cutting.share
        least = np.floor(counts * share - 3 * np.sqrt(counts * share * (1 - share)))
        return np.asarray(np.maximum(1, least), dtype=np.int64)

    def _counted(self, placed: str, columns: Sequence[str], unit: str) -> list[IntArray]:
        """Columns (part, values of some columns, number) of what is counted, by part."""
        keys = ", ".join(["_anon_part", *columns])
        sql = f"select {keys}, {unit} as _anon_n from {placed} group by {keys} order by {keys}"
        return [_array(column) for column in self.coded.ask(sql).columns]


def parts_of(function: str, coded: CodedPart, cutting: Cutting, part_rows: int) -> CutPart:
    """Cut a table into parts; the root of their tree. A table that fails what every part must satisfy is refused."""
    requirement = cutting.requirement
    root = CutPart(0)
    planner = _Planner.of(coded, cutting, min(part_rows, cutting.most or part_rows))
    placed = f"(select *, 0 as _anon_part from {coded.relation}) as _anon_placed"
    require_table(function, requirement, planner._groups(placed, *planner._counted(placed, (), planner._unit)))
    planner.cut(root)
    while root.cut is not None and (failing := planner.failing(root)):
        tick()
        root.join(failing)
    return root


def _array(column: Any) -> IntArray:
    """Whole numbers of a column, -1 for NULL."""
    filled = column.cast(pa.int64()).combine_chunks().fill_null(-1)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)
