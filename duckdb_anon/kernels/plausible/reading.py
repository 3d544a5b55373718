"""A release as evidence on the rows of its original, and draws as values.

Each column of the release that shows no exact value of its row becomes a `Source`: the column as the model sees it, and
how its atoms become values. Values of exact columns are evidence alone: draws have the release's own.
Cost: linear in rows, but for the bins of cells, see `columns`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.cell_shares import Lists, Ranges, learn_shares, member_weights
from duckdb_anon.kernels.partition.sort_count import offsets_of, order_by
from duckdb_anon.kernels.plausible.augmentation import Evidence
from duckdb_anon.kernels.plausible.columns import Column, Noisy
from duckdb_anon.kernels.row_keys import keys_of, keys_of_lists
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.learnt import OF_NULL, OF_RARE_NULL
from duckdb_anon.model.number_scale import Numbers
from duckdb_anon.model.release_table import ReadColumn, ReadTable


@dataclass(frozen=True)
class Line:
    """What the atoms of a column stand for.

    Attributes:
        codes: code (of a hierarchy: leaf) of each atom, -1 where it is a segment of numbers.
        low, high: first and last number of each segment on the attribute's scale.
    """

    codes: CodeArray
    low: Numbers | None = None
    high: Numbers | None = None

    def numbers(self, atoms: IntArray, random: FloatArray) -> Numbers:
        """Numbers in the segments of atoms, even in each.

        `random`: a number in [0, 1) for each.
        """
        low, high = _array(self.low)[atoms], _array(self.high)[atoms]
        if low.dtype == np.float64:
            measured: Numbers = np.clip(low * (1 - random) + high * random, low, high)
            return measured
        width = high.astype(np.float64) - low.astype(np.float64) + 1
        counted: Numbers = np.minimum(low + np.floor(random * width).astype(np.int64), high)
        return counted


@dataclass(frozen=True)
class Source:
    """A column of a release: how the model sees it, and what its atoms stand for; `exact` ones are not drawn."""

    name: str
    column: Column
    line: Line
    exact: bool


@dataclass(frozen=True)
class Release:
    """A release as the model sees it.

    Attributes:
        sources: its columns.
        evidence: what it says of the rows.
        rows: the released row that each of the original's rows has its exact values from.
    """

    sources: tuple[Source, ...]
    evidence: Evidence
    rows: IntArray


_NULL = 2**31 - 1
"""Code of NULL where no row of the release shows it alone."""


def read_release(function: str, table: ReadTable, sensitive: Collection[str], rng: np.random.Generator) -> Release:
    """Read a release as evidence.

    `rng`: draws the rows that stand for several, and the first arrangement of buckets.

    Raises:
        ColumnError: it holds noisy counts, or a column that cannot be drawn.
    """
    if table.counted:
        raise ColumnError(
            f"{function}: the release holds noisy counts, of which no rows can be drawn. Query it with estimate"
        )
    lists = [c for n, c in table.columns.items() if table.contents.columns[fold(n)].cell == "nodes"]
    rows, item, first = _records(function, table, lists, rng)
    sources, blocks = [], []
    numbered: dict[str, int] = {}
    classes = None if lists else _classes(table)
    for name, column in table.columns.items():
        block = column.slice or (f"counts of {name}" if column.counted else "")
        blocks.append(numbered.setdefault(block, len(numbered) + 1) if block else 0)
        source = _source(function, name, column, table, None if block else classes, rng)
        sources.append(replace(source, column=source.column.of_rows(item if column in lists else rows)))
    named = {fold(name) for name in sensitive}
    evidence = Evidence(
        tuple(source.column for source in sources),
        tuple(fold(source.name) in named for source in sources),
        table.buckets()[rows] if numbered else None,
        tuple(blocks),
        first,
        tuple(column not in lists for column in table.columns.values()),
    )
    return Release(tuple(sources), evidence, rows)


def _records(
    function: str, table: ReadTable, lists: Sequence[ReadColumn], rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray | None]:
    """Released row and item of the lists of each of the original's rows, and the first row of the same person."""
    weight = table.row_weights()
    people = np.arange(table.rows)
    if (weight != 1).any():
        # systematic sampling: as often as it weighs, rounded so that all together are right
        order = rng.permutation(table.rows)
        ends = np.floor(np.cumsum(weight[order]) + rng.random())
        copies = np.empty(table.rows, dtype=np.int64)
        copies[order] = np.diff(ends, prepend=0.0)
        people = np.repeat(people, copies)
    if not lists:
        return people, people, None
    offsets = [column.offsets for column in lists if column.offsets is not None]
    if any((np.diff(each) != np.diff(offsets[0])).any() for each in offsets):
        names = listed(column.domain.name for column in lists)
        raise ColumnError(f"{function}: the lists of {names} have different lengths, so their records are unknown")
    length = np.diff(offsets[0])[people]
    first = np.repeat(np.cumsum(length) - length, length)
    item = np.repeat(offsets[0][people], length) + np.arange(len(first)) - first
    return np.repeat(people, length), item, first


