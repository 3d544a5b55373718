"""k-medoids on small distance matrices."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.slicing.columns import pam, related_columns
from tests.reference.merging import attribute, best_medoids


def _distances(rng: np.random.Generator, items: int) -> np.ndarray:
    half = np.triu(rng.random((items, items)), 1)
    return half + half.T


def test_every_item_is_with_its_nearest_medoid() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        distance = _distances(rng, 7)
        medoid = pam(distance, 3)
        chosen = np.unique(medoid)
        assert len(chosen) == 3
        assert np.allclose(distance[np.arange(7), medoid], distance[:, chosen].min(axis=1))


def test_no_single_exchange_of_medoids_would_be_better() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        distance = _distances(rng, 6)
        chosen = np.unique(pam(distance, 2)).tolist()
        cost = distance[:, chosen].min(axis=1).sum()
        for keep in chosen:
            for other in set(range(6)) - set(chosen):
                assert distance[:, [keep, other]].min(axis=1).sum() >= cost - 1e-9


def test_well_separated_clusters_are_found_at_least_cost() -> None:
    place = np.array([0.0, 0.1, 0.2, 5.0, 5.1, 9.0])
    distance = np.abs(place[:, None] - place[None, :])
    medoid = pam(distance, 3)
    assert medoid.tolist() == [1, 1, 1, 3, 3, 5]
    assert distance[np.arange(6), medoid].sum() == best_medoids(distance, 3)


def test_equal_distances_give_the_smallest_indices() -> None:
    assert np.unique(pam(np.ones((5, 5)) - np.eye(5), 2)).tolist() == [0, 1]


def test_related_attributes_share_a_column_and_keep_their_order() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    columns = [attribute("a", a.tolist()), attribute("b", b.tolist()), attribute("a2", (3 - a).tolist())]
    assert related_columns(columns, 2) == (("a", "a2"), ("b",))
    assert related_columns(columns, 9) == (("a",), ("b",), ("a2",))
    assert related_columns([], 2) == ()
