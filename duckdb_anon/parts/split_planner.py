"""Cutting a table into parts that are small enough, from counts; the cuts are a tree, and the tree is SQL.

Every part that is too large is cut where the method itself would cut such a group: level by level, one GROUP BY over
GROUPING SETS for the rows of each value, with the sensitive values where the requirement reads them, or a sample of the
rows for cuts by squared error. A cut whose sides fail the method's requirement gives way to the next best, judged from
the same counts; only sides of persons with several rows, of samples, and of very many sensitive values are queried.
So what the method then does with a part is what it would have done with it as a group of the full table: with cuts by
loss and strict medians, classes are the same as without parts. Rows have codes, columns `_anon_c0`, `_anon_c1`, ...; a
tree needs no table of parts: it is a nested CASE over codes, which DuckDB and Spark evaluate while they count.

Cost: one pass over the codes a level (two more a try where sides are queried), and as many levels as rows / part_rows
has bits, more or less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.input_sql import NUMBER
from duckdb_anon.kernels.partition.equivalence_classes import Groups, SensitiveCells
from duckdb_anon.kernels.partition.privacy_models import require_table
from duckdb_anon.kernels.partition.split_from_counts import (
    Cut,
    GroupCounts,
    by_counts,
    cuts_at_median,
    cuts_by_error,
    cuts_by_loss,
)
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.function_specs import Cutting
from duckdb_anon.model.progress import tick

CODE = "_anon_c"
"""Columns of codes are called so, with the number of the attribute."""


@dataclass
class CutPart:
    """A group of rows: a part, or the parts it was cut into."""

    number: int  # unique in the tree
    rows: int  # rows (persons, where parts are of persons)
    cut: Cut | None = None  # how it was cut, None for a part
    children: list[CutPart] = field(default_factory=list)  # the parts of the cut
    settled: bool = False  # whether no cut is left to try

    def leaves(self) -> Iterator[CutPart]:
        """Parts that are not cut."""
        if self.cut is None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def sql(self) -> str:
        """SQL of the number of the part a row belongs to.

        >>> root = CutPart(0, 10, Cut(1, np.array([0, 0, 1, 0]), 2), [CutPart(1, 6), CutPart(2, 4)])
        >>> root.sql()
        'case when _anon_c1 <= 1 or _anon_c1 = 3 then 1 else 2 end'
        """
        if self.cut is None:
            return str(self.number)
        *first, last = self.children
        cases = "".join(f" when {_holds(self.cut, index)} then {child.sql()}" for index, child in enumerate(first))
        return f"case{cases} else {last.sql()} end"


def _holds(cut: Cut, index: int) -> str:
    """Condition that a row goes to one part of a cut."""
    column = f"{CODE}{cut.attribute}"
    runs = _runs(np.flatnonzero(cut.part == index))
    last = len(cut.part) - 1
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
    return " or ".join(parts) or "false"


def _runs(codes: IntArray) -> list[tuple[int, int]]:
    if len(codes) == 0:
        return []
    ends = np.flatnonzero(np.diff(codes) > 1)
    return list(zip(codes[np.r_[0, ends + 1]].tolist(), codes[np.r_[ends, len(codes) - 1]].tolist(), strict=True))


@dataclass(frozen=True)
class Cells:
    """A part by its values."""

    code: tuple[IntArray, ...]  # of each attribute, the code of each cell
    # of each attribute, the sensitive code of each cell; all 0 where no requirement reads any
    sensitive: tuple[IntArray, ...]
    rows: tuple[IntArray, ...]  # of each attribute, the rows of each cell

    def counts(self) -> GroupCounts:
        """Rows of each value of each attribute.

        >>> Cells((np.array([4, 0, 4]),), (np.array([0, 0, 1]),), (np.array([5, 2, 3]),)).counts().rows[0].tolist()
        [2, 8]
        """
        codes, rows = [], []
        for code, many in zip(self.code, self.rows, strict=True):
            values, index = np.unique(code, return_inverse=True)
            codes.append(values)
            rows.append(summed(index, many, len(values)))
        return GroupCounts(tuple(codes), tuple(rows))

    def sides(self, cut: Cut) -> tuple[IntArray, IntArray, IntArray]:
        """Side, sensitive code and rows of the cells the cut makes, rows of one side and code not yet added up."""
        k = cut.attribute
        return cut.part[self.code[k]], self.sensitive[k], self.rows[k]


def summed(index: IntArray, rows: IntArray, size: int) -> IntArray:
    """Rows of each place; whole numbers throughout, for floating sums of many rows are not exact."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, rows)
    return total


