"""Distances and the gaps they are rebuilt from."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables.lp_grouping import find_classes, pair_distance, spread
from tests.reference.cover_lp import distances, in_tree, nominal, ordered

TREE = in_tree([0, 1, 2, 3, 4, 5, 6, 7, 8], [3, 1, 5])


@pytest.mark.parametrize("attribute", [ordered([1, 4, 4, 9, 2.5]), nominal([3, 1, 2, 1]), TREE], ids=lambda a: a.kind)
def test_pair_distances_follow_the_definitions(attribute):
    first, second = np.indices((attribute.domain,) * 2).astype(np.int32)
    assert pair_distance(attribute, first, second) == pytest.approx(distances(attribute))


SPARSE_TREE = in_tree([7, 0, 4, 3], [3, 1, 5])


@pytest.mark.parametrize(
    "attribute", [ordered([1, 4, 9, 2.5]), nominal([3, 1, 2]), TREE, SPARSE_TREE], ids=lambda a: a.kind
)
def test_gaps_between_neighbours_give_back_every_distance(attribute):
    classes = find_classes(attribute, np.zeros(len(attribute.codes), dtype=np.int64))
    rebuilt = spread(attribute.kind, classes.gaps[None, :-1])[0]
    assert rebuilt == pytest.approx(distances(attribute)[np.ix_(classes.code, classes.code)])


def test_gaps_do_not_overflow_for_numbers_of_any_size():
    attribute = ordered([-1.7e308, 0.0, 1.7e308])
    first, last = np.array([0], dtype=np.int32), np.array([2], dtype=np.int32)
    assert np.isfinite(pair_distance(attribute, first, last)).all()
