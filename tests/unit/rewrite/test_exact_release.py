"""A release whose boxes are single values answers as the original does, query by query: names, NULLs, types, steps, bounds.

What is estimated elsewhere is known here, so whatever differs is a query that was read otherwise than DuckDB reads it.
"""

from typing import Any

import duckdb
import pytest

import duckdb_anon
from tests.reference.same_answers import assert_same

# fmt: off
QUERIES = (
    "select sex as a, count(*) as c from p group by 1",
    "select a % 2 as a, count(*) c from p where a > 2 group by a % 2",
    "select a + 1 as b, b + 1 as c, count(*) as n2 from p group by all",
    "select sex, count(*) as a from p group by sex having a > 10",
    "select sex, sum(a) as a from p group by sex having sum(a) > 10",
    "select sex, sum(a) as a from p group by sex order by a desc",
    "select b, max(a) as a from p group by b order by max(a), b",
    "select b as sex, sum(sex) as b from p group by 1",
    "select count(*) from p where s not in ('x', null)",
    "select count(*) from p where n in (1, null)",
    "select count(*) from p where n is not distinct from null",
    "select count(*) from p where a > '3'",
    "select a / 2 as h, count(*) c from p group by h",
    "select -a % 3 as h, count(*) c from p group by h",
    "select count(*) from p where d >= date '2020-01-01' + interval 1 month",
    "select date_trunc('month', d) as m, count(*) c from p group by m",
    "select month(d) as m, avg(n) c from p group by m",
    "select date_diff('day', d, date '2020-06-01') as m, count(*) c from p group by m",
    "select sum(case when a > 3 then 1 end) as x, sum(if(a > 3, 1, 0)) as y from p",
    "select sum(a) * 1.0 / nullif(sum(b), 0) from p",
    "select 100.0 * count(*) / (select count(*) from p) from p where a = 1",
    "select b, count(*) * 100 / sum(count(*)) over () as share from p group by b",
    "select b, count(*) c, rank() over (order by count(*) desc, b) r from p group by b",
    "select label, count(p.a) c from q left join p on p.a = q.a group by label",
    "select count(*) from p natural join q",
    "select count(*) from p where a not in (select a from q)",
    "select count(*) from p where not exists (select 1 from q where q.a = p.a)",
    "select count(*) from p where a = (select max(a) from q)",
    "select count(*) from p where a > all (select a from q where a is not null)",
    "select count(*) from p where a = any (select a from q)",
    "select count(*) from (select distinct a, b from p)",
    "select distinct a from p order by a",
    "select stddev(a), var_pop(a), corr(a, b), covar_samp(a, n) from p",
    "select sum(a) as \"Sum A\", sex as \"Sex\" from p group by \"Sex\"",
    "select count(*) from p where (a, b) in ((1, 1), (2, 2))",
    "select count(*) from p where a & 1 = 1",
    "select count(*) from p where regexp_matches(s, '^x')",
    "select count(*) c from main.p where main.p.a = 1",
    "select count(*) c from memory.main.p as z where z.a = 1",
    "select (select count(*) from p where a = 1) x, (select count(*) from p where a = 2) y",
    "select sum(a), count(*) from p where false",
    "select count(*) from p where a = null",
    "select count(*) from p group by a having a = 3",
    "select count(1), count(null), sum(null::int) from p",
    "select a, sum(count(*)) over (order by a) run from p group by a",
    "select count(*) from p, (select 1 as z) where a = z",
    "select count(*) from p anti join q using (a)",
    "select sex, count(*) from p group by sex, a having a = 1",
    "select a as b, b as a, count(*) c from p group by a, b",
    "select a as b, count(*) c from p where b = 1 group by a order by b",
    "select sum(b) as a, avg(a) as z from p",
    "select max(a) as a from p having a > 1",
    "select count(*) from p where if(a > 3, b = 1, b = 2)",
    "select count(*) from p where not coalesce(n = 1, b = 2)",
    "select count(*) from p where not case when n > 3 then b = 1 when a = 2 then n = 1 end",
    "select sex, count(*) from p where case a when 1 then b = 1 when n then sex = 1 else null end group by sex",
    "select sum(case when case when a > 3 then b = 1 else n = 1 end then w else n end) from p",
    "select count(distinct (3)), count(distinct -1) from p where a > 2",
    "select sex, mode(1) from p where a > 2 group by sex",
    "select 1 as one, count(*) from p where a > 100 group by all",
    "select corr(a, b), corr(b, a), regr_slope(a, b), regr_slope(b, a) from p where a = 2",
    "select corr(a, b), regr_slope(a, b), regr_r2(a, b), stddev(a), var_pop(a) from p where a > 100",
    "select s, corr(a, n), regr_slope(a, n), regr_r2(n, a) from p where a = 2 or s = 'x' group by s",
    "select typeof(current_timestamp), typeof(localtime), current_date = today() as t, count(*) from p",
    "select current_date - count(*)::int as d from p where a = 3",
)
# columns of no name of their own are called as DuckDB calls them
NAMES = (
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
    "select * from (select sex, current_date, count(*) from p group by current_date, sex)",
)
# numbers that are whole on the original are whole where a query prints them
WHOLE = (
    "select count(*)::varchar || '!' as x, concat('n=', count(*)) as y, format('{} rows', count(*)) as z from p where a = 1",
    "select count(*) // 1000 as x, count(*) % 100 as y, sum(a) // 100 as z, (sum(a) + count(*))::text as w from p where a = 1",
    "select a, count(*) as c from p group by a having count(*) = 2640",
    "select to_json(count(*)) as x, {'n': count(*)} as y, [count(*)] as z from p where a = 1",
    "select coalesce(count(*), 0) as x, count(*) * 2 - 1 as y, greatest(count(*), 5) as z from p where a = 1",
    "select n::varchar as x, n from (select a, count(*) as n from p group by a) join q using (a)",
    "select (select count(*) from p where a = 1) || '/' || (select count(*) from p) as x",
    "select case when count(*) > 10 then count(*)::varchar else '<10' end as x from p where a = 1",
    "select count(*) as x from p where a = 1 union all select count(*) from p where a = 2",
    "select to_days(count(*)::int) as x, date '2020-01-01' + count(*)::int as y from p where a = 1",
)
# a step of a WITH hides tables of its name where it is visible, and nowhere else
HIDING = (
    "with p as (select * from p where sex = 1) select count(*) as n from p",
    "with P as (select * from P where sex = 1) select count(*) as n from p",
    "with p as (select * from p where sex = 1) select count(*) as n from main.p",
    "with p as (select * from p where sex = 1), b as (select * from p where a < 4) "
    "select count(*) as n from b",
    "with p(x, y) as (select sex, a from p) select x, count(*) as n from p group by x",
    "with p as (select sex, count(*) as n from p group by sex) select max(n) as n from p",
    "select n from (with p as (select * from p where sex = 1) select count(*) as n from p)",
    "select (with p as (select * from p where sex = 1) select count(*) from p) as k, "
    "count(*) as n from p",
    "with b as (with p as (select * from p where sex = 1) select count(*) as k from p), "
    "c as (select count(*) as n from p) select k, n from b, c",
    "with r as (select sex, count(*) as n from p group by sex), "
    "b as (select sex, count(*) as k from p where a < 3 group by sex) "
    "select r.sex, n, k from r join b using (sex)",
    "with few as (select 5 as a) select count(*) as n from p where a in (select a from few)",
)
NOT_READ = (
    "with p as (select 1 as a from range(3)) select count(*) from p",
    "with recursive p as (select 1 as a union all select a + 1 from p where a < 5) "
    "select count(*) from p",
)
# fmt: on


