"""Group requirements against worked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.partition import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
)
from tests.reference import mondrian as slow


def groups(*counts: tuple[int, ...]) -> Groups:
    """Groups with these counts of sensitive values 0, 1, 2, ..."""
    group = np.repeat(np.arange(len(counts)), [sum(c) for c in counts])
    code = np.concatenate([np.repeat(np.arange(len(c)), c) for c in counts])
    return Groups(group, code, np.bincount(code))


def held(requirement, *counts):
    return requirement.holds(groups(*counts)).tolist()


def test_frequency_diversity_bounds_the_largest_share_exactly():
    assert held(FrequencyDiversity(2), (2, 1, 1), (2, 1), (1, 1)) == [True, False, True]
    assert held(FrequencyDiversity(1 / 0.3), (3, 3, 3, 1), (4, 3, 3)) == [True, False]


def test_effective_entropy_of_known_shares():
    got = EntropyDiversity(1).effective(groups((2, 1, 1), (5, 3, 2)))
    assert got == pytest.approx([2.8284, 2.8001], abs=1e-4)


def test_uniform_entropy_is_not_lost_to_rounding():
    assert held(EntropyDiversity(3), (1, 1, 1), (7, 7, 7)) == [True, True]


@pytest.mark.parametrize(("c", "least", "expected"), [(2, 2, True), (1, 2, False), (2, 3, False), (2, 4, False)])
def test_recursive_diversity_is_strict(c, least, expected):
    assert held(RecursiveDiversity(c, least), (5, 3, 2)) == [expected]


@pytest.mark.parametrize(("values", "ordered", "equal"), [((0, 1, 2), 0.375, 0.6667), ((3, 5, 8), 0.1667, 0.6667)])
def test_closeness_of_salaries_as_published(values, ordered, equal):
    one = Groups(np.zeros(3, dtype=np.int64), np.array(values), np.ones(9, dtype=np.int64))
    assert TCloseness(0, "ordered").distance(one) == pytest.approx([ordered], abs=1e-4)
    assert TCloseness(0, "equal").distance(one) == pytest.approx([equal], abs=1e-4)


def test_closeness_over_a_tree():
    tree = [(leaf, leaf[0].upper(), "root") for leaf in ("a1", "a2", "b1", "b2", "c1", "c2")]
    place = slow.attribute("place", [path[0] for path in tree], "hierarchy", tree)
    requirement = TCloseness(0.1, "hierarchical", place.hierarchy, place.leaf_of_code)
    pairs = Groups(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 2]), np.ones(6, dtype=np.int64))
    assert requirement.distance(pairs) == pytest.approx([2 / 3, 1 / 2])


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (KAnonymity(11), "k = 11 was requested; the largest k this table can meet is 10"),
        (FrequencyDiversity(5), "l = 5 was requested; the largest l this table can meet is 2"),
        (DistinctDiversity(4), "l = 4 was requested; the largest l this table can meet is 3"),
        (EntropyDiversity(4), "l = 4 was requested; the largest l this table can meet is 2.8"),
        (RecursiveDiversity(1, 2), "with this l the table needs a c above 1"),
        (RecursiveDiversity(9, 4), "the largest l this table can meet is 3"),
    ],
)
def test_failure_says_how_far_the_table_can_go(requirement, message):
    assert message in requirement.best_achievable(groups((5, 3, 2)))
