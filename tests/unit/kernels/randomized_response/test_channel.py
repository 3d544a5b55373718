"""Channels and their mode products against full matrices."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.randomized_response.channel import (
    RetentionChannel,
    expected_squared_error,
    inverse_terms,
    project,
    smooth,
    transform,
    transform_squared,
)
from duckdb_anon.model.errors import ParameterError
from tests.reference.randomized import PAPER_TABLE, channel_matrix, kronecker, nearest_on_simplex

SIZES, SHARES = [2, 3, 4], [0.8, 0.55, 0.4]
CHANNELS = [RetentionChannel(d, p) for d, p in zip(SIZES, SHARES, strict=True)]
CELLS = np.random.default_rng(3).random(SIZES)


@pytest.mark.parametrize(
    ("size", "p", "norm"), [(2, 0.7, 7.25), (3, 0.6, 13.5), (5, 0.35, 114.777778), (16, 0.4, 116.740741), (1, 0.3, 1)]
)
def test_inverse_norm_of_worked_channels(size: int, p: float, norm: float) -> None:
    assert RetentionChannel(size, p).inverse_norm == pytest.approx(norm, abs=1e-6)
    assert (np.linalg.inv(channel_matrix(size, p)) ** 2).sum() == pytest.approx(norm, abs=1e-6)


def test_mode_products_equal_the_full_kronecker_product() -> None:
    full = kronecker(SIZES, SHARES)
    for product, matrix in ((transform, full), (transform_squared, full**2)):
        expected = (matrix @ CELLS.ravel()).reshape(SIZES)
        np.testing.assert_allclose(product(CELLS, CHANNELS), expected, rtol=1e-12, atol=1e-12)


def test_a_channel_that_forgets_everything_cannot_be_inverted() -> None:
    with pytest.raises(ParameterError, match=r"p must differ from 0\.25"):
        inverse_terms(RetentionChannel(4, 0.25))


def test_expected_squared_error_of_the_example() -> None:
    channels = [RetentionChannel(2, 0.8), RetentionChannel(3, 0.7)]
    assert expected_squared_error(channels, 100) == pytest.approx(0.037925, abs=1e-6)
    inverse = np.linalg.inv(kronecker([2, 3], [0.8, 0.7]))
    shares = PAPER_TABLE.ravel() / 100
    released = np.linalg.inv(inverse) @ shares
    covariance = (inverse @ np.diag(released) @ inverse.T - np.diag(shares)) / 100
    assert np.trace(covariance) == pytest.approx(0.037925, abs=1e-6)


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
