"""Hierarchy nodes: leaves below a node, labels that are values, and NULL as a leaf of its own."""

from __future__ import annotations

import duckdb
import pytest

import duckdb_anon

TREE = "(values ('n1', 'north', '*'), ('n2', 'north', '*'), ('s1', 'south', '*'), ('s2', 'south', '*'))"


@pytest.fixture(scope="module")
def places() -> duckdb.DuckDBPyConnection:
    con = duckdb_anon.connect()
    con.execute(f"create table tree as select * from {TREE} as t(leaf, half, everything)")
    con.execute(
        "create table places as select (['n1', 'n2', 's1', 's2', null])[1 + i % 5] as place from range(50) t(i)"
    )
    con.execute("comment on column places.place is 'anon: quasi hierarchy=tree'")
    con.execute("create table halves as select case when place is null then '(null)' "
                "when place like 'n%' then 'north' else 'south' end as place from places")  # fmt: skip
    con.execute("create table tops as select '*' as place from places")
    return con


def answer(con: duckdb.DuckDBPyConnection, release: str, condition: str) -> tuple[float, ...]:
    query = f"SELECT count(*) FROM places WHERE {condition}"
    text = f"select estimate, low, high from relative_error($1, 'places', '{release}')"
    return con.execute(text, [query]).fetchall()[0]


def test_node_is_spread_over_its_leaves(places: duckdb.DuckDBPyConnection) -> None:
    assert answer(places, "halves", "place IN ('n1', 's2')") == (20, 0, 40)
    assert answer(places, "halves", "place LIKE 'n%'") == (20, 20, 20)


def test_released_null_leaf_is_null(places: duckdb.DuckDBPyConnection) -> None:
    assert answer(places, "halves", "place IS NULL") == (10, 10, 10)


def test_root_may_stand_for_null_in_bounds_but_not_in_the_estimate(places: duckdb.DuckDBPyConnection) -> None:
    assert answer(places, "tops", "place IS NULL") == (0, 0, 50)
    assert answer(places, "tops", "place IS NOT NULL") == (50, 0, 50)


def test_groups_over_a_root_have_bounds_that_contain_the_truth(places: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT place, count(*) FROM places GROUP BY place"
    text = (
        "select min(low), max(high), bool_and(original between low and high) from relative_error($1, 'places', 'tops')"
    )
    assert places.execute(text, [query]).fetchall() == [(0, 50, True)]
