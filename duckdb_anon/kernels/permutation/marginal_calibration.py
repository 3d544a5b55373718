"""Calibration of three-way marginals by exchanging values inside groups.

Permuting columns inside groups preserves every histogram and blurs associations between columns. Here values of two
rows of a group are exchanged, at random, where the published counts of all triples of columns, and the sums of each
numeric sensitive column in the cells of three quasi-identifiers, do not move away from their targets: the sum of
|published - target| must not rise. Sums are taken in units of the column's mean. Ordered columns are in `FINE_BINS`
bins where three quasi-identifiers or more have so many values and most rows are in cells that steer even so: then
sums over ranges err less. Otherwise finer bins gain nothing, and there are `BINS`.

What it reveals: exchanges are steered by counts and sums of the table, rounded at random to multiples of `BASE`
(unbiased), and cells of fewer than `LEAST_COUNT` rows steer nothing. A value of more than `BASE` means counts as that,
so no individual moves a sum by more than its rounding. Still a release is no longer equally likely under every
assignment inside a group. In tables of `_LARGE` rows or more two parts are exchanged in parallel, each blind to what
the other does in the same step, so that the result does not depend on the number of threads.
Cost: `ROUNDS` proposals a value of the table, each linear in the pairs of other columns and the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import Place, compiled
from duckdb_anon.kernels.permutation.permute_within_groups import rows_by_group
from duckdb_anon.kernels.rng_streams import below, next_word
from duckdb_anon.kernels.thread_pool import parallel_blocks, parallel_map, threads
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.progress import stop_flag, tick

BASE = 10
LEAST_COUNT = 50
MOST_BINS = 12
FINE_BINS, BINS = 20, 10
STEERED = 0.8  # least share of rows in cells that steer, over the tables that have sums, for fine bins
ROUNDS, ROUNDS_LARGE = 5, 2  # in a large table cells are large, and two rounds bring them as near
UNIT = 64  # what a row counts as, so that sums in units of a mean are whole numbers too
_LEFT_ALONE = 1 - 2**31  # no multiple of UNIT, as deviations are
_LARGE, _STEPS, _LANES = 1 << 17, 8, 2  # four lanes mend the same cells too often: 17% more is left on a million rows
_MOST_FOR_TRIPLES = 10
_BLOCK = 4096  # rows, which stay in the cache for all tables
_LOW = np.uint64(2**32 - 1)
Array = NDArray[Any]
BinArray = NDArray[np.int8]


def repaired(
    qi: Sequence[Attribute],
    sensitive: Sequence[Attribute],
    group_of_row: IntArray,
    source: IntArray,
    rng: np.random.Generator,
    *,
    fixed: Sequence[Attribute] = (),
    base: int = BASE,
    pairs: bool = False,
) -> IntArray:
    """Exchange values inside groups.

    `source`: row whose value each row takes, shape (quasi-identifiers and `fixed`, n); the former are changed in place
    to save memory. `fixed`: quasi-identifiers that are not exchanged; `base`: targets are rounded to its multiples.
    `pairs`: count all pairs of columns, and those triples whose cells have enough rows on average.

    Returns:
        `source`.
    """
    known, columns = len(qi) + len(fixed), [*qi, *fixed, *sensitive]
    if len(columns) < 2 or len(qi) == 0:
        return source
    bins = FINE_BINS if not pairs and sum(a.kind == "ordered" and a.domain > BINS for a in qi) >= 3 else BINS
    bins_of_column, tables, counts = _laid_out(columns, len(qi), known, bins, pairs=pairs)
    summed = counts[: tables.first[tables.summed_tables]]
    if bins > BINS and summed[summed >= LEAST_COUNT].sum() < STEERED * summed.sum():
        bins_of_column, tables, counts = _laid_out(columns, len(qi), known, BINS)
    published = np.stack(bins_of_column, axis=1)
    one_each, every, sums = np.ones(len(published), dtype=np.int32), len(tables.tables), tables.summed_tables
    target = _rounded(counts, base, rng)
    values = _summed(sensitive, len(published))
    sum_targets = [
        _rounded(tables.totals(published, np.ascontiguousarray(column), sums), base * UNIT, rng) for column in values.T
    ]
    rows, starts = rows_by_group(group_of_row)
    values = values[rows]
    result = np.empty((len(rows), len(qi)), dtype=source.dtype)

    def in_groups(low: int, high: int) -> None:
        block = rows[low:high]
        for c in range(len(columns)):
            tick()
            taken = source[c][block] if c < known else block
            if c < len(qi):
                result[low:high, c] = taken
            published[low:high, c] = bins_of_column[c][taken]

    parallel_blocks(in_groups, len(rows))
    small = (len(rows) + base) * BASE * UNIT < 2**30  # four bytes a deviation: more cells stay in the cache
    dev = np.zeros((len(target), 1 + len(sum_targets)), dtype=np.int32 if small else np.int64)
    counts = tables.totals(published, one_each, every)
    dev[:, 0] = np.where(target >= LEAST_COUNT, UNIT * (counts - target), _LEFT_ALONE)
    for c, sum_target in enumerate(sum_targets):
        moved = tables.totals(published, np.ascontiguousarray(values[:, c]), sums)
        dev[: len(moved), 1 + c] = moved - sum_target
    for _ in range(ROUNDS if len(rows) < _LARGE else ROUNDS_LARGE):
        exchange_all(starts, published, values, result, tables.of_column, dev, rng)

    def by_row(q: int) -> None:
        tick()
        source[q][rows] = result[:, q]

    parallel_map(by_row, range(len(qi)))
    return source


def _laid_out(
    columns: Sequence[Attribute], exchanged: int, known: int, bins: int, *, pairs: bool = False
) -> tuple[list[BinArray], Marginals, IntArray]:
    """Bin of each row in each column, the tables of their counts, and the counts."""
    bins_of_column = parallel_map(lambda column: binned(column, bins), columns)
    widths = [int(column.max(initial=0)) + 1 for column in bins_of_column]
    size = 3 if 3 <= len(widths) <= _MOST_FOR_TRIPLES else 2
    rows, chosen = len(bins_of_column[0]), list(combinations(range(len(widths)), size))
    if pairs and size == 3:
        dense = [each for each in chosen if rows >= LEAST_COUNT * prod(widths[c] for c in each)]
        chosen = [*dense, *combinations(range(len(widths)), 2)]
    tables = Marginals.of(widths, [each for each in chosen if each[0] < exchanged], known)
    one_each = np.ones(rows, dtype=np.int32)
    return bins_of_column, tables, tables.totals(np.stack(bins_of_column, axis=1), one_each, len(tables.tables))


def _summed(sensitive: Sequence[Attribute], rows: int) -> CodeArray:
    """Values of the numeric sensitive columns in units of `UNIT` to their mean, shape (rows, columns).

    NULL is 0; a value counts as at most `BASE` means.
    """
    columns = []
    for attribute in sensitive:
        if attribute.kind != "ordered":
            continue
        number = np.where(np.arange(len(attribute.positions)) < attribute.special_from, attribute.positions, 0.0)
        mean = float(np.abs(number[attribute.codes]).mean())
        if mean > 0:
            columns.append(np.rint(np.clip(number / mean, -BASE, BASE) * UNIT).astype(np.int32)[attribute.codes])
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0), dtype=np.int32)


def _rounded(numbers: IntArray, base: int, rng: np.random.Generator) -> IntArray:
    """Each number rounded to a multiple of the base, up or down at random, so that its mean stays."""
    above = rng.random(len(numbers)) * base < numbers % base
    return (numbers // base + above) * base


def exchange_all(
    starts: IntArray,
    published: BinArray,
    values: CodeArray,
    result: IntArray,
    of_column: IntArray,
    dev: IntArray,
    rng: np.random.Generator,
) -> None:
    """One round of proposals in all groups, which changes `published`, `result` and `dev`.

    In a large table `_LANES` parts go in parallel, `_STEPS` times: each starts from the same counts and sees only its
    changes, which are added up after each step. Parts of a step are far apart: neighbours are alike and would repair
    the same cells.
    """
    stop, rows = stop_flag(), len(published)
    steps, lanes = (_STEPS, _LANES) if rows >= _LARGE else (1, 1)
    # the group in which each part starts, and the end
    bounds = np.searchsorted(starts, np.arange(steps * lanes + 1) * rows // (steps * lanes))
    seeds = rng.integers(1, 2**63, size=steps * lanes, dtype=np.uint64)
    for step in range(steps):
        seen = [dev] if lanes == 1 else [dev.copy() for _ in range(lanes)]

        def exchange(lane: int, step: int = step, seen: list[IntArray] = seen) -> None:
            part = step + lane * steps
            groups = starts[bounds[part] : bounds[part + 1] + 1]
            seed = seeds[part : part + 1]
            _exchange(groups, published, values, result, of_column, seen[lane], seed, stop)

        parallel_map(exchange, range(lanes))
        if lanes > 1:
            dev += sum((after - dev for after in seen[1:]), seen[0] - dev)


@dataclass(frozen=True)
class Marginals:
    """Tables of counts of some triples and pairs of columns, laid end to end."""

    tables: IntArray  # columns of each table and the steps a value makes along each, shape (tables, 3, 2)
    first: IntArray  # where each table starts, and the end of the last, shape (tables + 1,)
    # for each column the tables it is in: first cell, step of the column, another column, its step, the third column,
    # its step, whether sums are taken; zeros fill up where a column has fewer; shape (columns, most tables, 7)
    of_column: IntArray
    summed_tables: int  # the first of them, of quasi-identifiers alone, have sums too

    @staticmethod
    def of(widths: Sequence[int], chosen: Sequence[tuple[int, ...]], qi: int = 0) -> Marginals:
        """Lay out the tables of columns of so many bins; those of the first `qi` columns alone come first."""
        tables, first = [], [0]
        of_column: list[list[tuple[int, ...]]] = [[] for _ in widths]
        for columns in sorted(chosen, key=lambda columns: columns[-1] >= qi):
            steps = np.cumprod([1, *(widths[column] for column in columns)]).tolist()
            entries = list(zip(columns, steps[:-1], strict=True))
            if len(columns) == 2:
                entries.append((columns[0], 0))  # a table of two columns is one of three whose third has the step 0
            for index, column in enumerate(columns):
                (b, step_b), (c, step_c) = entries[:index] + entries[index + 1 :]
                sums = int(columns[-1] < qi)
                of_column[column].append((first[-1], steps[index], b, step_b, c, step_c, sums))
            tables.append(entries)
            first.append(first[-1] + steps[-1])
        most = max(map(len, of_column), default=0)
        filled = [[*entries, *[(0,) * 7] * (most - len(entries))] for entries in of_column]
        summed = sum(columns[-1] < qi for columns in chosen)
        return Marginals(np.array(tables), np.array(first), np.array(filled), summed)

    def totals(self, bins: BinArray, values: CodeArray, tables: int) -> IntArray:
        """Sum of the values in each cell of the first `tables` tables, end to end; rows, where every value is 1."""
        tick()
        sums, stop = np.zeros(self.first[tables], dtype=np.int64), stop_flag()
        share = -(-tables // threads()) or 1
        parallel_map(
            lambda lo: _sum(bins, values, self.tables[lo : min(lo + share, tables)], self.first[lo : lo + share],
                            sums, stop),
            range(0, tables, share),
        )  # fmt: skip
        return sums


def binned(attribute: Attribute, bins: int = BINS) -> BinArray:
    """Bin of each row: values where they are few, else the most frequent nominal ones and bins of equal frequency."""
    counts = np.bincount(attribute.codes, minlength=attribute.domain)
    if np.count_nonzero(counts) <= (MOST_BINS if attribute.kind == "nominal" else max(MOST_BINS, bins)):
        bin_of_code = np.cumsum(counts > 0) - 1
    elif attribute.kind == "nominal":
        bin_of_code = np.minimum(np.argsort(np.argsort(-counts, kind="stable"), kind="stable"), MOST_BINS - 1)
    else:
        index = attribute.left_to_right
        share = np.cumsum(counts[index]) - counts[index] / 2
        bin_of_code = np.empty(len(counts), dtype=np.int64)
        bin_of_code[index] = np.minimum(share * bins // counts.sum(), bins - 1)
        _, bin_of_code = np.unique(bin_of_code, return_inverse=True)
    return bin_of_code.astype(np.int8)[attribute.codes]


@compiled
def _sum(bins: Array, values: Array, tables: Array, first: Array, sums: Array, stop: Array) -> None:
    """Add the values of rows to the cells of some tables, which no other thread writes to."""
    for lo in range(0, len(bins), _BLOCK):
        if stop[0] != 0:
            return
        hi = min(lo + _BLOCK, len(bins))
        for t in range(len(tables)):
            start, table = Place(first[t]), tables[t]
            a, b, c = Place(table[0, 0]), Place(table[1, 0]), Place(table[2, 0])
            step_a, step_b, step_c = Place(table[0, 1]), Place(table[1, 1]), Place(table[2, 1])
            for i in range(lo, hi):
                row = Place(i)
                at = start + Place(bins[row, a]) * step_a + Place(bins[row, b]) * step_b
                sums[at + Place(bins[row, c]) * step_c] += values[row]


@compiled
def _exchange(
    starts: Array,
    published: Array,
    values: Array,
    result: Array,
    of_column: Array,
    dev: Array,
    seed: Array,
    stop: Array,
) -> None:
    """Propose as many exchanges as there are values, group after group; those that do not make |dev| rise are made."""
    state, columns = seed[0], result.shape[1]
    for g in range(len(starts) - 1):
        lo = starts[g]
        size = starts[g + 1] - lo
        for proposal in range(size * columns if size > 1 else 0):
            if proposal % 65536 == 0 and stop[0] != 0:
                return
            state = next_word(state)
            left, right = lo + below(state & _LOW, size), lo + below(state >> np.uint64(32), size)
            state = next_word(state)
            q = below(state & _LOW, columns)
            old_left, old_right = published[left, q], published[right, q]
            if old_left == old_right or _rise(published, values, of_column[q], dev, q, left, right) > 0:
                continue
            _change(published, values, of_column[q], dev, q, left, right)
            published[left, q], published[right, q] = old_right, old_left
            result[left, q], result[right, q] = result[right, q], result[left, q]


@compiled
def _rise(published: Array, values: Array, tables: Array, dev: Array, q: int, left: int, right: int) -> Any:
    """How far |dev| rises where two rows exchange their values of column q.

    Both rows leave one cell of a table and enter another. Where they agree on the other columns two cells change, by
    the difference of what is summed.
    """
    rise = np.int64(0)
    row, other, of_row, of_other = published[left], published[right], values[left], values[right]
    old, new = Place(row[q]), Place(other[q])
    for t in range(len(tables)):
        table = tables[t]
        first, step, b, step_b = Place(table[0]), Place(table[1]), Place(table[2]), Place(table[3])
        c, step_c, sums = Place(table[4]), Place(table[5]), len(of_row) if table[6] == 1 else 0
        at = first + Place(row[b]) * step_b + Place(row[c]) * step_c
        at_other = first + Place(other[b]) * step_b + Place(other[c]) * step_c
        out, into, out_other, into_other = (
            at + old * step,
            at + new * step,
            at_other + new * step,
            at_other + old * step,
        )
        if at == at_other:
            for s in range(sums):
                moved = np.int64(of_row[s]) - of_other[s]
                rise += _further(dev, out, 1 + s, -moved) + _further(dev, into, 1 + s, moved)
            continue
        if sums == 0:
            rise += _further(dev, out, 0, -UNIT) + _further(dev, into, 0, UNIT)
            rise += _further(dev, out_other, 0, -UNIT) + _further(dev, into_other, 0, UNIT)
            continue
        rise += _both_further(dev, out, -UNIT, -np.int64(of_row[0])) + _both_further(dev, into, UNIT, of_row[0])
        rise += _both_further(dev, out_other, -UNIT, -np.int64(of_other[0]))
        rise += _both_further(dev, into_other, UNIT, of_other[0])
        for s in range(1, sums):
            rise += _further(dev, out, 1 + s, -np.int64(of_row[s])) + _further(dev, into, 1 + s, of_row[s])
            rise += _further(dev, out_other, 1 + s, -np.int64(of_other[s]))
            rise += _further(dev, into_other, 1 + s, of_other[s])
    return rise


@compiled
def _further(dev: Array, cell: int, column: int, amount: Any) -> Any:
    """How much further from 0 a deviation of a cell that steers gets by an amount."""
    now = np.int64(dev[cell, Place(column)])
    return (abs(now + amount) - abs(now)) * (dev[cell, Place(0)] != _LEFT_ALONE)


@compiled
def _both_further(dev: Array, cell: int, rows: int, amount: Any) -> Any:
    """How much further from 0 the deviations of a cell's count and first sum get."""
    count, first = np.int64(dev[cell, Place(0)]), np.int64(dev[cell, Place(1)])
    return (abs(count + rows) - abs(count) + abs(first + amount) - abs(first)) * (count != _LEFT_ALONE)


@compiled
def _change(published: Array, values: Array, tables: Array, dev: Array, q: int, left: int, right: int) -> None:
    """Change the cells that `_rise` weighs."""
    for t in range(len(tables)):
        sums = values.shape[1] if tables[t, 6] == 1 else 0
        for row, other in ((left, right), (right, left)):
            at = (
                tables[t, 0] + published[row, tables[t, 2]] * tables[t, 3] + published[row, tables[t, 4]] * tables[t, 5]
            )
            for sign in (-1, 1):
                cell = at + published[row if sign < 0 else other, q] * tables[t, 1]
                if dev[cell, 0] != _LEFT_ALONE:
                    dev[cell, 0] += sign * UNIT
                    for s in range(sums):
                        dev[cell, 1 + s] += sign * np.int64(values[row, s])
