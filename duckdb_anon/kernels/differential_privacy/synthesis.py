"""Records made from noisy counts of single columns, of pairs and of triples of columns.

First each column by itself (`noisy_histograms`), from which records are drawn column by column. Then twice: how far the
records are from the table on each pair (then triple) of columns is asked with noise; the tables that promise more than
their noise are measured; and values are exchanged between records until their counts are the measured ones
(`kernels.permutation.marginal_calibration`). All that is read of the table is asked of a `NoisyCounts`.

Source: the order select, measure, generate of McKenna, Miklau and Sheldon (2021) and the choice of tables by what they
promise of McKenna et al. (2022), AIM; distances of all candidates are asked at once, with Gaussian noise. Cost: a pass
over the records a pair and a triple, and some ten passes of exchanges, linear in the measured tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.differential_privacy.noisy_histograms import Histogram, NoisyCounts, nearest
from duckdb_anon.kernels.permutation.marginal_calibration import UNIT, Marginals, exchange_all
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import say, tick

_OF_DISTANCES = 0.1  # share of the budget of a round that the choice of its tables has
_FEWEST_BINS, _MOST_BINS, _NOISE = 11, 20, 0.1  # of a column, for which noise of all pairs is a tenth of the records
_MOST_FOR_TRIPLES = 10  # columns
_PASSES, _LITTLE = 40, 0.01  # exchanges end when a pass mends less than this share
Columns = tuple[int, ...]
Bins = NDArray[np.int8]


@dataclass(frozen=True)
class _Table:
    """Noisy counts of some columns and their precision, 1 / variance."""

    counts: FloatArray
    precision: float


def records_like(
    histograms: Sequence[Histogram], asked: NoisyCounts, rho: float, size: float, rng: np.random.Generator
) -> list[IntArray]:
    """Make records.

    Args:
        histograms: of each column.
        asked: answers counts of the table.
        rho: what pairs and triples may cost.
        size: number of records, as the noisy counts have it.
        rng: draws what depends on noisy counts alone.

    Returns:
        Cell of each made record, by column.
    """
    most = _bins_of_columns(len(histograms), asked.each, rho / 2, size)
    bins = [_bins(histogram, most) for histogram in histograms]
    widths = [int(of_cell.max()) + 1 for of_cell in bins]
    table = [of_cell[h.cell] for of_cell, h in zip(bins, histograms, strict=True)]
    margins: list[FloatArray] = [
        np.bincount(b, weights=h.counts, minlength=w).astype(np.float64)
        for b, h, w in zip(bins, histograms, widths, strict=True)
    ]
    cells = np.stack([rng.permutation(_dealt(h.counts, round(size), rng)) for h in histograms], axis=1)
    made = np.stack([b[cells[:, c]] for c, b in enumerate(bins)], axis=1).astype(np.int8)
    measured: dict[Columns, _Table] = {}
    sizes = [2, 3 if 3 <= len(widths) <= _MOST_FOR_TRIPLES else 2] if len(widths) > 1 else []
    for number, columns in enumerate(sizes):
        say("tables", number / 2)
        candidates = list(combinations(range(len(widths)), columns))
        _measure(candidates, table, made, widths, asked, rho / 2, size, measured)
        say("exchanges", number / 2)
        _exchange(measured, margins, size, made, cells, rng)
    return list(cells.T)


def _bins_of_columns(columns: int, each: int, rho: float, size: float) -> int:
    scale = each * np.sqrt(columns * (columns - 1) / 2 / (2 * rho))
    return int(np.clip(np.sqrt(_NOISE * size / max(float(scale), 1e-9)), _FEWEST_BINS, _MOST_BINS))


def _bins(histogram: Histogram, most: int) -> IntArray:
    """Bin of each cell: neighbours of about equal weight, or the most frequent and the rest; NULL has its own."""
    weight = histogram.counts[:-1]
    last, shown = len(weight), weight > 0
    result = np.zeros(last + 1, dtype=np.int64)
    if shown.sum() <= most:
        # a cell that is not shown goes with the one before it
        result[:last] = np.maximum(np.cumsum(shown) - 1, 0)
    elif histogram.ordered:
        share = np.cumsum(weight) - weight / 2
        result[:last] = np.minimum(share * most // weight.sum(), most - 1)
    else:
        rank = np.argsort(np.argsort(-weight, kind="stable"), kind="stable")
        result[:last] = np.minimum(rank, most - 1)
    if not histogram.ordered and shown.any():
        result[:last][~shown] = result[:last][shown].max()
    result[:last] = np.unique(result[:last], return_inverse=True)[1]
    result[last] = result[:last].max(initial=-1) + 1
    return result


def _dealt(counts: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Cells of `size` records, each as often as expected, rounded at random."""
    expected = counts * (size / counts.sum())
    times = np.floor(expected).astype(np.int64)
    rest = expected - times
    more = size - int(times.sum())
    if more > 0:
        times += rng.multinomial(more, rest / rest.sum())
    return np.repeat(np.arange(len(times)), times)


