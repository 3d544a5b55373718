"""A release as evidence on the rows of its original, and draws as values.

Each column of the release that shows no exact value of its row becomes a `Source`: the column as the model sees it, and
how its atoms become values. Values of exact columns are evidence alone: draws have the release's own.
Cost: linear in rows, but for the bins of cells, see `columns`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.cells import Lists, Noisy, Ranges
from duckdb_anon.kernels.cells.learn import CHANNEL_ROUNDS, learn_shares, member_weights
from duckdb_anon.kernels.cells.line import Line
from duckdb_anon.kernels.cells.table import ReadTable
from duckdb_anon.kernels.partition.sort_count import offsets_of, order_by, ranges
from duckdb_anon.kernels.plausible.augmentation import Evidence
from duckdb_anon.kernels.plausible.columns import Column
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.released_columns import OF_NULL, OF_RARE_NULL


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
    lists = [column for column in table.columns.values() if column.lists_nodes]
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
    function: str, table: ReadTable, lists: Sequence[Ranges], rng: np.random.Generator
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
    offsets = [column.offsets for column in lists]
    if any((np.diff(each) != np.diff(offsets[0])).any() for each in offsets):
        names = listed(column.domain.name for column in lists)
        raise ColumnError(f"{function}: the lists of {names} have different lengths, so their records are unknown")
    length = np.diff(offsets[0])[people]
    first = np.repeat(np.cumsum(length) - length, length)
    return np.repeat(people, length), ranges(offsets[0][people], length), first


def _classes(table: ReadTable) -> IntArray:
    """Number of the class of each row: rows of one class show the same cells."""
    shown = [column.names for column in table.columns.values() if not column.plain and not column.counted]
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
    function: str, name: str, column: Ranges, table: ReadTable, classes: IntArray | None, rng: np.random.Generator
) -> Source:
    """A column with a cell for each released row, or for each item of a list."""
    if column.interval and column.ordered:
        return _intervals(function, name, column, classes)
    if column.counted:
        column = Ranges.of_codes(column.domain, _arranged(function, column, table, rng))
    if column.several and not column.lists_nodes:
        return Source(name, _sets(column.different), column.line, False)
    cells = column.items.different
    if column.channel is not None or table.replaced(name):
        noisy, shares = _noisy(cells, table)
        return Source(name, Column.of(noisy, cells.of_row, shares), column.line, False)
    if cells.interval:
        return Source(name, _with_blanks(function, cells), column.line, False)
    shares = learn_shares(cells, cells.weights, column.line.widths)
    content = table.contents.columns[fold(name)]
    exact = content.truth == "exact" and content.cell == "value"
    return Source(name, Column.of(cells, cells.of_row, shares), column.line, exact)


def _with_blanks(function: str, cells: Ranges) -> Column:
    """Values, of which NULL, the last atom, may stand for any other one, or for itself."""
    blank, atoms = cells.anything, len(cells.line.codes)
    if blank.all():
        raise ColumnError(f"{function}: each value of {cells.domain.name} is suppressed. Name other columns")
    seen = np.bincount(cells.first[~blank], cells.weights[~blank], atoms)[: atoms - 1]
    values = Ranges(cells.line, np.where(blank, 0, cells.first), np.where(blank, atoms - 2, cells.last))
    return replace(
        Column.of(values, cells.of_row, np.append(seen, 0.0)), of_null=np.where(blank, cells.of_null or 0.0, 0.0)
    )


def _intervals(function: str, name: str, column: Ranges, classes: IntArray | None) -> Source:
    """A column of intervals, on a line of the segments between their ends."""
    found, numbers = column.different, column.domain.scale_for(function).numbers
    ends = [np.where(found.anything, -1, each).astype(np.int64) for each in (found.first, found.last)]
    line = Line.segments(column.domain, numbers, *ends)
    cells, cell, rows = Ranges(line, *line.places(numbers, *ends)), found.of_row, found.weights
    widths, alone = line.widths.copy(), cells.first == cells.last
    widths[cells.first[alone]] = np.maximum(widths[cells.first[alone]], 1.0)
    shares, tight, of_null = _learnt(cells, rows, widths), None, None
    wide = ~alone & (line.codes[cells.first] < 0) & (line.codes[cells.last] < 0)
    if found.anything.any():  # share of NULL in cells that may be anything, which are not tight
        alone_null = (~found.anything & (found.first == column.domain.null_code)).any()
        share = (OF_NULL if alone_null else OF_RARE_NULL) if found.of_null is None else found.of_null
        of_null = np.where(found.anything, share, 0.0)
        wide &= ~found.anything
    if classes is not None and _are_tight(cells, wide):
        tight = np.where(wide[cell], classes, -1)
        shares = _learnt(*_with_ends(cells, cell, rows, shares, tight), widths)
    seen = replace(Column.of(cells, cell, shares), tight=tight)
    return Source(name, replace(seen, of_null=of_null), line, False)


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
    every = Ranges(cells.line, np.concatenate([cells.first, atoms]), np.concatenate([cells.last, atoms]))
    return every, np.maximum(np.concatenate([rows, points]), 0.0)


def _learnt(cells: Ranges, rows: FloatArray, widths: FloatArray) -> FloatArray:
    """Share of each atom: NULL, and what else is no number, is counted where it stands alone and not smoothed."""
    alone = (cells.first == cells.last) & (cells.line.codes[cells.first] >= 0)
    shares = np.bincount(cells.first[alone], rows[alone], len(widths)).astype(np.float64)
    first, last = cells.first[~alone], cells.last[~alone]
    if len(first):
        low, high = first.min(), last.max() + 1
        between = Ranges(cells.line, first - low, last - low)
        shares[low:high] += rows[~alone].sum() * learn_shares(between, rows[~alone], widths[low:high])
    return shares


def _sets(cells: Ranges) -> Column:
    """Sets of codes; an empty one is NULL, or anything where there is none."""
    domain, nothing = cells.domain, np.flatnonzero(np.diff(cells.offsets) == 0)
    instead = np.array([domain.null_code] if domain.null_code >= 0 else range(domain.size))
    atoms = np.insert(cells.first.astype(np.int64), np.repeat(cells.offsets[nothing], len(instead)),
                      np.tile(instead, len(nothing)))  # fmt: skip
    sizes = np.diff(cells.offsets)
    sizes[nothing] = len(instead)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    sets = Lists(cells.line, atoms, atoms, offsets=offsets, weight=np.ones(len(atoms)))
    weights = member_weights(sets, cells.weights) * cells.weights[sets.cell_of_range]
    shares = np.bincount(atoms, weights, domain.size).astype(np.float64)
    return Column.of(sets, cells.of_row, shares)


def _noisy(cells: Ranges, table: ReadTable) -> tuple[Noisy, FloatArray]:
    """Cells of a channel, and the likeliest shares of the values that went through it."""
    rows, channel = cells.weights, cells.channel
    atoms, every = len(cells.line.codes), np.ones(cells.number)
    if channel is None:
        seen = np.bincount(cells.first, rows, atoms) / rows.sum()
        base = (1 - table.kept) * seen[cells.first]
        return Noisy(cells.line, cells.first, cells.last, extra=table.kept * every, base=base), seen
    domain = cells.line.atom_of_code[channel.domain]
    base = (1 - channel.p) / max(1, len(domain) - 1) * every
    noisy = Noisy(cells.line, cells.first, cells.last, extra=channel.p - base, base=base)
    # inverted counts below 0 would have to be cut, and what is left would have too many rare values
    return noisy, learn_shares(noisy, rows, np.bincount(domain, minlength=atoms).astype(np.float64), CHANNEL_ROUNDS)


def _arranged(function: str, column: Ranges, table: ReadTable, rng: np.random.Generator) -> IntArray:
    """The values of each bucket dealt to its rows at random."""
    codes_of_cells, ends, counts = column.line.code_of_atom[column.first], column.offsets, column.weight
    bucket = table.buckets()
    members = rng.permutation(table.rows)
    members = members[order_by(bucket[members])]
    starts = offsets_of(bucket[members], int(bucket.max(initial=-1)) + 1)
    example = members[starts[:-1]]
    length = np.diff(ends)[example]
    index = ranges(ends[example], length)
    of_bucket = np.repeat(np.arange(len(example)), length)
    times = counts[index].astype(np.int64)
    total = np.bincount(of_bucket, times, len(example)).astype(np.int64)
    if (total != np.diff(starts)).any() or (np.diff(ends) != length[bucket]).any():
        raise ColumnError(
            f"{function}: the counts of {column.domain.name} do not add up to the rows of their bucket. Each row of a "
            "bucket has one value. Give the release with all of its rows, as it was made"
        )
    at = ranges(starts[:-1], total)
    codes = np.empty(table.rows, dtype=np.int64)
    codes[members[at]] = np.repeat(codes_of_cells[index], times)
    return codes
