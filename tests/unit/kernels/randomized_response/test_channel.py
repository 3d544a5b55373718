"""Channels and their mode products against full matrices."""

import numpy as np
import pytest

from duckdb_anon.kernels.randomized_response.channel import (
    RetentionChannel,
    inverse_terms,
    project,
    smooth,
)
from duckdb_anon.kernels.randomized_response.risk import (
    RiskModel,
    occupied_cells,
    require_dense,
)
from duckdb_anon.model.errors import ParameterError
from tests.reference.randomized import (
    channel_matrix,
    nearest_on_simplex,
    reconstruction,
    risk,
    rows_of,
)


def test_a_channel_that_forgets_everything_cannot_be_inverted():
    with pytest.raises(ParameterError, match=r"p must differ from 0\.25"):
        inverse_terms(RetentionChannel(4, 0.25))


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


@pytest.mark.parametrize("prior", ["cell", "marginal"])
def test_risk_equals_its_definition_on_a_sparse_table(prior):
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 4, (3, 2, 4)) * (rng.random((3, 2, 4)) < 0.6)
    model = model_of(counts, prior)
    found = model.risks([RetentionChannel(3, 0.7), RetentionChannel(2, 0.9)], [RetentionChannel(4, 0.5)])[0]
    np.testing.assert_allclose(dense(model, found), risk(counts, [0.7, 0.9], 0.5, prior), atol=1e-12)


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
