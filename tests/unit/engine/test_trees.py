"""Hierarchy tables to trees."""

from __future__ import annotations

import pyarrow as pa
import pytest

from duckdb_anon.engine.trees import read_tree
from duckdb_anon.model.errors import ParameterError


def rows(*paths: tuple[str, ...]) -> pa.StructArray:
    return pa.array([{f"level{i}": label for i, label in enumerate(path)} for path in paths])


def test_short_branch_padded_with_its_leaf_is_one_node() -> None:
    tree = read_tree("f", "t", rows(("a", "a", "*"), ("b1", "b", "*"), ("b2", "b", "*")))
    assert sorted(tree.labels) == ["*", "a", "b", "b1", "b2"]


@pytest.mark.parametrize("group", ["d1", "d10"])
def test_leaf_that_bears_the_name_of_its_group_is_refused(group: str) -> None:
    with pytest.raises(ParameterError, match="name of a group"):
        read_tree("f", "t", rows(("d1", group, "*"), ("d10", group, "*"), ("d2", "d2", "*")))
