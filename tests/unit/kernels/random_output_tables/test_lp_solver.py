"""Programs of every kind against a general solver."""

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import lp_solver
from duckdb_anon.kernels.random_output_tables.lp_grouping import pair_distance
from duckdb_anon.kernels.random_output_tables.lp_solver import Rays, cheapest_rays
from duckdb_anon.kernels.random_output_tables.output_tables import cover
from tests.reference.cover_lp import distances, merged_cost, ordered


def test_a_very_wide_group_costs_what_a_general_solver_says():
    attribute = ordered(np.random.default_rng(3).normal(size=90))
    tables = cover(attribute, np.zeros(90, dtype=np.int64), 0.3)
    assert tables.cost[0] == pytest.approx(merged_cost(distances(attribute), np.ones(90), 0.3), abs=1e-6)


def test_an_uncertified_program_is_handed_to_the_general_solver(monkeypatch):
    def give_up(distance, count, delta):
        return Rays(np.zeros(count.shape), np.zeros(distance.shape), np.zeros(len(count), dtype=bool))

    monkeypatch.setattr(lp_solver, "cheapest_rays", give_up)
    tables = cover(ordered([10, 10, 11, 14]), np.zeros(4, dtype=np.int64), 1 / 3)
    assert tables.cost[0] == pytest.approx(13 / 3)
    assert tables.max_ratio <= 1 / 3 + 1e-7


def test_a_batch_cut_short_reports_its_programs_as_unsolved(monkeypatch):
    monkeypatch.setattr(lp_solver, "_PROFIT", -1.0)
    rays = cheapest_rays(1.0 - np.eye(3)[None], np.array([[2.0, 2.0, 2.0]]), 0.25)
    assert not rays.solved.any()


def test_gaps_do_not_overflow_for_numbers_of_any_size():
    attribute = ordered([-1.7e308, 0.0, 1.7e308])
    first, last = np.array([0], dtype=np.int32), np.array([2], dtype=np.int32)
    assert np.isfinite(pair_distance(attribute, first, last)).all()