def sensitive_codes(combinations: CodeArray, codes: IntArray, columns: list[IntArray]) -> IntArray:
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


PERSON = "_anon_person"
SAMPLE = 4000
_MOST_CELLS = 4_000_000
# A row is in the sample by its number: a multiple of it is spread evenly over the numbers below a prime.
_SPREAD, _PRIME = 7919, 1_000_003


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
    counted: str = "count(*)"  # SQL of the rows that rows of the relation stand for


@dataclass(frozen=True)
class _SideCells:
    """Parts by their sensitive values; a cell may come twice."""

    number: IntArray  # of the part of each cell
    code: IntArray  # sensitive code of each cell
    rows_of: IntArray  # rows of each cell

    def rows(self) -> Iterator[tuple[int, int]]:
        """Rows of each part."""
        numbers, index = np.unique(self.number, return_inverse=True)
        yield from zip(numbers.tolist(), summed(index, self.rows_of, len(numbers)).tolist(), strict=True)


@dataclass
class _Planner:
    coded: CodedPart
    cutting: Cutting
    limit: int
    root: CutPart
    numbers: int = 1
    waiting: dict[int, Iterator[Cut]] = field(default_factory=dict)
    cells: dict[int, Cells] = field(default_factory=dict)

    def run(self) -> None:
        """Cut until every part is small enough or cannot be cut."""
        while large := [p for p in self.root.leaves() if p.rows > self.limit and not p.settled]:
            tick()
            self.waiting = {part.number: self._cuts(part, found) for part, found in self._counted(large)}
            while large:
                tick()
                large = self._next_cuts(large)

    def _next_cuts(self, parts: Sequence[CutPart]) -> list[CutPart]:
        """Try the next cut of each part; return those whose sides fail the requirement."""
        for part in parts:
            cut = next(self.waiting[part.number], None)
            part.settled = cut is None
            if cut is not None:
                part.cut = cut
                part.children = [CutPart(self.numbers + k, 0) for k in range(cut.parts)]
                self.numbers += cut.parts
        tried = [part for part in parts if part.cut is not None]
        if not tried:
            return []
        allowed = self._allowed(tried)
        failed = []
        for part in tried:
            there = [child for child in part.children if child.rows]
            if len(there) > 1 and all(child.number in allowed for child in there):
                continue
            part.cut, part.children = None, []
            failed.append(part)
        return failed

    def _allowed(self, tried: Sequence[CutPart]) -> set[int]:
        """Numbers of the sides of cuts that satisfy the requirement; sets their rows."""
        sides = {child.number: child for part in tried for child in part.children}
        cells = self._cells_of_sides(tried) if self.cells else None
        for number, rows in cells.rows() if cells is not None else self._grouped(sides, ()):
            sides[number].rows = rows
        enough = {number: side for number, side in sides.items() if side.rows >= self.cutting.requirement.min_size}
        if not enough:
            return set()
        sizes = {number: side.rows for number, side in enough.items()}
        if self.coded.persons:
            sizes = dict(self._grouped(enough, (), f"count(distinct {PERSON})"))
        holds = self.cutting.requirement.holds(self._groups(sizes, cells))
        return {number for number, good in zip(sorted(sizes), holds, strict=True) if good}

    def _cells_of_sides(self, tried: Sequence[CutPart]) -> _SideCells:
        """The sides of cuts by the cells of their parts."""
        found = []
        for part in tried:
            side, code, rows = self.cells[part.number].sides(cast(Cut, part.cut))
            found.append((np.array([child.number for child in part.children])[side], code, rows))
        number, code, rows = (np.concatenate(column) for column in zip(*found, strict=True))
        return _SideCells(number, code, rows)

    def _groups(self, sizes: Mapping[int, int], cells: _SideCells | None) -> Groups:
        """Parts of known sizes as the requirement sees them, in the order of their numbers."""
        many = self._released(np.array([sizes[number] for number in sorted(sizes)], dtype=np.int64))
        nothing = np.zeros(0, dtype=np.int64)
        by_rows = {"person": self._largest_persons(sizes)} if self.coded.persons else {}
        if not self.cutting.requirement.needs_sensitive:
            return Groups.of_cells(SensitiveCells(nothing, nothing, nothing, nothing), nothing, many, by_rows)
        if self.coded.persons:
            of_rows = self._cells(sizes, self._queried(sizes))
            by_rows["value"] = Groups.of_cells(of_rows, nothing, by_rows["person"].sizes)
        if cells is None:
            cells = self._queried(sizes, f"count(distinct {PERSON})" if self.coded.persons else "")
        table = np.bincount(self.cutting.codes, weights=self.coded.combination_counts).astype(np.int64)
        return Groups.of_cells(self._cells(sizes, cells), table, many, by_rows)

    def _largest_persons(self, parts: Iterable[int]) -> Groups:
        """The parts by rows, with the rows of the person who has most."""
        inner = (
            f"select _anon_part, count(*) as n from {self._placed()} where _anon_part in ({_listed(parts)}) "
            f"group by _anon_part, {PERSON}"
        )
        found = self.coded.ask(
            "select _anon_part, cast(max(n) as bigint) as most, cast(sum(n) as bigint) as n "
            f"from ({inner}) as counted group by _anon_part order by _anon_part"
        )
        _, most, rows = (_array(column) for column in found.columns)
        side = np.arange(len(most))
        cells = SensitiveCells(side, np.zeros_like(side), most, np.arange(len(most) + 1))
        return Groups.of_cells(cells, np.zeros(0, dtype=np.int64), rows)

    def _cells(self, parts: Iterable[int], cells: _SideCells) -> SensitiveCells:
        """Sensitive values of each part, in the order of their numbers."""
        numbers = np.array(sorted(parts), dtype=np.int64)
        wanted = np.isin(cells.number, numbers)
        index, code, rows = np.searchsorted(numbers, cells.number[wanted]), cells.code[wanted], cells.rows_of[wanted]
        keys = keys_of([index, code])
        counts = self._released(summed(keys.of_row, rows, keys.number))
        index, code = index[keys.first], code[keys.first]
        return SensitiveCells(index, code, counts, np.searchsorted(index, np.arange(len(numbers) + 1)).astype(np.int64))

    def _queried(self, parts: Iterable[int], what: str = "") -> _SideCells:
        """The sensitive values of parts with what is counted of them, by a query."""
        found = list(self._grouped(parts, self._sensitive_columns(), what))
        number, *values, rows = (np.array(column, dtype=np.int64) for column in zip(*found, strict=True))
        return _SideCells(number, sensitive_codes(self.coded.combinations, self.cutting.codes, values), rows)

    def _sensitive_columns(self) -> list[str]:
        return [f"{CODE}{len(self.coded.qi) + k}" for k in range(len(self.coded.sensitive))]

    def _released(self, counts: IntArray) -> IntArray:
        """The least of these rows that are likely to be released, where a sample is."""
        if self.cutting.share == 1:
            return counts
        share = self.cutting.share
        least = np.floor(counts * share - 3 * np.sqrt(counts * share * (1 - share)))
        return np.asarray(np.maximum(1, least), dtype=np.int64)

    def _grouped(self, parts: Iterable[int], columns: Sequence[str], what: str = "") -> Iterator[Any]:
        """Rows (part, values of some columns, number) of what is counted."""
        named = "".join(f", {column}" for column in columns)
        sql = (
            f"select _anon_part{named}, {what or self.coded.counted} as _anon_n from {self._placed()} "
            f"where _anon_part in ({_listed(parts)}) group by _anon_part{named}"
        )
        found = self.coded.ask(sql)
        yield from zip(*(column.to_pylist() for column in found.columns), strict=True)

    def _placed(self) -> str:
        return f"(select *, {self.root.sql()} as _anon_part from {self.coded.relation}) as _anon_placed"

    def _counted(self, parts: Sequence[CutPart]) -> list[tuple[CutPart, Any]]:
        """Of each part the rows of every value, or a sample of its rows."""
        self.cells = {}
        if self.cutting.by == "sse":
            return self._sampled(parts)
        names = [f"{CODE}{k}" for k in range(len(self.coded.qi))]
        reads = self.cutting.requirement.needs_sensitive
        most = sum(attribute.size for attribute in self.coded.qi) * len(self.coded.combinations)  # cells of a part
        few = not reads or len(parts) * most <= _MOST_CELLS
        sensitive = self._sensitive_columns() if reads and few and not self.coded.persons else []
        with_them = "".join(f", {column}" for column in sensitive)
        sets = ", ".join(f"(_anon_part, {name}{with_them})" for name in names)
        found = self.coded.ask(
            f"select _anon_part, {', '.join(names)}{with_them}, {self.coded.counted} as _anon_n from {self._placed()} "
            f"where _anon_part in ({_listed(p.number for p in parts)}) group by grouping sets ({sets})"
        )
        number, *codes, rows = (_array(column) for column in found.columns)
        code_of_row = np.zeros(len(rows), dtype=np.int64)
        if sensitive:
            code_of_row = sensitive_codes(self.coded.combinations, self.cutting.codes, codes[len(names) :])
        counted = []
        for part in parts:
            used = [np.flatnonzero((number == part.number) & (code >= 0)) for code in codes[: len(names)]]
            cells = Cells(
                tuple(code[mine] for code, mine in zip(codes, used, strict=False)),
                tuple(code_of_row[mine] for mine in used), tuple(rows[mine] for mine in used),
            )  # fmt: skip
            if few and not self.coded.persons:
                self.cells[part.number] = cells
            counted.append((part, cells.counts()))
        return counted

    def _sampled(self, parts: Sequence[CutPart]) -> list[tuple[CutPart, Any]]:
        names = ", ".join(f"{CODE}{k}" for k in range(len(self.coded.qi)))
        share = {p.number: max(1, round(min(1.0, SAMPLE / p.rows) * _PRIME)) for p in parts}
        spread = f"({NUMBER} * {_SPREAD}) % {_PRIME}"
        chosen = " or ".join(f"_anon_part = {n} and {spread} < {most}" for n, most in share.items())
        found = self.coded.ask(f"select _anon_part, {names} from {self._placed()} where {chosen} order by {NUMBER}")
        number, *codes = (_array(column) for column in found.columns)
        rows = np.stack(codes, axis=1).astype(np.int32)
        return [(part, rows[number == part.number]) for part in parts]

    def _cuts(self, part: CutPart, found: Any) -> Iterator[Cut]:
        least = self.cutting.requirement.min_size
        if self.cutting.by == "sse":
            return cuts_by_error(self.coded.qi, part.rows, found, least) if len(found) > 1 else iter(())
        if self.cutting.by == "loss":
            return cuts_by_loss(self.coded.qi, found, least)
        return cuts_at_median(self.coded.qi, found, self.cutting.width)


def parts_of(function: str, coded: CodedPart, cutting: Cutting, part_rows: int) -> CutPart:
    """Cut a table into parts; the root of their tree. A table that fails what every part must satisfy is refused."""
    requirement = cutting.requirement
    root = CutPart(0, coded.rows)
    limit = max(part_rows, by_counts(requirement.min_size) if cutting.by == "loss" else 1)
    planner = _Planner(coded, cutting, min(limit, cutting.most or limit), root)
    sizes = {0: coded.rows}
    if coded.persons:
        sizes = dict(planner._grouped((0,), (), f"count(distinct {PERSON})"))
    require_table(function, requirement, planner._groups(sizes, None))
    planner.run()
    return root


def _listed(numbers: Any) -> str:
    return ", ".join(str(number) for number in sorted(numbers))


def _array(column: pa.ChunkedArray) -> IntArray:
    """Whole numbers of a column, -1 for NULL."""
    filled = column.cast(pa.int64()).combine_chunks().fill_null(-1)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)
