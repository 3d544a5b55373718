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


def test_counts_are_bounded_by_none_or_all_of_the_suppressed_rows(con):
    con.execute("create table release as select *, 40::bigint as suppressed from people where dose < 2")
    query = "SELECT age, count(*) FROM people WHERE age < 2 GROUP BY age ORDER BY age"
    text = rewrite(query, seen(con, "people"), seen(con, "release"), bounds="hard")
    rows = con.execute(text).fetchall()
    assert [row[:4] for row in rows] == [(0, pytest.approx(30), 20, 60), (1, pytest.approx(30), 20, 60)]
    assert all(row[4].endswith("high minus low is larger than the estimate") for row in rows)
