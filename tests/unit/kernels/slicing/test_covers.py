"""Generalized values of one attribute."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.slicing.covers import EXACT, Cover, cover_of
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.released_columns import Interval, Node, ValueSet
from tests.reference.merging import attribute, zip_tree


def _box(column: Attribute, part: list[int], lift: list[int]) -> Cover:
    return cover_of(column, column.codes, np.array(part), np.array(lift, dtype=np.int64))


def test_an_exact_cover_prints_the_values_themselves() -> None:
    column = attribute("age", [30, 20, None])
    cover = _box(column, [EXACT] * len(column.codes), [])
    assert not cover.generalized.any()
    assert cover.contains(column.codes).all()
    assert not cover.contains(np.roll(column.codes, 1)).any()


def test_an_interval_spans_its_part_and_lifted_ones_the_whole_range() -> None:
    column = attribute("age", [10, 20, 30, 40])
    cells = _box(column, [0, 0, 1, EXACT], [0, 1]).cells
    assert isinstance(cells, Interval)
    ends = [(int(cells.lower[g]), int(cells.upper[g])) for g in cells.index]
    assert ends == [(0, 1), (0, 1), (0, 3), (3, 3)]
    cover = _box(column, [0, 0, 1, EXACT], [0, 1])
    assert cover.loss[cover.cells.index].tolist() == pytest.approx([1 / 3, 1 / 3, 1.0, 0.0])


def test_null_among_values_covers_everything_and_null_alone_stays_null() -> None:
    column = attribute("age", [10, None, 30, None, None])
    cells = _box(column, [0, 0, EXACT, 1, 1], [0, 0]).cells
    assert isinstance(cells, Interval)
    ends = [(int(cells.lower[g]), int(cells.upper[g])) for g in cells.index]
    assert ends == [(-1, -1), (-1, -1), (1, 1), (2, 2), (2, 2)]


def test_names_become_the_set_of_values_in_the_part() -> None:
    column = attribute("sex", ["F", "M", "X", "F"])
    cells = _box(column, [0, 0, 1, EXACT], [0, 1]).cells
    assert isinstance(cells, ValueSet)
    sets = [cells.codes[cells.offsets[g] : cells.offsets[g + 1]].tolist() for g in cells.index]
    assert sets == [[0, 1], [0, 1], [0, 1, 2], [0]]


def test_nodes_climb_from_the_lowest_common_ancestor() -> None:
    zips = [47905, 47907, 47308, 47308]
    column = attribute("zip", [str(z) for z in zips], "hierarchy", zip_tree(zips))
    cells = _box(column, [0, 0, 1, EXACT], [0, 2]).cells
    assert isinstance(cells, Node)
    labels = [cells.labels[cells.node[g]] for g in cells.index]
    assert labels == ["4790*", "4790*", "473**", "47308"]
    top = _box(column, [0, 0, 1, EXACT], [9, 0]).cells
    assert isinstance(top, Node)
    assert top.labels[top.node[top.index[0]]] == "*"


def test_a_predicate_is_certain_only_if_every_covered_value_satisfies_it() -> None:
    column = attribute("sex", ["F", "M", "M"])
    male = np.array([False, True])
    slots = np.arange(3)
    assert _box(column, [0, 0, EXACT], [0]).certain(slots, male).tolist() == [False, False, True]
    assert _box(column, [EXACT, 0, 0], [0]).certain(slots, male).tolist() == [False, True, True]
    assert _box(column, [EXACT, 0, 0], [1]).certain(slots, male).tolist() == [False, False, False]


def test_leaves_missing_from_the_table_hide_nothing() -> None:
    tree = zip_tree([47901, 47902, 47903])
    column = attribute("zip", ["47901", "47902"], "hierarchy", tree)
    assert _box(column, [0, 0], [0]).certain(np.arange(2), np.array([True, True])).tolist() == [True, True]
    assert _box(column, [0, 0], [0]).certain(np.arange(2), np.array([True, False])).tolist() == [False, False]
    assert _box(column, [EXACT] * len(column.codes), []).certain(np.arange(2), np.array([True, False])).tolist() == [
        True,
        False,
    ]
