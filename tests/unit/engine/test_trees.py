"""Hierarchy tables to trees."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from duckdb_anon.engine.hierarchy_io import read_tree
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


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ms", "timestamp_s", "timestamptz"])
def test_dates_that_arrow_does_not_read_are_leaves_as_duckdb_prints_them(
    con: duckdb.DuckDBPyConnection, kind: str, zone: str
) -> None:
    con.execute(f"set TimeZone = '{zone}'")
    far = ["0044-03-15 (BC)", "10000-05-06", "2020-02-29"] if kind != "timestamptz" else ["10000-05-06", "2020-02-29"]
    far += ["infinity", "-infinity"] if kind in ("date", "timestamp", "timestamptz") else []
    con.execute(f"create table t as select v::{kind} as a from (select unnest({far}) as v), range(4)")
    con.execute("create table tree as select distinct a::varchar as leaf, 'any' as root from t")
    released = con.execute("select distinct a from mondrian('t', k := 3, qi := ['a'], hierarchies := {'a': 'tree'})")
    assert {a for (a,) in released.fetchall()} == {leaf for (leaf,) in con.execute("select leaf from tree").fetchall()}
