"""Levels of one attribute."""

from __future__ import annotations

from duckdb_anon.kernels.lattice import generalization_levels
from tests.reference.merging import attribute


def test_levels_of_ordered_values_nest_and_separate_null_until_the_last() -> None:
    levels = generalization_levels(attribute("age", [None, *range(21)]), branching=2)
    assert [levels.size(level) for level in range(levels.height + 1)] == [22, 17, 9, 5, 3, 1]
    for level in range(1, levels.height + 1):
        levels.up(level - 1, level)  # raises where a value would be split
        pairs = set(zip(levels.value_of_code[level - 1], levels.value_of_code[level], strict=True))
        assert len(pairs) == levels.size(level - 1)
    assert levels.ncp(0).max() == 0
    assert levels.ncp(levels.height).tolist() == [1.0]
    assert (levels.value_of_code[-2][:-1] != levels.value_of_code[-2][-1]).all()


def test_constant_columns_have_one_level() -> None:
    assert generalization_levels(attribute("age", [5, 5])).height == 0
    assert generalization_levels(attribute("sex", ["f", "f"])).height == 0