def _counts(columns: Columns, bins: Sequence[NDArray[Any]], widths: Sequence[int]) -> IntArray:
    tick()
    shape = tuple(widths[c] for c in columns)
    place = np.ravel_multi_index(tuple(bins[c] for c in columns), shape)
    return np.bincount(place, minlength=int(np.prod(shape))).astype(np.int64)


def _measure(
    candidates: Sequence[Columns], table: Sequence[IntArray], made: Bins, widths: Sequence[int], asked: NoisyCounts,
    rho: float, size: float, measured: dict[Columns, _Table],
) -> None:  # fmt: skip
    """Measure the candidates that promise most."""
    far = [int(np.abs(_counts(c, table, widths) - _counts(c, list(made.T), widths)).sum()) for c in candidates]
    # a record moves the distance of each candidate by one
    distances, _ = asked.ask(np.array(far), _OF_DISTANCES * rho, asked.each * float(np.sqrt(len(far))))
    cells = np.array([np.prod([widths[c] for c in columns]) for columns in candidates], dtype=np.float64)
    budget = (1 - _OF_DISTANCES) * rho
    for k, each in _chosen(distances, cells, budget, asked.each, size):
        columns = candidates[k]
        counts, scale = asked.ask(_counts(columns, table, widths), each)
        found = _Table(counts.reshape([widths[c] for c in columns]).astype(np.float64), scale**-2)
        if columns in measured:
            before = measured[columns]
            both = before.precision + found.precision
            weighted = before.counts * before.precision + found.counts * found.precision
            found = _Table(weighted / both, both)
        measured[columns] = found


def _chosen(distances: IntArray, cells: FloatArray, rho: float, each: int, size: float) -> list[tuple[int, float]]:
    """Tables whose distances exceed their noise most in all, and the budget of each; none where noise is larger."""
    average = np.full(len(cells), rho / max(1, len(cells) // 2))
    order = np.argsort(_noise(cells, average, each, size) - distances, kind="stable")
    best, most = [], 0.0
    for many in range(1, len(order) + 1):
        taken = order[:many]
        # the sum of |noise| is least where budgets go with cells^(2/3)
        share = cells[taken] ** (2 / 3)
        budgets = rho * share / share.sum()
        gain = float((distances[taken] - _noise(cells[taken], budgets, each, size)).sum())
        if gain > most:
            best, most = list(zip(taken.tolist(), budgets.tolist(), strict=True)), gain
    return best


def _noise(cells: FloatArray, rho: FloatArray, each: int, size: float) -> FloatArray:
    """Expected sum of |noise| of tables, which says nothing beyond twice the records."""
    noise: FloatArray = np.minimum(cells * each / np.sqrt(2 * rho) * np.sqrt(2 / np.pi), 2 * size)
    return noise


def _with_margins(table: FloatArray, margins: Sequence[FloatArray]) -> FloatArray:
    """The nearest table with these margins."""
    for axis, margin in enumerate(margins):
        others = tuple(a for a in range(table.ndim) if a != axis)
        missing = (margin - table.sum(axis=others)) * len(margin) / table.size
        table = table + missing.reshape([-1 if a == axis else 1 for a in range(table.ndim)])
    return table


def _exchange(
    measured: Mapping[Columns, _Table], margins: Sequence[FloatArray], size: float, made: Bins, cells: IntArray,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Exchange values between made records, in place, until their counts are the measured ones."""
    if not measured or len(cells) < 2:
        return
    layout = Marginals.of([len(margin) for margin in margins], list(measured))
    tables = [nearest(_with_margins(t.counts, [margins[c] for c in cs]), size) for cs, t in measured.items()]
    # numbers of a table are laid out with the first column fastest
    target = np.concatenate([np.rint(UNIT * table.ravel(order="F")).astype(np.int64) for table in tables])
    counts = layout.totals(made, np.ones(len(cells), dtype=np.int32), len(layout.tables))
    dev = (UNIT * counts - target)[:, None]
    no_sums, one_group = np.empty((len(cells), 0), dtype=np.int32), np.array([0, len(cells)], dtype=np.int64)
    left = np.abs(dev).sum()
    for _ in range(_PASSES):
        exchange_all(one_group, made, no_sums, cells, layout.of_column, dev, rng)
        before, left = left, np.abs(dev).sum()
        if left > (1 - _LITTLE) * before:
            break
