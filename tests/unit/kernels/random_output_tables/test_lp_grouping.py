"""Classes of equal rows, pieces of wide groups, and programs that are the same up to shift, scale and direction."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import cover
from duckdb_anon.kernels.random_output_tables.lp_grouping import cut_wide_groups, find_classes, find_patterns
from tests.reference.cover_lp import ordered


def test_every_piece_keeps_enough_records_and_stays_inside_its_group():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2, 4], [12, 90, 7, 55])
    classes = find_classes(ordered(rng.integers(0, 60, len(group))), group)
    first = cut_wide_groups(classes, 6, 5)
    rows = np.diff(classes.starts[first])
    assert (rows[rows > 0] >= 6).all()
    assert set(classes.first.tolist()) <= set(first.tolist())
    assert len(first) > len(classes.first)


def patterns_of(attribute, sizes):
    classes = find_classes(attribute, np.repeat(np.arange(len(sizes)), sizes))
    return list(find_patterns(attribute.kind, classes, classes.first))


def test_shifted_scaled_and_mirrored_groups_pose_one_program():
    values = [1, 1, 2, 5, 11, 11, 12, 15, 0, 0, 3, 12, 4, 3, 4, 0]
    (found,) = patterns_of(ordered(values), [4] * 4)
    assert len(found.gaps) == 1
    assert found.pattern_of.tolist() == [0, 0, 0, 0]


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
