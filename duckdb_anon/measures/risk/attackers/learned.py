"""The channel of one column, counted in what the release's own call makes of the release.

Transitions are counted between values, or between quantile bins where a column has more than 100 ordered values;
in bins, that a value stays exactly what it was is counted apart. Counts get SMOOTHING a cell. Texts of very many
values are told apart only by whether they stay.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from duckdb_anon.measures.cells import PublishedCells, quantile_bins
from duckdb_anon.measures.risk.scores import ColumnScore
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray

SMOOTHING = 0.02
BINS = 100
MOST_NAMES = 2000


def learned(cells: PublishedCells, before: CodeArray, after: CodeArray) -> ColumnScore:
    """Log-likelihood ratios of a column's cells, from pairs of codes before and after.

    Args:
        cells: plain values.
        before: code of each row of the release in the column's domain, shape (pairs,).
        after: the code its row has once the call is run on it, shape (pairs,).
    """
    bin_of_code, bins = _bins(cells.domain, before)
    left, right = bin_of_code[before], bin_of_code[after]
    single = bins == cells.domain.size
    stays = np.zeros(len(before), dtype=bool) if single else before == after
    moved = np.bincount(left[~stays] * bins + right[~stays], minlength=bins * bins).reshape(bins, bins) + SMOOTHING
    kept = np.zeros(bins) if single else np.bincount(left[stays], minlength=bins) + SMOOTHING
    total = moved.sum(axis=1) + kept
    marginal = np.bincount(right, minlength=bins) + SMOOTHING * bins
    marginal = marginal / marginal.sum()
    ratio = np.log(moved / total[:, None]) - np.log(marginal)
    if single:
        return partial(_by_bin, ratio, bin_of_code, bin_of_code[cells.codes])
    # P(y) of one value, not of its bin: the share of the released rows that hold it
    share = np.bincount(after, minlength=cells.domain.size) + SMOOTHING
    stay = np.log(kept / total)[bin_of_code] - np.log(share / share.sum())
    return partial(_by_bin_or_equal, ratio, bin_of_code, cells, stay)


def _bins(domain: Attribute, codes: CodeArray) -> tuple[IntArray, int]:
    """Bin of each code, and how many there are."""
    size, special = domain.size, domain.special_from
    if domain.kind == "ordered" and size > BINS:
        bins = quantile_bins(np.bincount(codes, minlength=size)[:special], BINS, len(codes))
        number = np.concatenate([bins, bins.max(initial=-1) + 1 + np.arange(size - special)])
        return number, int(number.max()) + 1
    if size > MOST_NAMES:
        return np.zeros(size, dtype=np.int64), 1
    return np.arange(size, dtype=np.int64), size


def _by_bin(ratio: FloatArray, bin_of_code: IntArray, bin_of_cell: IntArray, values: CodeArray) -> FloatArray:
    scores: FloatArray = ratio[bin_of_code[values]][:, bin_of_cell]
    return scores


def _by_bin_or_equal(
    ratio: FloatArray, bin_of_code: IntArray, cells: PublishedCells, stay: FloatArray, values: CodeArray
) -> FloatArray:
    scores: FloatArray = np.where(
        cells.covered(values), stay[values][:, None], ratio[bin_of_code[values]][:, bin_of_code[cells.codes]]
    )
    return scores
