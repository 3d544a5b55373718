"""Cells without ends, beside those with: how they are spread, how they are listed, and what is said of those that cannot be."""

from __future__ import annotations

import duckdb
import pytest

from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("create table people (age integer)")
    connection.execute("""
        create table release as select * from (values ({lower: 20, upper: 25}), ({lower: 24, upper: 29}),
          ({lower: null, upper: null}), ({lower: null, upper: null}), (null)) as t(age)
    """)
    return connection


SHARED = (
    ("age >= 24", lambda age: age >= 24),
    ("age < 27", lambda age: age < 27),
    ("age BETWEEN 23 AND 26", lambda age: 23 <= age <= 26),
    ("age = 25", lambda age: age == 25),
    ("age BETWEEN 40 AND 50", lambda age: 40 <= age <= 50),
)


@pytest.mark.parametrize(("condition", "holds"), SHARED)
def test_a_cell_without_ends_is_spread_over_all_ends_and_null(con: duckdb.DuckDBPyConnection, condition, holds) -> None:  # type: ignore[no-untyped-def]
    total = 0.0
    for (age,) in con.execute("select age from release").fetchall():
        if age is not None:
            ends = (age["lower"], age["upper"]) if age["lower"] is not None else (20, 29)
            values = range(ends[0], ends[1] + 1)
            total += sum(map(holds, values)) / (len(values) + (age["lower"] is None))
    text = rewrite(f"SELECT count(*) AS n FROM people WHERE {condition}", seen(con, "people"), seen(con, "release"))
    assert con.execute(text).fetchone() == (pytest.approx(total),)


def test_means_of_cells_without_ends_are_those_of_all_ends(con: duckdb.DuckDBPyConnection) -> None:
    text = rewrite("SELECT avg(age) AS m FROM people", seen(con, "people"), seen(con, "release"))
    unbounded = 24.5 * 10 / 11
    assert con.execute(text).fetchone() == (pytest.approx((22.5 + 26.5 + 2 * unbounded) / (2 + 2 * 10 / 11)),)


@pytest.mark.parametrize("cells", ["{lower: null, upper: null}", "{lower: 0, upper: 1000000}"])
def test_boxes_whose_values_cannot_be_listed_are_named(cells: str) -> None:
    con = duckdb.connect()
    con.execute("create table people (age integer)")
    con.execute(f"create table release as select {cells}::struct(lower integer, upper integer) as age from range(3)")
    text = rewrite("SELECT age, count(*) FROM people GROUP BY age", seen(con, "people"), seen(con, "release"))
    with pytest.raises(duckdb.Error, match="boxes of age have no ends or over 1000000 values"):
        con.execute(text).fetchall()


def test_infinite_dates_are_listed_beside_the_days_of_others() -> None:
    con = duckdb.connect()
    con.execute("create table people (born date)")
    con.execute("""
        create table release as select * from (values
          ({lower: date '1980-01-01', upper: date '1980-01-02'}),
          ({lower: date 'infinity', upper: date 'infinity'}), ({lower: date '-infinity', upper: date '-infinity'}),
          ({lower: date '-infinity', upper: date 'infinity'}), (null)) as t(born)
    """)
    query = "SELECT born::VARCHAR AS day, count(*) AS n FROM people GROUP BY 1"
    rows = con.execute(rewrite(query, seen(con, "people"), seen(con, "release"))).fetchall()
    days = {"1980-01-01": 0.5, "1980-01-02": 0.5, "infinity": 1.5, "-infinity": 1.5, None: 1}
    assert dict(rows) == pytest.approx(days)
