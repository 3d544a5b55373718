"""Channels and their mode products against full matrices."""

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
from duckdb_anon.kernels.randomized_response.risk import (
    RiskModel,
    occupied_cells,
    reconstruction_probability,
    require_dense,
)
from duckdb_anon.model.errors import ParameterError
from tests.reference.randomized import (
    PAPER_TABLE,
    channel_matrix,
    kronecker,
    nearest_on_simplex,
    reconstruction,
    risk,
    rows_of,
)

SIZES, SHARES = [2, 3, 4], [0.8, 0.55, 0.4]
CHANNELS = [RetentionChannel(d, p) for d, p in zip(SIZES, SHARES, strict=True)]
CELLS = np.random.default_rng(3).random(SIZES)


@pytest.mark.parametrize(
    ("size", "p", "norm"), [(2, 0.7, 7.25), (3, 0.6, 13.5), (5, 0.35, 114.777778), (16, 0.4, 116.740741), (1, 0.3, 1)]
)
def test_inverse_norm_of_worked_channels(size, p, norm):
    assert RetentionChannel(size, p).inverse_norm == pytest.approx(norm, abs=1e-6)
    assert (np.linalg.inv(channel_matrix(size, p)) ** 2).sum() == pytest.approx(norm, abs=1e-6)


def test_mode_products_equal_the_full_kronecker_product():
    full = kronecker(SIZES, SHARES)
    for product, matrix in ((transform, full), (transform_squared, full**2)):
        expected = (matrix @ CELLS.ravel()).reshape(SIZES)
        np.testing.assert_allclose(product(CELLS, CHANNELS), expected, rtol=1e-12, atol=1e-12)


def test_a_channel_that_forgets_everything_cannot_be_inverted():
    with pytest.raises(ParameterError, match=r"p must differ from 0\.25"):
        inverse_terms(RetentionChannel(4, 0.25))


def test_expected_squared_error_of_the_example():
    channels = [RetentionChannel(2, 0.8), RetentionChannel(3, 0.7)]
    assert expected_squared_error(channels, 100) == pytest.approx(0.037925, abs=1e-6)
    inverse = np.linalg.inv(kronecker([2, 3], [0.8, 0.7]))
    shares = PAPER_TABLE.ravel() / 100
    released = np.linalg.inv(inverse) @ shares
    covariance = (inverse @ np.diag(released) @ inverse.T - np.diag(shares)) / 100
    assert np.trace(covariance) == pytest.approx(0.037925, abs=1e-6)


def test_projections_are_distributions_and_the_euclidean_one_is_nearest():
    raw = np.array([0.6, 0.35, 0.2, -0.1, -0.05])
    for how in ("clip", "euclidean"):
        found = project(raw, how)
        assert found.sum() == pytest.approx(1.0)
        assert found.min() >= 0
    np.testing.assert_allclose(project(raw * 40, "euclidean"), nearest_on_simplex(raw), atol=1e-12)
    np.testing.assert_allclose(project(raw), np.array([0.6, 0.35, 0.2, 0, 0]) / 1.15)


def test_smoothing_leaves_no_empty_cell_and_sums_to_one():
    found = smooth(np.array([0.75, 0.25, 0.0]), 100)
    assert found.sum() == pytest.approx(1.0)
    assert found[2] == pytest.approx(0.5 / 101.5)


def model_of(counts: np.ndarray, prior: str = "cell") -> RiskModel:
    *qi, sensitive = rows_of(counts)
    return RiskModel((occupied_cells(qi, counts.shape[:-1], sensitive, counts.shape[-1]),), prior)


def dense(model: RiskModel, found: np.ndarray) -> np.ndarray:
    table = model.tables[0]
    result = np.zeros((*table.sizes, table.sensitive_size))
    result[(*table.cell_codes[:, table.pair_cell], table.pair_value)] = found
    return result


@pytest.mark.parametrize(
    ("p", "sensitive", "qi", "both"),
    [
        (0.9, 0.193712, 0.203152, 0.157412),
        (0.8, 0.148925, 0.166752, 0.099334),
        (0.7, 0.114449, 0.140772, 0.064445),
        (0.6, 0.089318, 0.125192, 0.044728),
        (0.5, 0.072748, 0.120000, 0.034919),
        (1.0, 0.25, 0.25, 0.25),
    ],
)
def test_risks_of_the_example_table(p, sensitive, qi, both):
    model = model_of(PAPER_TABLE)
    for channels, expected in (((1, p), sensitive), ((p, 1), qi), ((p, p), both)):
        found = model.risks([RetentionChannel(2, channels[0])], [RetentionChannel(3, channels[1])])[0]
        assert dense(model, found)[1, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("prior", ["cell", "marginal"])
def test_risk_equals_its_definition_on_a_sparse_table(prior):
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 4, (3, 2, 4)) * (rng.random((3, 2, 4)) < 0.6)
    model = model_of(counts, prior)
    found = model.risks([RetentionChannel(3, 0.7), RetentionChannel(2, 0.9)], [RetentionChannel(4, 0.5)])[0]
    np.testing.assert_allclose(dense(model, found), risk(counts, [0.7, 0.9], 0.5, prior), atol=1e-12)


def test_reconstruction_is_not_that_of_the_merged_categories():
    found = reconstruction_probability(np.array([0.5, 0.3, 0.2]), [RetentionChannel(3, 0.6)])
    assert found[0] == pytest.approx(0.58393, abs=5e-6)
    np.testing.assert_allclose(found, reconstruction(np.array([0.5, 0.3, 0.2]), channel_matrix(3, 0.6)))


def test_without_qi_all_rows_are_one_cell():
    model = model_of(np.array([3, 1]))
    found = model.risks([], [RetentionChannel(2, 0.9)])[0]
    np.testing.assert_allclose(
        found, np.array([0.75, 0.25]) * reconstruction(np.array([0.75, 0.25]), channel_matrix(2, 0.9))
    )


def test_too_many_cells_say_what_to_do():
    with pytest.raises(ParameterError, match=r"bin the ordered attributes.*name fewer qi"):
        require_dense([1000, 1000, 1000])


def test_qi_left_alone_may_have_any_number_of_combinations():
    rng = np.random.default_rng(3)
    wide = [rng.permutation(60).astype(np.int32) for _ in range(5)]
    narrow, sensitive = rng.integers(0, 3, 60).astype(np.int32), rng.integers(0, 4, 60).astype(np.int32)
    table = occupied_cells([*wide, narrow], [10_000] * 5 + [3], sensitive, 4)
    found = RiskModel((table,)).risks(
        [*[RetentionChannel(10_000, 1.0)] * 5, RetentionChannel(3, 0.6)], [RetentionChannel(4, 1.0)]
    )[0]
    counts = np.zeros((60, 3, 4), dtype=int)
    np.add.at(counts, (wide[0], narrow, sensitive), 1)
    np.testing.assert_allclose(np.sort(found), np.sort(risk(counts, [1.0, 0.6], 1.0)[counts > 0]), atol=1e-12)
