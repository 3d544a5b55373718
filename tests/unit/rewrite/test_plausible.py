"""Queries over plausible tables: exact where the release is exact, put together sensibly where it is not."""

from typing import Any

import duckdb
import pytest

from duckdb_anon.engine.draws import imputation
from duckdb_anon.kernels.plausible.augmentation import Augmentation
from duckdb_anon.kernels.plausible.tree import Options
from duckdb_anon.model.progress import Interrupted
from duckdb_anon.rewrite import answer, rewriter

QUERIES = (
    "select count(distinct age) as n from people",
    "select city, median(age), count(distinct age) from people group by city order by city",
    "select city, count(*) as n from people group by city having count(*) > 20 order by n desc, city limit 2",
    "select city, count(*) as n from people group by city order by median(age), city limit 2",
    "select city, list(distinct age order by age), bool_or(age > 50), mode(flag) from people group by city order by 1",
    "select city, max(r) from (select city, row_number() over (partition by city order by age) as r from people) "
    "group by city order by city",
    "select city, age, count(*) over (partition by city) as n from people order by city, age limit 20",
    "select city, age, sum(count(*)) over (partition by city order by age) as n from people group by city, age order by 1, 2",
    "select 'a' as k, count(distinct age) as n from people where flag union all "
    "select 'b', count(distinct city) from people order by k",
    "select count(*) from people a where age > (select avg(age) from people b where a.city = b.city)",
    "select avg(n) from (select city, count(*) as n from people group by city)",
    "select min(born), max(city) from people where exists (select 1 from people)",
    "select city, median(age) from people where age > 1000 group by city",
    "select median(age) from people where age > 1000",
    "select city, born - date '2020-01-01' as d, avg(born) as a, median(born) + interval 1 day as m from people group by all order by 1, 2",
    "select unnest([min(age), max(age), 7]) as n from people order by n",
    "select a from (values (20), (90)) as t(a) where exists (select 1 from people where age > a) order by a",
    "select city from people group by city having max(age) < 59 order by count(distinct age), city",
    "select city, flag, max(age) as n from people where age > 50 group by cube (city, flag) order by all",
    "select max(age) as n from people group by city, flag order by n",
    "select city, max(age) as n from people group by grouping sets ((city), (city), ()) order by all",
    "select city as k, median(age) as n from people group by 1 union all select 'm' || count(*), count(*) / 4 from people order by all desc",
    "select count(*), sum(p.age) from (select unnest([13, 23, 33]) as day) as d asof join people as p on day >= p.age",
)


@pytest.fixture(autouse=True)
def imputed(monkeypatch):
    """Every query is answered from plausible tables."""

    monkeypatch.setattr(answer, "why_not_linear", lambda *_: "nothing has")
    monkeypatch.setattr(rewriter, "_give_types", lambda *_: None)
    yield


@pytest.fixture
def people(con):
    con.execute("""create table people as select 'c' || range % 4 as city, (hash(range) % 60)::int as age,
        range % 3 = 0 as flag, date '2020-01-01' + (range % 50)::int as born from range(90)""")
    for column, role in {"city": "quasi", "age": "quasi", "flag": "sensitive", "born": "insensitive"}.items():
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    con.execute("create table same as from people")
    return con


def rewritten(con: duckdb.DuckDBPyConnection, query: str, release: str) -> list[tuple[Any, ...]]:
    row = con.execute(f"select rewrite_query($${query}$$, 'people', '{release}')").fetchone()
    return con.execute(row[0]).fetchall()


@pytest.mark.parametrize("query", QUERIES)
def test_an_exact_release_answers_as_the_original(people, query):
    assert rewritten(people, query, "same") == people.execute(query).fetchall()


def test_rows_that_few_draws_have_are_left_out_and_numbers_are_means(people):
    people.execute("create table boxes as from mondrian('people', 20)")
    found = dict(rewritten(people, "select age, count(*) from people group by age", "boxes"))
    drawn = people.execute(
        "select age, sum(c) / 10 from (select age, draw, count(*) as c from impute('boxes', 10, original := 'people', "
        "seed := 1) group by all) group by age having count(*) >= 5"
    ).fetchall()
    assert found == pytest.approx(dict(drawn))
    assert len(found) < 60


OVER_DRAWS = "select {} from (select draw, {} from impute('boxes', 10, original := 'people', seed := 1) group by draw)"


