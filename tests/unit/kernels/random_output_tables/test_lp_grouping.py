"""Classes of equal rows, pieces of wide groups, and programs that are the same up to shift, scale and direction."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import cover
from duckdb_anon.kernels.random_output_tables.lp_grouping import cut_wide_groups, find_classes, find_patterns
from tests.reference.cover_lp import in_tree, nominal, ordered


def test_classes_count_the_rows_of_each_group_and_value():
    attribute = ordered([5, 7, 5, 5, 9, 7])
    found = find_classes(attribute, np.array([1, 1, 1, 0, 0, 3]))
    assert found.group.tolist() == [0, 0, 1, 1, 3]
    assert attribute.positions[found.code].tolist() == [5, 9, 5, 7, 7]
    assert found.count.tolist() == [1, 1, 2, 1, 1]
    assert found.first.tolist() == [0, 2, 4, 4, 5]
    assert found.gaps.tolist() == [4, 0, 2, 0, 0]
    assert found.class_of_row.tolist() == [2, 3, 2, 0, 1, 4]
    assert found.group_of_row.tolist() == [1, 1, 1, 0, 0, 3]


def test_a_hierarchy_is_sorted_by_its_leaves_not_by_its_codes():
    found = find_classes(in_tree([8, 0, 4, 1], [3, 1, 5]), np.zeros(4, dtype=np.int64))
    assert found.rows.tolist() == [1, 3, 2, 0]
    assert found.gaps.tolist() == [0.5, 1.0, 0.5, 0.0]


def test_no_rows_make_no_classes():
    found = find_classes(ordered([]), np.zeros(0, dtype=np.int64))
    assert found.groups == 0
    assert len(found.code) == 0


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


def patterns_of(attribute, sizes):
    classes = find_classes(attribute, np.repeat(np.arange(len(sizes)), sizes))
    return list(find_patterns(attribute.kind, classes, classes.first))


def test_shifted_scaled_and_mirrored_groups_pose_one_program():
    values = [1, 1, 2, 5, 11, 11, 12, 15, 0, 0, 3, 12, 4, 3, 4, 0]
    (found,) = patterns_of(ordered(values), [4] * 4)
    assert len(found.gaps) == 1
    assert found.pattern_of.tolist() == [0, 0, 0, 0]


def test_other_counts_or_gaps_pose_other_programs():
    (found,) = patterns_of(ordered([1, 1, 2, 5, 1, 2, 2, 5, 1, 1, 3, 5]), [4] * 3)
    assert len(found.gaps) == 3


def test_nominal_groups_differ_by_their_counts_alone():
    (found,) = patterns_of(nominal([1, 1, 2, 7, 9, 9, 4, 4, 8]), [4, 2 + 3])
    assert found.width == 3
    assert len(found.gaps) == 2
    (same,) = patterns_of(nominal([1, 1, 2, 7, 9, 4, 4, 8]), [4, 4])
    assert len(same.gaps) == 1


def test_a_mirrored_group_gets_the_mirrored_table():
    attribute = ordered([10, 10, 11, 14, 4, 3, 0, 4])
    tables = cover(attribute, np.repeat([0, 1], 4), 1 / 3, 0.0)
    found = {(o, p): q for o, p, q in zip(*value_pairs(tables), strict=True)}
    for (original, published), probability in list(found.items()):
        if original >= 10:
            assert found[14 - original, 14 - published] == pytest.approx(probability)


def value_pairs(tables):
    table, place = tables.table(), tables.attribute.positions
    return place[table["original"]], place[table["output"]], table["probability"]
