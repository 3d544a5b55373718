"""Columns of a rewritten query's result are called as the original query's are: DuckDB itself is the oracle."""

import duckdb
import pytest

import duckdb_anon

# fmt: off
QUERIES = (
    "select SEX, COUNT( * ), SUM(A)/count( * ) from p group by all",
    "select * from (select SEX, count(*) as N from p group by sex) limit 10",
    "select * from (select \"sex\" as \"S x\", count(*) from p group by sex) order by 2 limit 10",
    "select \"count_star()\" + 1 from (select sex, COUNT(*) from p group by 1) where \"count_star()\" > 3",
    "with z(u, V) as (select sex, count(*) from p group by 1) select U, v from z",
    "select t.* from (select SEX as Z, count(*), count(*) from p group by 1) t",
    "select sum(a) filter (where a > 1), count(*) filter (a=1) from p",
    "select p.SEX, P.A, count(*) from p group by 1, 2",
    "select case when a > 3 then 'x' else 'y' end, a is distinct from 3, s like 'x%', a in (1,2), count(*) from p group by all",
    "select coalesce(a, 0), (a), -a, not (a > 1), cast(a as text), a::varchar, a || 'x', count(*) from p group by all",
    "select count(*) from p union all select sum(a) from p",
    "select 1, 'x', null, (select COUNT( * ) from p), count(*) from p",
    "from p select SEX, count(*) group by all",
    "select round(100.0*count(*)/sum(count(*)) over (), 1), rank() over (order by count(*) desc), sex from p group by sex",
    "select d + interval 1 day, date_diff('day', d, date '2020-02-01'), count(*) from p group by all",
    "select label, (select avg(p.a) from p where p.a = q.a and p.sex = 1 order by 1) from q order by 2",
    "select main.lower(s), count(*) from p group by 1",
    "select CURRENT_DATE, current_timestamp, current_time, now(), today(), count(*) from p",
    "select * from (select sex, current_date, count(*) from p group by current_date, sex)",
)
# fmt: on


@pytest.fixture(scope="module")
def con():
    made = duckdb_anon.connect()
    made.execute(
        "create table p as select (i % 7)::int as a, (i % 2)::int as \"Sex\", ['x', 'y'][1 + i % 2] as s, "
        "date '2020-01-01' + (i % 4)::int as d from range(60) r(i)"
    )
    made.execute("create table q as select * from (values (1, 'one'), (2, 'two')) v(a, label)")
    made.execute("create table r as from mondrian('p', 2, qi := ['a', 'Sex', 'd'], keep := ['s'])")
    return made


def named(con: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [name for name, *_ in con.execute(f"describe {query}").fetchall()]


@pytest.mark.parametrize("query", QUERIES)
def test_columns_are_called_as_the_original_query_calls_them(con, query):
    statement = "select rewrite_query(?, 'p', 'r', bounds := 'none', qi := ['a', 'Sex', 'd'])"
    ((text,),) = con.execute(statement, [query]).fetchall()
    assert named(con, text) == named(con, query)


def test_estimates_read_what_a_subquery_counts_by_its_name(con):
    query = 'select "count_star()" as n, sex from (select sex, count(*) from p group by 1)'
    rows = con.execute(
        "select \"Sex\", measure from estimate(?, 'r', original := 'p', qi := ['a', 'Sex', 'd'])", [query]
    ).fetchall()
    assert sorted(rows) == [(0, "n"), (1, "n")]
