"""Estimates from randomized counts: unbiased, with the right spread, projected where asked."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.randomized.channel import Channel, invert
from duckdb_anon.randomized.query import Factor, cell_weights, estimate_ratio, estimate_total, value_weights
from duckdb_anon.randomized.reconstruct import count_cells, count_variance, project, smooth
from tests.reference.randomized import PAPER_TABLE, channel_matrix, nearest_on_simplex, rows_of

CHANNELS = [Channel(2, 0.8), Channel(3, 0.7)]
ROWS = rows_of(PAPER_TABLE * 5)


def draws(runs: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(17)
    return [[c.distort(codes, rng) for c, codes in zip(CHANNELS, ROWS, strict=True)] for _ in range(runs)]


def test_estimated_counts_are_unbiased_and_spread_as_said() -> None:
    released = [count_cells(columns, [2, 3]) for columns in draws(1500)]
    estimates = np.array([invert(r, CHANNELS) for r in released])
    variance = np.mean([count_variance(r, CHANNELS, population=False) for r in released], axis=0)
    error = estimates.std(0) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(0) - PAPER_TABLE * 5) < 4 * error).all()
    np.testing.assert_allclose(variance, estimates.var(0), rtol=0.12)


def test_population_variance_adds_the_sampling_of_records() -> None:
    released = count_cells(draws(1)[0], [2, 3])
    within, beyond = (count_variance(released, CHANNELS, population=flag) for flag in (False, True))
    estimate = invert(released, CHANNELS)
    np.testing.assert_allclose(beyond - within, estimate - estimate**2 / released.sum())


def test_untouched_attributes_have_no_error() -> None:
    released = count_cells(ROWS, [2, 3])
    assert (count_variance(released, [Channel(2, 1.0), Channel(3, 1.0)], population=False) == 0).all()


def test_projections_are_distributions_and_the_euclidean_one_is_nearest() -> None:
    raw = np.array([0.6, 0.35, 0.2, -0.1, -0.05])
    for how in ("clip", "euclidean"):
        found = project(raw, how)
        assert found.sum() == pytest.approx(1.0)
        assert found.min() >= 0
    np.testing.assert_allclose(project(raw * 40, "euclidean"), nearest_on_simplex(raw), atol=1e-12)
    np.testing.assert_allclose(project(raw), np.array([0.6, 0.35, 0.2, 0, 0]) / 1.15)


def test_smoothing_leaves_no_empty_cell_and_sums_to_one() -> None:
    found = smooth(np.array([0.75, 0.25, 0.0]), 100)
    assert found.sum() == pytest.approx(1.0)
    assert found[2] == pytest.approx(0.5 / 101.5)


def test_value_weights_are_a_column_of_the_inverse() -> None:
    channel = Channel(4, 0.6)
    inverse = np.linalg.inv(channel_matrix(4, 0.6))
    np.testing.assert_allclose(cell_weights(channel), inverse, atol=1e-12)
    wanted = np.array([1.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(value_weights(wanted, channel), wanted @ inverse, atol=1e-12)


def _factors(columns: list[np.ndarray], *values: list[float]) -> list[Factor]:
    return [Factor(c, np.array(v, dtype=float), ch) for c, v, ch in zip(columns, values, CHANNELS, strict=True)]


@pytest.mark.parametrize(
    ("gender", "disease", "plain"),
    [([0, 1], [1, 0, 0], False), ([1, 1], [0, 1, 1], True), ([0, 1], [2.0, 5.0, 7.0], True)],
)
def test_totals_are_unbiased_with_intervals_that_cover(gender: list[float], disease: list[float], plain: bool) -> None:
    cost = np.random.default_rng(2).gamma(2.0, 3.0, len(ROWS[0])) if plain else np.ones(len(ROWS[0]))
    truth = float((np.array(gender)[ROWS[0]] * np.array(disease)[ROWS[1]] * cost).sum())
    found = [estimate_total(_factors(columns, gender, disease), cost) for columns in draws(1200)]
    values = np.array([f.value for f in found])
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(len(values))
    assert np.mean([f.variance for f in found]) == pytest.approx(values.var(), rel=0.12)
    covered = np.mean([f.interval[0] <= truth <= f.interval[1] for f in found])
    assert 0.92 < covered < 0.975


def test_means_have_intervals_that_cover() -> None:
    gender, disease = [0.0, 1.0], [2.0, 5.0, 7.0]
    plain = np.ones(len(ROWS[0]))
    above = np.array(gender)[ROWS[0]] * np.array(disease)[ROWS[1]]
    truth = above.sum() / np.array(gender)[ROWS[0]].sum()
    found = [estimate_ratio(_factors(c, gender, disease), _factors(c, gender, [1, 1, 1]), plain) for c in draws(800)]
    covered = np.mean([f.interval[0] <= truth <= f.interval[1] for f in found])
    assert 0.92 < covered < 0.98


def test_a_query_over_untouched_columns_is_exact() -> None:
    found = estimate_total([], np.array([1.0, 2.0, 3.0]))
    assert (found.value, found.variance) == (6.0, 0.0)
