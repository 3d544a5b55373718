"""Bags of values without bounds are read from each row's map, with the estimates that buckets give."""

from __future__ import annotations

import duckdb
import pytest

import duckdb_anon

ROLES = "qi := ['age', 'sex'], sensitive := 'ill'"


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb_anon.connect()
    made.execute(
        "create table t as select i % 30 as age, ['F', 'M'][1 + i % 2] as sex, ['flu', 'cold', 'acne', 'it''s'][1 + (i + i "
        "// 5) % 4] as ill, i % 9 as cost from range(240) as r(i)"
    )
    made.execute(f"create table r as from anatomy('t', 2, {ROLES}, keep := ['cost'], seed := 2)")
    return made


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from t where ill = 'flu'",
        "select sex, count(*), sum(cost), avg(cost) from t where ill in ('flu', 'it''s') and age < 20 group by sex",
        "select count(*) from t where ill is null or ill like '%o%'",
        "select count(*) from t where not (ill = 'flu' or ill = 'acne') and sex = 'F'",
        "select ill, sex, count(*), sum(cost) from t where age < 25 group by ill, sex",
        "select upper(ill), count(*) filter (where sex = 'M') from t group by 1",
        "select length(ill) + cost, count(*) from t where ill <> 'cold' group by 1",
        "select sum(case when ill = 'flu' then cost else 1 end) from t",
        "select sum(length(ill)), count(ill) from t where age > 3",
        "select count(distinct ill) from t",
    ],
)
def test_estimates_with_and_without_bounds_agree(con: duckdb.DuckDBPyConnection, query: str) -> None:
    with_bounds, without = (
        con.execute(
            f"select keys::varchar as k, measure, estimate from relative_error(?, 't', 'r', bounds := ?, {ROLES}) "
            "order by k, measure",
            [query, bounds],
        ).fetchall()
        for bounds in ("sure", "none")
    )
    assert [row[:2] for row in with_bounds] == [row[:2] for row in without]
    assert [row[2] for row in without] == pytest.approx([row[2] for row in with_bounds])


def test_a_row_without_a_map_is_null(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create or replace table bare as select * from r union all by name select 1 as age, 'F' as sex, 900 as bucket"
    )
    texts = [
        con.execute(f"select rewrite_query(?, 't', 'bare', {ROLES})", [query]).fetchall()[0][0]
        for query in (
            "select count(*) as n from t where ill is null",
            "select count(*) as n from t where ill is null group by ill",
        )
    ]
    assert [con.execute(text).fetchall()[0][0] for text in texts] == [1, 1]
