"""Noisy histograms, and exchanges towards tables of different sizes."""

import numpy as np
import pytest

from duckdb_anon.kernels.differential_privacy.count_errors import count_error
from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms
from duckdb_anon.kernels.differential_privacy.noisy_histograms import (
    Histogram,
    NoisyCounts,
    Numbers,
    drawn,
    of_numbers,
)
from duckdb_anon.kernels.differential_privacy.synthesis import _counts, _exchange, _Table, records_like

pytest.importorskip("opendp", reason="the dp extra is not installed")


def asked(seed: int = 0) -> NoisyCounts:
    """Repeatable noise."""
    return NoisyCounts(Ledger(1e9), 1, Mechanisms("f", np.random.default_rng(seed)))


@pytest.mark.parametrize("bounds", [None, (0.0, 100_000.0)])
@pytest.mark.parametrize("whole", [True, False])
def test_a_histogram_of_numbers_has_their_sum_though_few_are_large(bounds, whole):
    rng = np.random.default_rng(1)
    numbers = np.concatenate(
        [np.zeros(4000), rng.integers(1, 3000, 5000), rng.integers(40_000, 90_000, 400), [np.nan] * 900]
    )
    histogram = of_numbers(Numbers(numbers, bounds, whole), asked(), 0.05, 10300.0)
    assert histogram.counts.sum() == pytest.approx(10300)
    assert histogram.counts[-1] == pytest.approx(900, abs=40)
    made = drawn(
        histogram, np.repeat(np.arange(len(histogram.counts)), np.rint(histogram.counts).astype(int)), rng, whole=whole
    )
    assert np.nansum(made) == pytest.approx(np.nansum(numbers), rel=0.12)
    assert not whole or (made[~np.isnan(made)] % 1 == 0).all()


def test_exchanges_keep_every_column_and_bring_pairs_and_triples_nearer_at_once():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 3, 900)
    true = [a, (a + rng.integers(0, 2, 900)) % 4, rng.integers(0, 2, 900), a // 2]
    widths = [3, 4, 2, 2]
    cells = np.stack([rng.permutation(column) for column in true], axis=1)
    before, made = cells.copy(), cells.astype(np.int8)
    chosen = [(0, 1), (0, 2, 3), (1, 3)]
    tables = {c: _Table(_counts(c, true, widths).reshape([widths[k] for k in c]).astype(float), 1.0) for c in chosen}
    margins = [np.bincount(column, minlength=w).astype(float) for column, w in zip(true, widths, strict=True)]
    _exchange(tables, margins, 900.0, made, cells, rng)
    assert (cells == made).all()
    assert (np.sort(cells, axis=0) == np.sort(before, axis=0)).all()
    for c in chosen:
        assert (
            np.abs(_counts(c, list(cells.T), widths) - _counts(c, true, widths)).sum()
            < 0.1 * np.abs(_counts(c, list(before.T), widths) - _counts(c, true, widths)).sum()
        )


def test_a_single_column_and_columns_of_one_value_make_records():
    one = Histogram(np.zeros(50, dtype=np.int64), np.array([50.0, 0.0]), ordered=False)
    for columns in ([one], [one, one, one]):
        made = records_like(columns, asked(), 0.1, 50.0, np.random.default_rng(1))
        assert [len(column) for column in made] == [50] * len(columns)
        assert all((column == 0).all() for column in made)


@pytest.mark.parametrize("rho", [0.001, 0.05])
def test_the_error_of_a_random_sample_is_found(rho):
    rng = np.random.default_rng(4)
    first = rng.integers(0, 40, 30_000)
    true = [first, (first + rng.integers(0, 9, 30_000)) % 30, rng.integers(0, 6, 30_000)]
    counts = [np.bincount(column, minlength=41).astype(float) for column in true]
    histograms = [Histogram(c, n, ordered=k < 2) for k, (c, n) in enumerate(zip(true, counts, strict=True))]
    rows = rng.integers(0, 30_000, 30_000)
    error = count_error(histograms, [column[rows] for column in true], asked(), rho, rng)
    found = [error.factor * n**error.power * error.per_column**d / n for n, d in ((300, 2), (3000, 2), (3000, 1))]
    assert all(0.8 < ratio < 4 for ratio in found), found
    far = count_error(histograms, [rng.permutation(column) for column in true], asked(), rho, rng)
    assert far.factor * 3000**far.power * far.per_column**2 > 4 * 3000
