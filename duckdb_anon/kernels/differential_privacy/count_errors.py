"""How far counts of made records are from the table's, from noisy counts that the records were not fitted to.

Up to four columns at random are cut into ranges and sets of names, and the cells of up to 64 such tables are asked with
noise. The mean squared error of a count c under conditions on d columns is modelled as factor c^power per_column^d. The
most likely coefficients for normal errors, with a prior from other tables, are enlarged by a standard error, and by a
factor: 1.15 is what three tables need (HI and OFP of R's Ecdat, individuals of a visit register), the rest a margin.
Census, adult and randhie check what such intervals cover (`examples/studies/synthesis.py`).
Cost: a pass over the records for each of these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from duckdb_anon.kernels.differential_privacy.noisy_histograms import Histogram, NoisyCounts
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import tick

_TABLES, _MOST_COLUMNS, _CELLS = (8, 64), 4, (4, 500)
_LARGER = 1.3  # factor of the width of intervals, see above
_USUAL, _SPREAD = np.array([0.0, 0.75, 0.3]), np.array([1.5, 0.15, 0.2])  # mean and standard deviation over tables
_MIDDLE = 2.5, 1 / 8  # number of columns, and share of the records, where the first of the three stands


@dataclass(frozen=True)
class CountError:
    """Mean squared error of a count c under conditions on d columns: factor * c ** power * per_column ** d."""

    factor: float
    power: float
    per_column: float


def count_error(
    histograms: Sequence[Histogram], made: Sequence[IntArray], asked: NoisyCounts, rho: float, rng: np.random.Generator
) -> CountError:
    """Error of counts of made records, the cells of each column in `made`; `rho` is what asking may cost."""
    records, columns = len(made[0]), min(_MOST_COLUMNS, len(made))
    tables = int(np.clip(rho * records, *_TABLES))
    # so many cells that their counts are some standard deviations of the noise
    most = float(np.clip(records / (4 * asked.each * np.sqrt(tables / (2 * rho))), *_CELLS))
    true: list[IntArray] = []
    ours: list[IntArray] = []
    of_columns: list[IntArray] = []
    for _ in range(tables):
        tick()
        chosen = rng.permutation(len(made))[: rng.integers(1, columns + 1)]
        parts = max(2, round(most ** (rng.uniform(0.3, 1) / len(chosen))))
        part_of_cell = [_parts(histograms[c], parts, rng) for c in chosen]
        for found, cells in ((true, [histograms[c].cell for c in chosen]), (ours, [made[c] for c in chosen])):
            place = np.zeros(len(cells[0]), dtype=np.int64)
            for part, cell in zip(part_of_cell, cells, strict=True):
                place = place * parts + part[cell]
            found.append(np.bincount(place, minlength=parts ** len(chosen)))
        of_columns.append(np.full(parts ** len(chosen), len(chosen)))
    # a record is in one cell of each table
    noisy, scale = asked.ask(np.concatenate(true), rho, asked.each * float(np.sqrt(tables)))
    counts = np.concatenate(ours)
    seen = counts > 0
    middle = max(1.0, records * _MIDDLE[1])
    terms = np.stack([
        np.ones(int(seen.sum())), np.log(counts[seen] / middle), np.concatenate(of_columns)[seen] - _MIDDLE[0],
    ])  # fmt: skip
    level, power, column = _fitted(terms, (counts - noisy)[seen] ** 2 / middle, scale**2 / middle)
    factor = np.exp(level - _MIDDLE[0] * column) * middle ** (1 - power) * _LARGER**2
    return CountError(float(factor), power, float(np.exp(column)))


def _parts(histogram: Histogram, parts: int, rng: np.random.Generator) -> IntArray:
    """Part of each cell: ranges between random shares of the records, or names at random."""
    if not histogram.ordered:
        return rng.integers(0, parts, len(histogram.counts))
    share = (np.cumsum(histogram.counts) - histogram.counts / 2) / histogram.counts.sum()
    part: IntArray = np.searchsorted(np.sort(rng.random(parts - 1)), share)
    return part


def _fitted(terms: FloatArray, squares: FloatArray, noise: float) -> tuple[float, float, float]:
    """Coefficients of the terms in the logarithm of the error's variance; the first with a standard error added."""

    def variance(of: FloatArray) -> FloatArray:
        return np.exp(np.clip(of @ terms, -30, 30))

    def unlikely(of: FloatArray) -> float:
        total = variance(of) + noise
        return float((np.log(total) + squares / total).sum() + (((of - _USUAL) / _SPREAD) ** 2).sum())

    found = minimize(unlikely, _USUAL, method="BFGS").x
    heard = variance(found) / (variance(found) + noise)
    information = (terms * heard**2) @ terms.T / 2 + np.diag(_SPREAD**-2)
    level = float(found[0] + np.sqrt(np.linalg.inv(information)[0, 0]))
    return level, float(np.clip(found[1], 0, 1)), max(0.0, float(found[2]))
