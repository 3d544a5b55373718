"""Median parts of many small sets."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.kernels.slicing.subgroups import median_parts


def test_parts_have_k_items_and_stay_inside_their_set() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 2, 3, 5):
        sets = compact(rng.integers(0, 9, 80))
        axes = [rng.integers(0, 6, 80).astype(float), rng.random(80)]
        part = median_parts(sets, axes, [5.0, 1.0], k)
        sizes, whole = np.bincount(part), np.bincount(sets)
        for p in range(len(sizes)):
            owners = np.unique(sets[part == p])
            assert len(owners) == 1
            assert sizes[p] >= min(k, whole[owners[0]])


def test_equal_items_are_never_separated() -> None:
    values = np.array([1.0, 1, 1, 2, 2, 3])
    part = median_parts(np.zeros(6, dtype=np.int64), [values], [2.0], 2)
    assert part[0] == part[1] == part[2]
    assert part[3] == part[4]


def test_the_relatively_widest_attribute_is_cut_first() -> None:
    narrow, wide = np.array([0.0, 1, 0, 1]), np.array([0.0, 0, 9, 9])
    part = median_parts(np.zeros(4, dtype=np.int64), [narrow, wide], [10.0, 10.0], 2)
    assert part.tolist() == [0, 0, 1, 1]


def test_nothing_to_cut_gives_one_part() -> None:
    assert median_parts(np.zeros(4, dtype=np.int64), [np.ones(4)], [0.0], 2).tolist() == [0, 0, 0, 0]
    assert median_parts(np.zeros(0, dtype=np.int64), [np.ones(0)], [0.0], 2).tolist() == []
