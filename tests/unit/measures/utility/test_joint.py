"""Distances and correlations of releases: by hand, and as published."""

import duckdb
import pytest


@pytest.fixture
def table(con):
    con.execute("create table t as select * from (values (1, 'x'), (1, 'x'), (2, 'y'), (3, 'x')) t(a, b)")
    return con


def test_a_column_of_many_values_takes_no_table_of_all_pairs_of_them(con):
    con.execute("create table t as select range as a from range(60000)")
    con.execute("create table r as select if(a < 30000, a, 59999 - a) as a from t")
    cells, l1 = con.execute("select cells, l1 from distribution_distance('t', 'r', ['a'])").fetchall()[0]
    assert (cells, l1) == (60_000, pytest.approx(1.0))


def test_nodes_are_spread_over_the_leaves_that_occur(con):
    con.execute("""
        create table tree(leaf varchar, up varchar, top varchar);
        insert into tree values ('a1', 'A', '*'), ('a2', 'A', '*'), ('b1', 'B', '*');
        create table t as select unnest(['a1', 'a1', 'a2', 'b1']) as place;
        comment on column t.place is 'anon: quasi hierarchy=tree';
        create table r as select unnest(['A', 'A', 'A', 'b1']) as place;
    """)
    found = con.execute("select columns, l1 from distribution_distance('t', 'r')").fetchone()
    assert found == ("place", pytest.approx(2 * abs(1 / 2 - 3 / 8)))


def test_without_names_each_labelled_column_has_a_row(table):
    table.execute("comment on column t.a is 'anon: quasi'; comment on column t.b is 'anon: sensitive'")
    rows = table.execute("select columns, l1, kl from distribution_distance('t', 't', smoothing := 0)").fetchall()
    assert rows == [("a", 0.0, 0.0), ("b", 0.0, 0.0)]


def test_bad_calls_are_errors(table):
    for call, message in (
        ("distribution_distance('t', 't', ['w'])", "no column 'w'"),
        ("distribution_distance('t', 't')", "no columns to compare"),
        ("correlation('t', ['a'])", "a pair of columns is needed"),
        ("distribution_distance('t', '(select a from t)', ['a', 'b'])", "has no column b"),
        ("correlation('(select i as a, i as b from range(2000) t(i))', ['a', 'b'])", "4,000,000 cells"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            table.execute(f"from {call}").fetchall()


def test_coefficients_of_adult(con, shared_data):
    con.execute(
        f"create table adult as select * from read_csv('{shared_data / 'adult.csv'}') where columns(*) is not null"
    )
    found = con.execute(
        "select given, uncertainty_coefficient "
        "from correlation('adult', qi := ['income', 'education', 'sex', 'race', 'occupation']) "
        "where response = 'occupation'"
    ).fetchall()
    expected = {"income": 0.027438, "education": 0.099042, "sex": 0.044050, "race": 0.005693}
    assert {given: pytest.approx(u, abs=1e-6) for given, u in found} == expected
