"""Tight boxes of groups and what they lose."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.partition import box_loss, boxes
from tests.reference.mondrian import attribute

GROUPS = np.array([0, 0, 1, 1, 2, 2])


def test_nodes_are_lowest_common_ancestors():
    tree = [("a1", "A", "*"), ("a2", "A", "*"), ("b1", "B", "*"), ("b2", "B", "*")]
    place = attribute("place", ["a1", "a2", "b1", "b1", "a1", "b2"], "hierarchy", tree)
    box = boxes([place], GROUPS)["place"]
    assert [box.labels[node] for node in box.node[box.index]] == ["A", "A", "b1", "b1", "*", "*"]
    loss = box_loss(place, GROUPS)
    assert loss.ncp.tolist() == [0.5, 0.0, 1.0]
    assert loss.iloss.tolist() == [0.25, 0.0, 0.75]


def test_other_rows_may_be_released_with_the_boxes():
    age = attribute("age", [30, 40, 20, 20, 50, 10])
    assert boxes([age], GROUPS, np.array([2, 2, 0]))["age"].index.tolist() == [2, 2, 0]


def test_interval_loss_counts_in_units_of_the_values():
    loss = box_loss(attribute("age", [22, 22, 33, 52, 54, 64]), GROUPS)
    assert loss.iloss == pytest.approx([0, 19 / 43, 10 / 43])
    assert loss.ncp == pytest.approx([0, 19 / 42, 10 / 42])