def _classes(table: ReadTable) -> IntArray:
    """Number of the class of each row: rows of one class show the same cells."""
    shown: list[NDArray[Any]] = []
    for column in table.columns.values():
        if column.interval:
            shown += [_array(column.lower), _array(column.upper)]
        elif column.node is not None and not column.plain:
            shown.append(column.node)
        elif column.several and not column.counted:
            shown.append(keys_of_lists(_array(column.offsets), _array(column.codes))[0])
    return keys_of(shown).of_row if shown else np.arange(table.rows)


def _are_tight(cells: Ranges, wide: NDArray[np.bool_]) -> bool:
    """Whether some intervals overlap in part: those of a hierarchy do not, and say nothing of their ends."""
    first, last = cells.first[wide], cells.last[wide]
    around: list[int] = []  # last values of the intervals that hold the next one, the innermost one's last
    for k in np.lexsort((-last, first)):
        while around and around[-1] < first[k]:
            around.pop()
        if around and around[-1] < last[k]:
            return True
        around.append(int(last[k]))
    return False


def _source(
    function: str, name: str, column: ReadColumn, table: ReadTable, classes: IntArray | None, rng: np.random.Generator
) -> Source:
    """A column with a cell for each released row, or for each item of a list."""
    domain = column.domain
    cells: Ranges
    cell: NDArray[Any]
    if column.interval:
        cells, cell, widths, line = _intervals(function, column)
        rows = np.bincount(cell, minlength=len(cells.first)).astype(np.float64)
        shares, tight = _learnt(cells, rows, widths, line.codes), None
        of_null = _of_null(column, cell)
        wide = (cells.first < cells.last) & (line.codes[cells.first] < 0) & (line.codes[cells.last] < 0)
        if of_null is not None:  # cells that may be anything are not tight
            wide &= of_null == 0
        if classes is not None and _are_tight(cells, wide):
            tight = np.where(wide[cell], classes, -1)
            shares = _learnt(*_with_ends(cells, cell, rows, shares, tight), widths, line.codes)
        seen = replace(Column.of(cells, cell, shares), tight=tight)
        return Source(name, replace(seen, of_null=of_null), line, False)
    line = _coded(domain)
    if column.node is not None and not column.plain:
        tree, _ = domain.tree()
        first = tree.first_leaf.astype(np.int64)
        cells, cell = Ranges(first, first + tree.leaf_count - 1), column.node
    elif column.several and not column.counted:
        return Source(name, _sets(column), line, False)
    else:
        atoms = np.arange(len(line.codes))
        cells, cell = (
            Ranges(atoms, atoms),
            _arranged(function, column, table, rng) if column.counted else column.value_codes(),
        )
        cell = domain.place_of_code[cell]
    rows = np.bincount(cell, minlength=len(cells.first)).astype(np.float64)
    if column.channel is not None or table.replaced(name):
        noisy, shares = _noisy(column, table, rows)
        return Source(name, Column.of(noisy, cell, shares), line, False)
    shares = learn_shares(cells, rows, np.ones(len(line.codes)))
    exact = table.contents.columns[fold(name)].truth == "exact" and table.contents.columns[fold(name)].cell == "value"
    return Source(name, Column.of(cells, cell, shares), line, exact)


def _coded(domain: Attribute) -> Line:
    """Atoms that are codes, or the leaves of a hierarchy."""
    codes = domain.hierarchy.leaves if domain.hierarchy is not None else domain.size
    return Line(np.arange(codes, dtype=np.int32))


