"""A step of a WITH hides tables of its name where it is visible, and nowhere else: answers are those of the original.

Boxes of the release are single values, so every estimate must be the answer itself, and its bounds with it.
"""

import duckdb
import pytest

import duckdb_anon

HIDING = (
    "with people as (select * from people where sex = 1) select count(*) as n from people",
    "with PEOPLE as (select * from People where sex = 1) select count(*) as n from people",
    "with people as (select * from people where sex = 1) select count(*) as n from main.people",
    "with people as (select * from people where sex = 1), b as (select * from people where a < 4) "
    "select count(*) as n from b",
    "with people(x, y) as (select sex, a from people) select x, count(*) as n from people group by x",
    "with people as (select sex, count(*) as n from people group by sex) select max(n) as n from people",
    "select n from (with people as (select * from people where sex = 1) select count(*) as n from people)",
    "select (with people as (select * from people where sex = 1) select count(*) from people) as k, "
    "count(*) as n from people",
    "with b as (with people as (select * from people where sex = 1) select count(*) as k from people), "
    "c as (select count(*) as n from people) select k, n from b, c",
    "with released as (select sex, count(*) as n from people group by sex), "
    "b as (select sex, count(*) as k from people where a < 3 group by sex) "
    "select released.sex, n, k from released join b using (sex)",
    "with few as (select 5 as a) select count(*) as n from people where a in (select a from few)",
)
NOT_READ = (
    "with people as (select 1 as a from range(3)) select count(*) from people",
    "with recursive people as (select 1 as a union all select a + 1 from people where a < 5) "
    "select count(*) from people",
)


@pytest.fixture(scope="module")
def released():
    con = duckdb_anon.connect()
    con.execute(
        "create table people as select i % 7 as a, (i % 5)::varchar as s, i % 2 as sex from range(700) t(i); "
        "create table few as select 2 as a; "
        "comment on column people.a is 'anon: quasi'; comment on column people.sex is 'anon: quasi'; "
        "comment on column people.s is 'anon: sensitive'"
    )
    con.execute("create table released as from mondrian('people', 5)")
    assert con.execute("select bool_and(a.lower = a.upper and sex.lower = sex.upper) from released").fetchone() == (
        True,
    )
    return con


@pytest.mark.parametrize("query", HIDING)
def test_answers_are_those_of_the_original(released, query):
    found = released.execute(query)
    names = [column[0] for column in found.description or ()]
    truth = sorted(found.fetchall())
    text = released.execute("select rewrite_query($1, 'people', 'released', bounds := 'hard')", [query]).fetchone()
    answered = released.execute(text[0])
    columns = [column[0] for column in answered.description or ()]
    rows = answered.fetchall()
    assert sorted(tuple(row[columns.index(name)] for name in names) for row in rows) == truth
    for row in rows:
        estimated = dict(zip(columns, row, strict=True))
        assert all(
            estimated[f"{n}_low"] == estimated[n] == estimated[f"{n}_high"] for n in names if f"{n}_low" in estimated
        )


@pytest.mark.parametrize("query", NOT_READ)
def test_a_step_of_its_name_is_not_the_original(released, query):
    with pytest.raises(duckdb.Error, match="does not read the original people"):
        released.execute("select rewrite_query($1, 'people', 'released')", [query])
