"""Releases of every shape that change nothing: each query has the original's answer, or is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from duckdb_anon import load
from tests.reference.rewrite_tables import SELF, database
from tests.reference.same_answers import assert_gives, rewritten

QUERIES = (
    "select count(*) as c from (select distinct region from people limit 3)",
    "select age.name, (select count(*) from people where people.region = age.name) as c from regions age",
    "select age.name, (select avg(cost) from people where region = age.name and sex = 'F') as a from regions age",
    "select age.climate, sum(p.cost) filter (where age.name > 'n') as s from people p join regions age on p.region = age.name "
    "where p.age > 25 group by age.climate",
    "select age.c from (select count(*) as c from people) age",
    "select count(*) as c from people where age = any([20, 21, null])",
    "select sum(case when age = any([20, 21]) then cost else 0 end) as s from people",
    "select sum(cost order by age) as s, count(cost order by age) as c, avg(age order by cost desc) as a from people",
    "select sum(age > 30) as s, sum(sex = 'F') as f from people where cost > 10",
    "select region, sum(count(*)) filter (where region like 'n%') over () as s from people group by region",
    "select region, lag(count(*) ignore nulls) over (order by region) as l from people group by region",
    "select max(strftime(born, '%m')) as m from people",
    "select sum(cost)::varchar as s, count(*)::varchar as c from people where age > 20",
    "select count(*) as c from people where age < 1e400",
    "select sex, 1 as k, count(*) as c from people group by rollup (sex, k)",
    "select 1 as k, sex, -1 as j, count(*) as c from people group by grouping sets ((k, sex), (j), ())",
    "select 2 as k, sex, count(*) as c from people group by k, sex having k > 1",
    "select region, 'c' as k, count(*) as c from people group by all having k is not null and region > 'n'",
    "select region, 1 as k, sum(cost) as s from people group by region, k order by k, region desc",
    "select distinct 2 as k, sex from people order by k, sex",
    "select region, count(*) as c from people where region in (select v from (select 'n1' as v, 1 as n) "
    "qualify row_number() over (order by n) < 3) group by region",
    "select count(*) as c from people where (select true)",
    "select name, count(*) as c from people join named() on region = name group by name",
    "select region, median(born) as m, quantile_cont(born, 0.3) as q, quantile_disc(born, 0.3) as d from people group by 1",
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = database()
    load(con)
    con.execute(
        "create macro everyone() as count(*); create macro twice(x) as 2 * x; create macro four(x) as twice(twice(x))"
    )
    con.execute("create macro named() as table select 'n1' as name union all select 's1'")
    con.execute("create macro coin() as random(); create macro most(x) as (select max(age) from people)")
    yield con
    con.close()


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_the_originals(con: duckdb.DuckDBPyConnection, query: str) -> None:
    truth = con.execute(query)
    names, rows = [d[0] for d in truth.description], truth.fetchall()
    answered = 0
    for shape in SELF:
        try:
            text = rewritten(con, query, shape)
        except duckdb.Error as error:
            assert "rewrite_query: " in str(error), (shape, error)
            continue
        assert_gives(con, text, names, rows, shape)
        answered += 1
    assert answered


REFUSED = (
    ("select region, everyone() as c from people group by region", "everyone is a macro of count_star.*write that"),
    ("select count(*) from people where coin() < 0.5", "coin is a macro of random"),
    ("select count(*) from people where age = most(1)", "most is a macro of .*select max"),
    ("select bogus(age) as k, count(*) from people group by k", "there is no function bogus"),
    ("select #1, count(*) from people group by #1", "#1 cannot be answered.*write the column's name"),
    ("select typeof(sum(cost)) from people", r"typeof\(sum\(cost\)\) cannot be answered"),
)


@pytest.mark.parametrize(("query", "reason"), REFUSED)
@pytest.mark.parametrize("shape", ["rows", "boxes", "randomized"])
def test_what_is_not_understood_is_refused_by_name(
    con: duckdb.DuckDBPyConnection, query: str, reason: str, shape: str
) -> None:
    with pytest.raises(duckdb.Error, match=f"(?is)rewrite_query: .*{reason}"):
        rewritten(con, query, shape)


def test_a_macro_that_only_computes_is_answered(con: duckdb.DuckDBPyConnection) -> None:
    query = "select sum(four(cost)) as s, twice(count(*)) as c from people where age > 30"
    for shape in ("rows", "boxes", "buckets", "randomized"):
        assert con.execute(rewritten(con, query, shape)).fetchall() == [
            tuple(pytest.approx(float(x)) for x in con.execute(query).fetchall()[0])
        ]