def _intervals(function: str, column: ReadColumn) -> tuple[Ranges, IntArray, FloatArray, Line]:
    """Segments between the ends of intervals: -infinity, numbers in order, what else is no number, NULL.

    A cell that may be anything covers all but NULL, see `_of_null`.
    """
    domain, below, above = column.domain, _array(column.lower), _array(column.upper)
    key, cell = np.unique(below.astype(np.int64) * (domain.size + 1) + above, return_inverse=True)
    anything = key < 0
    lower, upper = np.where(anything, -1, key // (domain.size + 1)), np.where(anything, -1, key % (domain.size + 1))
    numbers = domain.scale_for(function).numbers
    finite = (lower >= 0) & (lower < domain.special_from)
    closed = (upper >= 0) & (upper < domain.special_from)
    low, high = _segments(numbers[lower[finite]], numbers[upper[closed]])  # ends of one cell may be infinite alone
    before = [domain.minus_infinity] if domain.minus_infinity >= 0 else []
    after = [code for code in range(domain.special_from, domain.size) if code != domain.minus_infinity]
    if anything.any() and domain.null_code < 0:
        after.append(_NULL)
    codes = np.array([*before, *([-1] * len(low)), *after], dtype=np.int32)
    atom_of_special = {int(code): index for index, code in enumerate(codes) if code >= 0}
    first, last = np.zeros(len(key), dtype=np.int64), np.full(len(key), max(0, len(codes) - 1 - int(anything.any())))
    first[finite] = len(before) + np.searchsorted(low, numbers[lower[finite]])
    last[closed] = len(before) + np.searchsorted(high, numbers[upper[closed]])
    for ends, known, atoms in ((lower, finite, first), (upper, closed, last)):
        special = (ends >= 0) & ~known
        atoms[special] = [atom_of_special[int(code)] for code in ends[special]]
    widths = np.ones(len(codes))
    inside = slice(len(before), len(before) + len(low))
    real = numbers.dtype == np.float64
    with np.errstate(over="ignore"):
        width = high.astype(np.float64) - low.astype(np.float64) + (0.0 if real else 1.0)
    widths[inside] = np.minimum(width, np.finfo(np.float64).max / (2 * len(codes)))  # so that their sum is finite
    alone = first == last
    widths[first[alone]] = np.maximum(widths[first[alone]], 1.0)
    line = Line(
        codes,
        *(
            np.concatenate([np.zeros(len(before), ends.dtype), ends, np.zeros(len(after), ends.dtype)])
            for ends in (low, high)
        ),
    )
    return Ranges(first, np.maximum(first, last)), cell, widths, line


def _with_ends(
    cells: Ranges, cell: IntArray, rows: FloatArray, shares: FloatArray, tight: IntArray
) -> tuple[Ranges, FloatArray]:
    """Cells and their rows when a row of each class has each end that by the shares no row has."""
    number, example, size = np.unique(tight, return_index=True, return_counts=True)
    size[number < 0] = 0
    shown = cell[example]
    before = np.concatenate([[0.0], np.cumsum(shares)])
    mass = before[cells.last[shown] + 1] - before[cells.first[shown]]
    atoms = np.arange(len(shares))
    rows, points = rows.copy(), np.zeros(len(shares))
    for end in (cells.first[shown], cells.last[shown]):
        missing = np.where(size > 1, (1 - shares[end] / np.maximum(mass, 1e-300)).clip(0, 1) ** size, 0.0)  # chance
        points += np.bincount(end, missing, len(shares))
        rows -= np.bincount(shown, missing, len(rows))
    every = Ranges(np.concatenate([cells.first, atoms]), np.concatenate([cells.last, atoms]))
    return every, np.maximum(np.concatenate([rows, points]), 0.0)


def _learnt(cells: Ranges, rows: FloatArray, widths: FloatArray, codes: CodeArray) -> FloatArray:
    """Share of each atom: NULL, and what else is no number, is counted where it stands alone and not smoothed."""
    alone = (cells.first == cells.last) & (codes[cells.first] >= 0)
    shares = np.bincount(cells.first[alone], rows[alone], len(widths)).astype(np.float64)
    first, last = cells.first[~alone], cells.last[~alone]
    if len(first):
        low, high = first.min(), last.max() + 1
        shares[low:high] += rows[~alone].sum() * learn_shares(
            Ranges(first - low, last - low), rows[~alone], widths[low:high]
        )
    return shares


def _of_null(column: ReadColumn, cell: IntArray) -> FloatArray | None:
    """Share of NULL in each cell that may be anything; None where there is no such cell."""
    lower, upper = _array(column.lower), _array(column.upper)
    anything = (lower < 0) & (upper < 0)
    if not anything.any():
        return None
    share = OF_NULL if (lower == column.domain.null_code).any() else OF_RARE_NULL
    found = np.zeros(int(cell.max()) + 1)
    found[cell[anything]] = share
    return found


def _segments(lower: Numbers, upper: Numbers) -> tuple[Numbers, Numbers]:
    """First and last number of each segment: every end alone, and what is between two."""
    if lower.dtype == np.float64:
        points = np.unique(np.concatenate([lower, upper]))
        gaps = np.stack([points[:-1], points[1:]])
        low = np.insert(points, np.arange(1, len(points)), gaps[0])
        return low, np.insert(points, np.arange(1, len(points)), gaps[1])
    largest = np.concatenate([lower, upper]).max(initial=np.iinfo(np.int64).min)
    ends = np.concatenate([lower, upper])
    starts = np.unique(np.concatenate([ends, ends[ends < largest] + 1]))  # the largest may be the end of the type
    return starts, np.concatenate([starts[1:] - 1, [largest] * (len(starts) > 0)])


def _sets(column: ReadColumn) -> Column:
    """Sets of codes; an empty one is NULL, or anything where there is none."""
    domain, codes, ends = column.domain, _array(column.codes), _array(column.offsets)
    cell, example = keys_of_lists(ends, codes)
    members = [codes[ends[i] : ends[i + 1]] for i in example]
    nothing = np.array([domain.null_code] if domain.null_code >= 0 else range(domain.size), dtype=np.int32)
    members = [each if len(each) else nothing for each in members]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in members])])
    atoms = np.concatenate(members).astype(np.int64)
    cells = Lists(offsets, atoms, np.ones(len(atoms)))
    rows = np.bincount(cell, minlength=len(members)).astype(np.float64)
    weights = member_weights(atoms, offsets, rows)
    shares = np.bincount(atoms, weights * rows[cells.cell], domain.size).astype(np.float64)
    return Column.of(cells, cell, shares)


