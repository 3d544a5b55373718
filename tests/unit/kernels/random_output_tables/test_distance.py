"""Distances and the gaps they are rebuilt from."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.random_output_tables.lp_grouping import pair_distance
from tests.reference.cover_lp import ordered


def test_gaps_do_not_overflow_for_numbers_of_any_size():
    attribute = ordered([-1.7e308, 0.0, 1.7e308])
    first, last = np.array([0], dtype=np.int32), np.array([2], dtype=np.int32)
    assert np.isfinite(pair_distance(attribute, first, last)).all()
