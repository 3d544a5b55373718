"""Releases whose rows stand for more or less than one original row."""

import duckdb
import pytest

from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen

ORIGINAL = "create table people as select i % 4 as age, i % 3 as dose from range(120) as t(i)"


@pytest.fixture
def con():
    connection = duckdb.connect()
    connection.execute(ORIGINAL)
    return connection


def estimate(con: duckdb.DuckDBPyConnection, release: str, query: str) -> object:
    con.execute(f"create table release as {release}")
    text = rewrite(query, seen(con, "people"), seen(con, "release"), bounds="hard")
    return con.execute(text).fetchall()[0][0]


def test_sampled_rows_stand_for_one_over_the_rate(con):
    release = "select *, 0.25::double as sampling_rate from people where age = 1"
    assert estimate(con, release, "SELECT count(*) FROM people WHERE dose < 2") == 80


def test_suppressed_rows_are_taken_to_be_like_the_others(con):
    release = "select *, 40::bigint as suppressed from people where dose < 2"
    assert estimate(con, release, "SELECT sum(1) FROM people WHERE age = 0") == pytest.approx(30)


def test_counts_are_bounded_by_none_or_all_of_the_suppressed_rows(con):
    con.execute("create table release as select *, 40::bigint as suppressed from people where dose < 2")
    query = "SELECT age, count(*) FROM people WHERE age < 2 GROUP BY age ORDER BY age"
    text = rewrite(query, seen(con, "people"), seen(con, "release"), bounds="hard")
    rows = con.execute(text).fetchall()
    assert [row[:4] for row in rows] == [(0, pytest.approx(30), 20, 60), (1, pytest.approx(30), 20, 60)]
    assert all(row[4].endswith("high minus low is larger than the estimate") for row in rows)


def test_negative_noisy_counts_are_summed_as_they_are(con):
    release = "select * from (values (0, 1, 5.5::double), (0, 2, -1.5)) as t(age, dose, noisy_count)"
    assert estimate(con, release, "SELECT sum(dose) FROM people") == 2.5


def test_replaced_sensitive_values_are_undone(con):
    con.execute("create table release as select age, least(dose, 1) as dose, 0.5::double as retention from people")
    people = seen(con, "people")
    people = type(people)(people.sql, people.columns, {"dose": "sensitive"}, {}, "people")
    text = rewrite("SELECT count(*) FROM people WHERE dose = 0 AND age < 2", people, seen(con, "release"))
    # 20 of the 60 rows below age 2 show dose 0, a third of all: (20 - 0.5 * 60 / 3) / 0.5
    assert con.execute(text).fetchall()[0][0] == pytest.approx(20)