def _noisy(column: ReadColumn, table: ReadTable, rows: FloatArray) -> tuple[Noisy, FloatArray]:
    """Cells of a channel, and the values' shares by its inverse, none of them 0."""
    atom, seen, least = np.arange(len(rows)), rows / rows.sum(), 0.2 / rows.sum()
    if column.channel is None:
        base = (1 - table.kept) * seen
        return Noisy(atom, np.full(len(rows), table.kept), base), np.maximum(seen, least)
    domain = column.domain.place_of_code[column.channel.domain]
    base = (1 - column.channel.p) / max(1, len(domain) - 1)
    extra = column.channel.p - base
    shares = np.full(len(rows), 0.0)
    shares[domain] = np.maximum((seen[domain] - base) / extra if extra else 1.0, least)
    return Noisy(atom, np.full(len(rows), extra), np.full(len(rows), base)), shares


def _arranged(function: str, column: ReadColumn, table: ReadTable, rng: np.random.Generator) -> IntArray:
    """The values of each bucket dealt to its rows at random."""
    codes_of_cells, ends, counts = _array(column.codes), _array(column.offsets), _array(column.counts)
    bucket = table.buckets()
    members = rng.permutation(table.rows)
    members = members[order_by(bucket[members])]
    starts = offsets_of(bucket[members], int(bucket.max(initial=-1)) + 1)
    example = members[starts[:-1]]
    length = np.diff(ends)[example]
    first = np.cumsum(length) - length
    index = np.repeat(ends[example] - first, length) + np.arange(length.sum())
    of_bucket = np.repeat(np.arange(len(example)), length)
    times = counts[index]
    total = np.bincount(of_bucket, times, len(example)).astype(np.int64)
    if (total != np.diff(starts)).any() or (np.diff(ends) != length[bucket]).any():
        raise ColumnError(
            f"{function}: the counts of {column.domain.name} do not add up to the rows of their bucket. Each row of a "
            "bucket has one value. Give the release with all of its rows, as it was made"
        )
    at = np.repeat(starts[:-1] - (np.cumsum(total) - total), total) + np.arange(total.sum())
    codes = np.empty(table.rows, dtype=np.int64)
    codes[members[at]] = np.repeat(codes_of_cells[index], times)
    return codes


def _array(values: NDArray[Any] | None) -> NDArray[Any]:
    """An array that a column of its shape has."""
    if values is None:
        raise TypeError("a released column lacks an array of its shape")
    return values
