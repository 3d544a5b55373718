"""Raw estimates become distributions."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.randomized_response.reconstruct import project, smooth
from tests.reference.randomized import nearest_on_simplex


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
