"""Classes of equal rows."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.random_output_tables import lp_grouping as module
from duckdb_anon.kernels.random_output_tables.lp_grouping import find_classes
from tests.reference.cover_lp import in_tree, ordered


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


def test_sorting_gives_the_same_where_keys_do_not_fit_one_integer():
    key = np.random.default_rng(0).integers(0, 50, 400)
    small, large = module._sort_with_rows(key, 50), module._sort_with_rows(key, 2**60)
    assert [part.tolist() for part in small] == [part.tolist() for part in large]


def test_no_rows_make_no_classes():
    found = find_classes(ordered([]), np.zeros(0, dtype=np.int64))
    assert found.groups == 0
    assert len(found.code) == 0
