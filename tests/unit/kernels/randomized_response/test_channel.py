"""Channels and their mode products against full matrices."""

import numpy as np
import pytest

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, smooth
from duckdb_anon.kernels.randomized_response.risk import RiskModel, occupied_cells, require_dense
from duckdb_anon.model.errors import ParameterError
from tests.reference.randomized import channel_matrix, model_of, reconstruction, risk


def test_smoothing_leaves_no_empty_cell_and_sums_to_one():
    found = smooth(np.array([0.75, 0.25, 0.0]), 100)
    assert found.sum() == pytest.approx(1.0)
    assert found[2] == pytest.approx(0.5 / 101.5)


def test_risk_equals_its_definition_on_a_sparse_table():
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 4, (3, 2, 4)) * (rng.random((3, 2, 4)) < 0.6)
    model = model_of(counts)
    found = model.risks([RetentionChannel(3, 0.7), RetentionChannel(2, 0.9)], [RetentionChannel(4, 0.5)])[0]
    table, dense = model.tables[0], np.zeros(counts.shape)
    dense[(*table.cell_codes[:, table.pair_cell], table.pair_value)] = found
    np.testing.assert_allclose(dense, risk(counts, [0.7, 0.9], 0.5), atol=1e-12)


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
