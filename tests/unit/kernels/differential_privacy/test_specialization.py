"""DiffGen's scores and search."""

import itertools

import numpy as np
import pytest

from duckdb_anon.kernels.differential_privacy.diffgen_search import Budget, Predictor, Search, split_scores, utility_of
from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms
from tests.reference.merging import attribute, zip_tree


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


def _search(rounds: int, rng: np.random.Generator) -> Search:
    zips = [47301, 47302, 47901, 47902]
    tree = attribute("zip", [str(z) for z in zips], "hierarchy", zip_tree(zips))
    leaf = rng.integers(0, 4, 100)
    predictors = [
        Predictor(rng.uniform(0, 10, 100), 0, 10, numeric=True),
        Predictor(leaf.astype(float), 0, 4, tree.hierarchy),
        Predictor(rng.integers(0, 3, 100).astype(float), 0, 3),
    ]
    return Search(
        predictors, (leaf > 1).astype(np.int64), 2, Budget(20.0, 1, rounds), "max", Mechanisms("f", rng), Ledger(20.0)
    )


def test_cuts_always_cover_the_domain_and_records_are_in_their_nodes():
    for seed in range(10):
        search = _search(5, np.random.default_rng(seed))
        search.run()
        for predictor in search.predictors:
            ends = sorted((node.low, node.high) for node in predictor.cut)
            assert ends[0][0] == predictor.low and ends[-1][1] == predictor.high
            assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))
            low = np.array([node.low for node in predictor.cut])[predictor.node_of_record]
            high = np.array([node.high for node in predictor.cut])[predictor.node_of_record]
            assert np.all((low <= predictor.values) & (predictor.values <= high))
