"""Requirements against the composition attack, with the figures they were checked by."""

import numpy as np
import pytest

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.slicing.chance import (
    CommonValue,
    LinkableValues,
    Population,
    belief,
    largest_rate,
    poisson_binomial_tail,
)


@pytest.mark.parametrize(
    ("alpha", "chance", "rate"), [(0.5, 0.6, 0.61237), (0.3, 0.8704, 0.52123), (0.25, 0.5, 0.37796), (1, 0.1, 1.0)]
)
def test_the_largest_rate_meets_the_belief_exactly(alpha, chance, rate):
    assert largest_rate(alpha, chance) == pytest.approx(rate, abs=5e-6)
    if alpha < 1:
        assert belief(largest_rate(alpha, chance), np.array([chance]))[0] == pytest.approx(alpha)


def test_a_value_that_cannot_occur_elsewhere_gives_certainty():
    assert belief(0.3, np.array([0.0])).tolist() == [1.0]
    assert largest_rate(0.5, 0.0) == 0.0


def _groups(*sizes: tuple[int, int, int]) -> Groups:
    group = np.concatenate([np.full(sum(c), g) for g, c in enumerate(sizes)])
    codes = np.concatenate([np.repeat([0, 1, 2], c) for c in sizes])
    return Groups(group, codes, np.bincount(codes, minlength=4))


TAILS = {
    4: (0.9652, 0.6628, 0.1767), 6: (0.9935, 0.8367, 0.3296), 8: (0.9988, 0.9202, 0.4660), 10: (0.9998, 0.9603, 0.5779),
}  # fmt: skip


@pytest.mark.parametrize("m", [4, 6, 8, 10])
def test_tails_of_the_worked_example(m):
    groups = _groups((m - 2, 1, 1))
    population = Population(np.array([0.4, 0.2, 0.1, 0.3]))
    chance = population.occurrence(groups)
    if m == 4:
        assert chance == pytest.approx([0.8704, 0.5904, 0.3439], abs=5e-5)
    for d, expected in enumerate(TAILS[m], start=1):
        assert poisson_binomial_tail(chance, groups, d)[0] == pytest.approx(expected, abs=5e-5)
    assert LinkableValues(2, 0.9, population).holds(groups)[0] == (m >= 8)
    assert LinkableValues(3, 0.5, population).holds(groups)[0] == (m >= 10)


def test_belief_is_asked_of_every_value_in_the_group():
    requirement = CommonValue(0.5, 0.4, Population(np.array([0.5, 0.4, 0.1])))
    assert requirement.holds(_groups((3, 3, 0), (3, 2, 1), (30, 20, 10))).tolist() == [True, False, True]
