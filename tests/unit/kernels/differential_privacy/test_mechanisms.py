"""Choices by noisy max: their probabilities, against the definition, and their privacy on neighbouring scores."""

from itertools import permutations

import numpy as np
import pytest

from duckdb_anon.kernels.differential_privacy import mechanisms as mechanisms_module
from duckdb_anon.kernels.differential_privacy.mechanisms import Mechanisms
from duckdb_anon.model.progress import Interrupted, new_flag, stopped_by


def permute_and_flip(scores: np.ndarray, epsilon: float) -> np.ndarray:
    """Probability of each candidate: in random order, each is taken with exp(epsilon (u - max) / 2)."""
    taken = np.exp(epsilon * (scores - scores.max()) / 2)
    found, orders = np.zeros(len(scores)), list(permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for candidate in order:
            found[candidate] += left * taken[candidate]
            left *= 1 - taken[candidate]
    return found


@pytest.mark.parametrize("generator", [None, np.random.default_rng(1)])
def test_choices_are_those_of_permute_and_flip(generator):
    scores, mechanisms = np.array([3.0, 0.0, 2.0]), Mechanisms("f", generator)
    drawn = np.bincount([mechanisms.choose(scores, 1.0, 1.0)[0] for _ in range(1500)], minlength=3)
    expected = 1500 * permute_and_flip(scores, 1.0)
    assert float(((drawn - expected) ** 2 / expected).sum()) < 18.4  # 0.9999 quantile, 2 degrees of freedom


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.7, 8.0])
def test_no_use_loses_more_than_it_may(epsilon):
    assert Mechanisms("f").choose(np.array([1e7, 1e7]), epsilon, 1.0)[1] <= epsilon
    assert Mechanisms("f").choose(np.array([0.1, 0.2]), epsilon, np.log2(3))[1] <= epsilon
    assert Mechanisms("f").counts(np.arange(3), epsilon, 2)[1] <= epsilon


def test_counts_are_drawn_in_pieces_between_which_a_call_stops():
    counts = np.arange(2 * mechanisms_module._PIECE + 5)
    noisy, loss = Mechanisms("f").counts(counts, 40.0)
    assert loss <= 40.0 and np.abs(noisy - counts).max() <= 2
    flag = new_flag()
    flag[0] = 1
    with stopped_by(flag), pytest.raises(Interrupted):
        Mechanisms("f").counts(counts, 40.0)
