"""The exponential mechanism: its probabilities, and its privacy on neighbouring scores."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.differential_privacy.mechanisms import choice_probabilities, choose, choose_point


def test_probabilities_of_the_worked_example() -> None:
    assert choice_probabilities(np.array([55.0, 40.0]), 0.125, 1.0)[0] == pytest.approx(0.71859, abs=5e-6)
    assert choice_probabilities(np.array([0.25783, 0.01477]), 0.125, 1.0)[0] == pytest.approx(0.50380, abs=5e-6)


def test_large_scores_do_not_overflow_and_forbidden_candidates_are_never_picked() -> None:
    probability = choice_probabilities(np.array([1e7, 1e7, -np.inf]), 10.0, 1.0)
    assert probability.tolist() == [0.5, 0.5, 0.0]


def test_scores_that_differ_by_the_sensitivity_change_probabilities_by_at_most_epsilon() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.integers(0, 30, 6).astype(float)
        moved = scores + rng.integers(-1, 2, 6)
        ratio = np.log(choice_probabilities(scores, 0.4, 1.0) / choice_probabilities(moved, 0.4, 1.0))
        assert np.abs(ratio).max() <= 0.4 + 1e-12


def test_choices_follow_the_probabilities() -> None:
    rng = np.random.default_rng(1)
    scores = np.array([3.0, 1.0, 0.0])
    drawn = np.bincount([choose(scores, 1.0, 1.0, rng) for _ in range(6000)], minlength=3)
    expected = 6000 * choice_probabilities(scores, 1.0, 1.0)
    assert float(((drawn - expected) ** 2 / expected).sum()) < 13.8  # 0.999 quantile, 2 degrees of freedom


def test_points_are_drawn_by_score_and_length() -> None:
    rng = np.random.default_rng(2)
    edges, scores = np.array([0.0, 1.0, 1.0, 4.0]), np.array([2.0, 50.0, 0.0])
    points = np.array([choose_point(edges, scores, 1.0, 1.0, rng) for _ in range(6000)])
    assert points.min() >= 0 and points.max() <= 4
    weight = np.array([1.0 * np.exp(1.0), 3.0])  # the piece without length is never picked
    left = 6000 * weight[0] / weight.sum()
    assert abs((points < 1).sum() - left) < 4 * np.sqrt(left)
    right = points[points >= 1]
    assert abs(right.mean() - 2.5) < 0.1
