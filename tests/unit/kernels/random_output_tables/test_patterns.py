"""Programs that are the same up to shift, scale, direction and, for nominal values, order."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import cover
from duckdb_anon.kernels.random_output_tables.lp_grouping import find_classes
from duckdb_anon.kernels.random_output_tables.patterns import find_patterns
from tests.reference.cover_lp import nominal, ordered


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
    return place[table.original], place[table.output], table.probability
