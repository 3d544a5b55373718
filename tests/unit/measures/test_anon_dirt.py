"""anon_dirt finds what was spoilt, leaves clean columns alone, and its SELECT cleans the table."""

from __future__ import annotations

import datetime

import duckdb
import pytest


@pytest.fixture
def dirty(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(
        "create table patients as select i as id, case i % 4 when 0 then 'F' when 1 then ' f' else 'M' end as sex, "
        "case i % 5 when 0 then strftime(d, '%d/%m/%Y') when 1 then strftime(d, '%d.%m.%Y') else strftime(d, '%Y-%m-%d') end as born, "
        "case when i % 10 = 0 then date '1900-01-01' else d end as admitted, "
        "case when i % 9 = 0 then 'unknown' else 'ward ' || i % 3 end as ward, 1000 + i * 331 % 90000 as zip, "
        "case when i % 20 = 0 then 999 else 20 + i % 60 end as age, 'plain ' || i % 4 as clean "
        "from (select i, date '1950-01-13' + (i * 37)::int as d from range(200) t(i))"
    )
    return con


def test_every_problem_is_found_and_clean_columns_are_not(dirty: duckdb.DuckDBPyConnection) -> None:
    rows = dirty.execute("select column_name, problem, records from anon_dirt('patients')").fetchall()
    found = {(column, problem): records for column, problem, records in rows}
    short = dirty.execute("select count(*) from patients where zip < 10000").fetchall()[0][0]
    assert found.pop((None, "a SELECT that cleans them all")) > 0
    assert found == {
        ("sex", "blanks around values"): 50,
        ("sex", "spellings that differ in case"): 50,
        ("born", "several formats of dates"): 80,
        ("admitted", "placeholder dates"): 20,
        ("ward", "codes for missing values"): 23,
        ("zip", "postcodes that lost leading zeros"): short,
        ("age", "codes for missing values"): 10,
    }


def test_the_select_cleans_the_table(dirty: duckdb.DuckDBPyConnection) -> None:
    select = dirty.execute("select clean from anon_dirt('patients') where column_name is null").fetchall()[0][0]
    assert select.startswith("SELECT * REPLACE (")
    dirty.execute(f"create table clean as {select}")
    assert {sex for (sex,) in dirty.execute("select distinct sex from clean").fetchall()} == {"f", "m"}
    born = [day for (day,) in dirty.execute("select born from clean order by id").fetchall()]
    assert born == [datetime.date(1950, 1, 13) + datetime.timedelta(days=37 * i) for i in range(200)]
    missing = dirty.execute(
        "select count(*) - count(admitted), count(*) - count(ward), count(*) - count(age), min(length(zip)) from clean"
    ).fetchall()[0]
    assert missing == (20, 23, 10, 5)
    assert dirty.execute("select problem from anon_dirt('clean')").fetchall() == []
