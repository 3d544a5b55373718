"""Numbers that are whole on the original are whole where a query prints them; a release of single values is the oracle."""

import duckdb
import pytest

import duckdb_anon

# fmt: off
QUERIES = (
    "select count(*)::varchar || '!' as x, concat('n=', count(*)) as y, format('{} rows', count(*)) as z from p where a = 1",
    "select count(*) // 1000 as x, count(*) % 100 as y, sum(a) // 100 as z, (sum(a) + count(*))::text as w from p where a = 1",
    "select a, count(*) as c from p group by a having count(*) = 264",
    "select to_json(count(*)) as x, {'n': count(*)} as y, [count(*)] as z from p where a = 1",
    "select coalesce(count(*), 0) as x, count(*) * 2 - 1 as y, greatest(count(*), 5) as z from p where a = 1",
    "select n::varchar as x, n from (select a, count(*) as n from p group by a) join q using (a)",
    "select (select count(*) from p where a = 1) || '/' || (select count(*) from p) as x",
    "select case when count(*) > 10 then count(*)::varchar else '<10' end as x from p where a = 1",
    "select count(*) as x from p where a = 1 union all select count(*) from p where a = 2",
    "select to_days(count(*)::int) as x, date '2020-01-01' + count(*)::int as y from p where a = 1",
)
# fmt: on


@pytest.fixture(scope="module")
def con():
    made = duckdb_anon.connect()
    made.execute("create table p as select (i % 7)::int as a, (i % 3)::int as b from range(1848) r(i)")
    made.execute("create table q as select * from (values (1, 'one'), (2, 'two')) v(a, label)")
    made.execute("create table r as from mondrian('p', 2, qi := ['a', 'b'])")
    made.execute("create table wide as from mondrian('p', 300, qi := ['a', 'b'])")
    return made


def text_of(con: duckdb.DuckDBPyConnection, query: str, release: str) -> str:
    call = f"select rewrite_query(?, 'p', '{release}', qi := ['a', 'b'])"
    return str(con.execute(call, [query]).fetchall()[0][0])


@pytest.mark.parametrize("query", QUERIES)
def test_counts_are_printed_whole(con, query):
    truth, estimated = (con.execute(text).fetchall() for text in (query, text_of(con, query, "r")))
    assert sorted(map(str, estimated)) == sorted(map(str, truth))


def test_rows_are_in_the_order_of_the_counts_that_are_shown(con):
    text = text_of(con, "select a, count(*) as n from p where b < 2 group by a order by count(*) desc, a", "wide")
    rows = con.execute(text).fetchall()
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0]))


def test_an_answer_that_is_not_a_number_stands_in_the_note(con):
    call = "select estimate, note from estimate(?, 'r', original := 'p', qi := ['a', 'b'])"
    for query in ("select count(*) > 3 from p", "select count(*) || ' rows' as n from p"):
        ((estimate, note),) = con.execute(call, [query]).fetchall()
        ((answer,),) = con.execute(query).fetchall()
        assert estimate is None
        assert f"the answer is {str(answer).lower()}, which is not a number" in note
