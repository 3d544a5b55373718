"""Cutting wide groups."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.random_output_tables.lp_grouping import find_classes
from duckdb_anon.kernels.random_output_tables.pieces import cut_wide_groups
from tests.reference.cover_lp import ordered


def test_narrow_groups_are_left_whole():
    classes = find_classes(ordered([1, 2, 3, 1, 5, 6]), np.repeat([0, 1], 3))
    assert cut_wide_groups(classes, 2, 3).tolist() == classes.first.tolist()


def test_every_piece_keeps_enough_records_and_stays_inside_its_group():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2, 4], [12, 90, 7, 55])
    classes = find_classes(ordered(rng.integers(0, 60, len(group))), group)
    first = cut_wide_groups(classes, 6, 5)
    rows = np.diff(classes.starts[first])
    assert (rows[rows > 0] >= 6).all()
    assert set(classes.first.tolist()) <= set(first.tolist())
    assert len(first) > len(classes.first)


def test_a_cut_goes_to_the_widest_gap_with_nothing_left_over():
    classes = find_classes(ordered([0, 1, 2, 10, 11, 12, 13, 30]), np.zeros(8, dtype=np.int64))
    assert cut_wide_groups(classes, 3, 5).tolist() == [0, 3, 8]


def test_a_group_without_room_for_two_pieces_stays_wide():
    classes = find_classes(ordered(np.arange(9.0)), np.zeros(9, dtype=np.int64))
    assert cut_wide_groups(classes, 5, 4).tolist() == [0, 9]
