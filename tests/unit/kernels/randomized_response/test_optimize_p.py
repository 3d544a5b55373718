"""Optimal parameters: the worked optima, a grid, infeasible requests."""

import numpy as np
import pytest

from duckdb_anon.kernels.randomized_response.optimize_p import Problem, optimal_channels
from duckdb_anon.kernels.randomized_response.risk import RiskModel, occupied_cells
from tests.reference.randomized import model_of, risk


def problem_of(counts: np.ndarray, limit: float, scope: str = "both", **options: object) -> Problem:
    return Problem(model_of(counts), limit, scope, **options)


def test_min_count_and_mean_relax_the_bound():
    counts = np.array([[5, 5, 5], [1, 0, 0]])
    left_out = problem_of(counts, 1 / 4, "sensitive", min_count=2)
    assert left_out.excluded_share() == pytest.approx(1 / 16)
    assert 1 / 3 < optimal_channels(left_out, "rr_distort")[1].p < 1
    mean = optimal_channels(problem_of(counts, 1 / 4, "sensitive", target="mean"), "rr_distort")
    found = risk(counts, [1], mean[1].p)
    assert (found * counts).sum() / counts.sum() == pytest.approx(1 / 4, abs=1e-9)


def test_two_sensitive_attributes_are_both_held_to_the_bound():
    rng = np.random.default_rng(6)
    qi = [rng.integers(0, 3, 400).astype(np.int32), rng.integers(0, 2, 400).astype(np.int32)]
    sensitive = [rng.integers(0, 4, 400).astype(np.int32), (rng.random(400) ** 2 * 3).astype(np.int32)]
    tables = tuple(occupied_cells(qi, [3, 2], s, size) for s, size in zip(sensitive, (4, 3), strict=True))
    problem = Problem(RiskModel(tables), 0.3)
    shares = [c.p for c in optimal_channels(problem, "rr_distort")]
    worst = []
    for s, size, own in zip(sensitive, (4, 3), shares[2:], strict=True):
        counts = np.zeros((3, 2, size), dtype=int)
        np.add.at(counts, (*qi, s), 1)
        worst.append(risk(counts, shares[:2], own).max())
    assert max(worst) == pytest.approx(0.3, abs=1e-6)
    assert max(worst) <= 0.3 + 1e-12