@pytest.fixture(scope="module")
def tables():
    con = duckdb_anon.connect()
    con.execute(
        "create table p as select (i % 7)::int as a, (i % 3)::int as b, (['x', 'y', 'Z', '', 'xy'])[1 + i % 5] as s, "
        "(i % 2)::int as \"Sex\", (date '2020-01-01' + ((i % 4) * 40)::int) as d, "
        "case when i % 11 = 0 then null else (i % 6)::int end as n, ((i % 8) / 2.0)::double as w from range(18480) t(i)"
    )
    con.execute("create table few as select 2 as a")
    con.execute("create table q as from (values (1, 'one'), (2, 'two'), (5, 'five'), (null, 'none')) v(a, label)")
    for column in ("a", "b", "sex", "d", "n", "w"):
        con.execute(f"comment on column p.{column} is 'anon: quasi'")
    con.execute("comment on column p.s is 'anon: sensitive'; create table r as from mondrian('p', 2)")
    boxes = "a.lower = a.upper and b.lower = b.upper and sex.lower = sex.upper and d.lower = d.upper"
    exact = con.execute(f"select bool_and({boxes} and n.lower is not distinct from n.upper) from r").fetchone()
    assert exact == (True,)
    return con


def answers(tables: duckdb.DuckDBPyConnection, query: str, bounds: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names and rows of a query on the release, after it held the bounds against the estimates."""
    ((text,),) = tables.execute("select rewrite_query($1, 'p', 'r', bounds := $2)", [query, bounds]).fetchall()
    found = tables.execute(text)
    names, rows = [column[0] for column in found.description or ()], found.fetchall()
    for row in rows:
        shown = dict(zip(names, row, strict=True))
        assert all(shown[f"{n}_low"] == shown[n] == shown[f"{n}_high"] for n in names if f"{n}_low" in names)
    return names, rows


@pytest.mark.parametrize(
    ("query", "bounds"),
    [
        *(pytest.param(q, "none", marks=() if i % 4 == 0 else pytest.mark.campaign) for i, q in enumerate(QUERIES)),
        *((query, "none") for query in NAMES),
        *((query, "hard") for query in HIDING),
    ],
)
def test_an_exact_release_answers_as_the_original(tables, query, bounds):
    statement = tables.execute(query)
    wanted, truth = [column[0] for column in statement.description or ()], statement.fetchall()
    names, rows = answers(tables, query, bounds)
    assert names[: len(wanted)] == wanted
    assert_same([row[: len(wanted)] for row in rows], truth)


@pytest.mark.parametrize("query", WHOLE)
def test_counts_are_printed_whole(tables, query):
    assert sorted(map(str, answers(tables, query, "none")[1])) == sorted(map(str, tables.execute(query).fetchall()))


def test_columns_that_tell_the_time_are_called_as_the_original_query_calls_them(tables):
    query = "select CURRENT_DATE, current_timestamp, current_time, now(), today(), count(*) from p"
    assert answers(tables, query, "none")[0] == [column[0] for column in tables.execute(query).description or ()]


def test_estimates_read_what_a_subquery_counts_by_its_name(tables):
    query = 'select "count_star()" as n, sex from (select sex, count(*) from p group by 1)'
    rows = tables.execute("select \"Sex\", measure from estimate(?, 'r', original := 'p')", [query]).fetchall()
    assert sorted(rows) == [(0, "n"), (1, "n")]


@pytest.mark.parametrize("query", NOT_READ)
def test_a_step_of_its_name_is_not_the_original(tables, query):
    with pytest.raises(duckdb.Error, match="does not read the original p"):
        tables.execute("select rewrite_query($1, 'p', 'r')", [query])


@pytest.mark.parametrize("engine", ["closed", "imputed"])
def test_windows_go_over_the_groups_that_having_keeps(tables, engine):
    query = "select a, count(*) * 1.0 / sum(count(*)) over () as share from p where b < 2 group by a having a > 3"
    call = "select original, estimate from relative_error($1, 'p', 'r', engine := $2)"
    assert_same(tables.execute(call, [query, engine]).fetchall(), [(1 / 3, 1 / 3)] * 3)


def test_rows_are_in_the_order_of_the_counts_that_are_shown(tables):
    tables.execute("create table wide as from mondrian('p', 3000, qi := ['a', 'b'], seed := 1)")
    query = "select a, count(*) as n from p where b < 2 group by a order by count(*) desc, a"
    call = "select rewrite_query(?, 'p', 'wide', qi := ['a', 'b'])"
    rows = tables.execute(tables.execute(call, [query]).fetchall()[0][0]).fetchall()
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0]))


def test_an_answer_that_is_not_a_number_stands_in_the_note(tables):
    for query in ("select count(*) > 3 from p", "select count(*) || ' rows' as n from p"):
        call = "select estimate, note from estimate(?, 'r', original := 'p')"
        ((estimate, note),) = tables.execute(call, [query]).fetchall()
        ((answer,),) = tables.execute(query).fetchall()
        assert estimate is None
        assert f"the answer is {str(answer).lower()}, which is not a number" in note


@pytest.mark.parametrize(
    "quantile",
    [
        "median(c)",
        "quantile_cont(c, 0.3)",
        "quantile_disc(c, 0.3)",
        "median(z::decimal(5, 1))",
        "avg(d)",
        "percentile_disc(0.5) within group (order by i desc)",
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_quantiles_of_decimals_have_the_digits_of_the_column(con, quantile, sign):
    con.execute(
        f"create table o as select ({sign} * i * 1.01)::decimal(9, 2) as c, ({sign} * (i * 3 + 1))::decimal(9, 0) as z, "
        f"{sign} * i * 3 as i, date '2020-01-01' + i::int as d from range(4) t(i)"
    )
    con.execute(
        "create table r as select {lower: c, upper: c} as c, {lower: z, upper: z} as z, {lower: i, upper: i} as i, "
        "{lower: d, upper: d} as d from o"
    )
    query = f"select {quantile} from o"
    text = con.execute("select rewrite_query($1, 'o', 'r')", [query]).fetchone()
    assert_same(con.execute(text[0]).fetchall(), con.execute(query).fetchall())
