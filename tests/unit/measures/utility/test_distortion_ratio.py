"""Distortion ratio: levels over heights, by hand."""

from __future__ import annotations

import duckdb
import pytest


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("""
        create table tree as select * from (values
            ('a1', 'A', '*'), ('a2', 'A', '*'), ('b1', 'B', '*'), ('b2', 'B', '*')) t(leaf, above, root);
        create table people as select * from (values ('a1', 20, 'f', 1), ('a2', 30, 'f', 2), ('b1', 40, 'm', 3),
            ('b2', 50, 'm', 4)) t(place, age, sex, disease);
        comment on column people.place is 'anon: quasi hierarchy=tree';
        comment on column people.age is 'anon: quasi';
        comment on column people.sex is 'anon: quasi';
        comment on column people.disease is 'anon: sensitive';
    """)
    return con


def test_nodes_intervals_and_sets_have_their_levels(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("""
        create table r as select * from (values
            ('A', {lower: 20, upper: 30}, ['f'], 1), ('A', {lower: 20, upper: 30}, ['f'], 2),
            ('*', {lower: 40, upper: 40}, ['f', 'm'], 3), ('b2', {lower: NULL, upper: NULL}, ['m'], 4)
        ) t(place, age, sex, disease)
    """)
    found = people.execute("from distortion_ratio('people', 'r')").fetchall()
    assert found == [
        ("place", 2, pytest.approx((1 + 1 + 2 + 0) / 8)),
        ("age", 1, pytest.approx(3 / 4)),
        ("sex", 1, pytest.approx(1 / 4)),
        ("(all)", 2, pytest.approx((1 / 2 + 3 / 4 + 1 / 4) / 3)),
    ]


def test_replaced_values_count_the_node_above_both(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("""
        create table r as select * from (values
            ('a2', 20, 'f', 1, 0), ('a2', 20, 'f', 2, 1), ('a1', 40, 'f', 3, 2), ('b2', 50, 'm', 4, 3)
        ) t(place, age, sex, disease, row_id)
    """)
    found = dict((a, r) for a, _, r in people.execute("from distortion_ratio('people', 'r')").fetchall())
    assert found["place"] == pytest.approx((1 + 0 + 2 + 0) / 8)
    assert found["age"] == pytest.approx(1 / 4)
    assert found["sex"] == pytest.approx(1 / 4)


def test_plain_values_without_row_numbers_are_refused(people: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="row_id := true"):
        people.execute("from distortion_ratio('people', 'people')").fetchall()


def test_attributes_that_cannot_be_generalized_are_left_out(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("create table one as select 7 as age, 'f' as sex, i as s from range(4) t(i)")
    people.execute("create table r as from mondrian('one', k := 2, qi := ['age', 'sex'])")
    found = people.execute("from distortion_ratio('one', 'r', qi := ['age', 'sex'])").fetchall()
    assert found == [("(all)", 0, 0.0)]


@pytest.mark.parametrize("row_id", ["true", "false"])
def test_permuting_costs_nothing_and_fake_rows_count(people: duckdb.DuckDBPyConnection, row_id: str) -> None:
    merged = f"columns := [['place'], ['age', 'sex']], fake := 2, min_bucket := 6, row_id := {row_id}, seed := 1"
    people.execute(f"create table r as from merging('people', 1, {merged})")
    assert people.execute("select max(distortion_ratio) from distortion_ratio('people', 'r')").fetchone() == (0.0,)