def test_answers_are_put_together_by_the_types_that_duckdb_gives_them(people):
    people.execute("comment on column people.born is 'anon: quasi'; create table boxes as from mondrian('people', 20)")
    answers = {
        "kurtosis(age)": "avg", "mad(age)": "avg", "max(born) - min(born)": "avg", "avg(born)": "quantile_disc",
        "max(born) + 1": "quantile_disc", "arg_max(born, age)": "quantile_disc", "arg_max(age, born)": "quantile_disc",
    }  # fmt: skip
    found = rewritten(people, f"select {', '.join(answers)} from people", "boxes")
    combined = (f"{how}(x{i}{', 0.5' * (how != 'avg')})" for i, how in enumerate(answers.values()))
    named = (f"{value} as x{i}" for i, value in enumerate(answers))
    assert found == people.execute(OVER_DRAWS.format(", ".join(combined), ", ".join(named))).fetchall()


def test_shares_of_rare_groups_add_up_as_their_counts_do(people):
    people.execute("create table boxes as from mondrian('people', 20)")
    measures = "count(*)", "count(*) * 100.0 / sum(count(*)) over ()", "round(count(*) / 90, 6)", "-2 * sum(age) / 90"
    found = rewritten(people, f"select age, {', '.join(measures)} from people group by age", "boxes")
    assert len(found) < 60
    for age, n, percent, share, total in found:
        assert (percent, share, total) == pytest.approx((n / 0.9, n / 90, -2 * age * n / 90), abs=1e-6)


def test_answers_about_the_same_group_are_put_together_whether_its_keys_are_shown_or_not(people):
    people.execute("create table boxes as from mondrian('people', 20)")
    query = "select {}count(distinct age) as n, max(age) as a from people where age > 40 group by {}"
    for keys in ("city, flag", "cube (city, flag)"):
        shown = rewritten(people, query.format("city, flag, grouping(city, flag), ", keys), "boxes")
        assert sorted(rewritten(people, query.format("", keys), "boxes")) == sorted(row[-2:] for row in shown)


def test_a_release_is_drawn_once_until_it_changes(people, monkeypatch):
    people.execute("create table boxes as from mondrian('people', 5)")
    times: list[str] = []
    draw = imputation._drawn
    monkeypatch.setattr(imputation, "_drawn", lambda calls, *given: times.append(calls[0].table) or draw(calls, *given))
    query = "select median(age) from people"
    first = rewritten(people, query, "boxes")
    assert rewritten(people, query, "boxes") == first
    rewritten(people, "select city, count(distinct flag) from people group by city", "boxes")
    assert len(times) == 1
    people.execute("begin")
    people.execute("delete from boxes where rowid < 40")
    rewritten(people, query, "boxes")
    assert len(times) == 2
    people.execute("rollback")
    assert rewritten(people, query, "boxes") == first
    assert len(times) == 2


def test_what_an_interrupted_query_drew_stays(people, monkeypatch):
    query, steps, reads = "select median(age) from people where city <> 'c1'", [], []
    people.execute("create table random as from rr_distort('people', p := 0.7)")
    expected = rewritten(people, query, "random")
    imputation._drawn_tables.clear()
    step, begin = Augmentation.step, imputation._begin

    def stopped(model):
        steps.append(model)
        if len(steps) == Options().channel_rounds + 5:  # the rounds of learning, and the fifth draw
            step(model)  # an interrupted draw has changed some rows
            raise Interrupted("stopped")
        step(model)

    monkeypatch.setattr(Augmentation, "step", stopped)
    monkeypatch.setattr(imputation, "_begin", lambda *given: reads.append(1) or begin(*given))
    with pytest.raises((duckdb.Error, Interrupted)):
        rewritten(people, query, "random")
    assert rewritten(people, query, "random") == expected
    assert (len(steps), len(reads)) == (Options().channel_rounds + 11, 1)


def test_what_cannot_be_drawn_is_said_while_planning(people):
    people.execute("create table short as select city, age from people")
    with pytest.raises(duckdb.InvalidInputException, match="column 'flag' is not in the release short"):
        rewritten(people, "select count(distinct flag) from people", "short")


def test_one_draw_answers_queries_without_measures(people):
    people.execute("create table boxes as from mondrian('people', 5)")
    found = rewritten(people, "select distinct city from people order by city", "boxes")
    assert found == [("c0",), ("c1",), ("c2",), ("c3",)]


def test_plausible_tables_number_columns_apart_from_the_originals(con):
    con.execute("create table people as select range % 5 as draw from range(20)")
    con.execute("comment on column people.draw is 'anon: quasi'")
    con.execute("create table same as from people")
    assert rewritten(con, "select count(distinct draw) from people", "same") == [(5,)]
