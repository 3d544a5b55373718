"""DiffGen's scores and search."""

import numpy as np
import pytest

from duckdb_anon.kernels.differential_privacy.diffgen_search import split_scores, utility_of


def test_scores_of_the_worked_example():
    first, second = np.array([[30.0, 10], [5, 25]]), np.array([[20.0, 15], [15, 20]])
    assert (utility_of(first, "max"), utility_of(second, "max")) == (55, 40)
    assert utility_of(first, "infogain") == pytest.approx(0.25783, abs=5e-6)
    assert utility_of(second, "infogain") == pytest.approx(0.01477, abs=5e-6)


@pytest.mark.parametrize("utility", ["max", "infogain"])
def test_scores_of_splits_are_those_of_the_children(utility):
    rng = np.random.default_rng(0)
    values, classes = rng.integers(0, 6, 40).astype(float), rng.integers(0, 3, 40)
    points = np.arange(-0.75, 9.0, 0.25)
    scores = split_scores(values, classes, 3, points, utility)
    for point, score in zip(points, scores, strict=True):
        left = values < point
        counts = np.array([np.bincount(classes[side], minlength=3) for side in (left, ~left)]).astype(float)
        assert score == pytest.approx(utility_of(counts, utility))
