"""Kernels that answer whole workloads, against one query at a time."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.queries.selectivity import Intervals, Members
from duckdb_anon.measures.queries.workload import Workload


def random_workload(rng: np.random.Generator, domains: list[int], n: int) -> Workload:
    matches = tuple(rng.random((n, d)) < 0.4 for d in domains)
    used = np.ones((n, len(domains)), dtype=bool)
    return Workload(tuple("abc"[: len(domains)]), (False,) * len(domains), used, matches)


def test_group_rows_survives_products_of_domains_beyond_64_bits() -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2**31 - 3, 50).astype(np.int32) for _ in range(5)]
    twice = [np.concatenate([c, c]) for c in columns]
    group, first = keys_of(twice)
    assert len(first) == 50
    assert (group[:50] == group[50:]).all()


def intervals(lower: list[float], upper: list[float], step: float) -> Intervals:
    places = np.arange(10, dtype=np.float64)
    # cells of no rows teach nothing, so their values are even
    return Intervals(np.array(lower), np.array(upper), places, np.arange(10), step, np.zeros(len(lower)))


ASKED = np.zeros((1, 10), dtype=bool)
ASKED[0, 3:7] = True


def test_counted_intervals_share_by_number_of_values() -> None:
    shares = intervals([0, 3, 6, 8], [9, 6, 9, 9], 1.0).shares(ASKED, True)
    assert np.allclose(shares[:, 0], [0.4, 1, 0.25, 0])


def test_measured_intervals_share_by_length_and_points_count_when_inside() -> None:
    shares = intervals([0, 5, 6, 8], [9, 5, 8, 8], 0.0).shares(ASKED, True)
    assert np.allclose(shares[:, 0], [3 / 9, 1, 0, 0])


def test_null_is_never_asked_for_and_unknown_covers_everything_and_null() -> None:
    shares = intervals([np.nan, np.nan, 0], [5, np.nan, 9], 1.0).shares(ASKED, True)
    assert np.allclose(shares[:, 0], [0, 4 / 11, 0.4])


def test_sets_of_values_count_members_not_gaps() -> None:
    asked = np.zeros((1, 10), dtype=bool)
    asked[0, [2, 9]] = True
    assert np.allclose(intervals([0], [3], 1.0).shares(asked, False), 0.25)


def test_members_share_by_count_and_sum_by_value() -> None:
    bags = Members(np.array([0, 2, 2, 5]), np.array([0, 1, 1, 2, -1]), np.array([3.0, 1, 1, 1, 2]))
    asked = np.array([[True, False, True]])
    assert np.allclose(bags.shares(asked, False)[:, 0], [0.75, 0, 0.25])
    valued = Members(bags.offsets, bags.codes, bags.counts, np.array([10.0, 20, 30]))
    assert np.allclose(valued.shares(asked, False)[:, 0], [7.5, 0, 7.5])
