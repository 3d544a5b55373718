"""Bounds of confidence 1 hold, and what is compared is one group with itself."""

import duckdb
import pytest

import duckdb_anon


@pytest.fixture(scope="module")
def con():
    """Six rows; r hides the ages of two, of which one is NULL and one is in no other box."""
    with duckdb_anon.connect() as con:
        con.execute("create table p as from (values (5, 1), (null, 2), (20, 3), (21, 4), (30, 5), (31, 6)) t(age, c)")
        con.execute("create table d as from (values (1), (2), (3)) t(x)")
        con.execute(
            "create table r as select *, 1 as sensitive_edges from (values ({lower: 20, upper: 21}, 3), ({lower: 20, upper: 21}, 4), "
            "({lower: 30, upper: 31}, 5), ({lower: 30, upper: 31}, 6), ({lower: null, upper: null}, 1), "
            "({lower: null, upper: null}, 2)) t(age, c)"
        )
        con.execute("create table suppressed as select *, 2 as suppressed from r where c > 2")
        con.execute("create table words as from (values ('a', 1), ('A', 2), ('A', 3), ('b', 4)) t(w, n)")
        con.execute("create table hidden as select [w] as w, {lower: n, upper: n} as n from words")
        yield con


def bounded(
    con: duckdb.DuckDBPyConnection, query: str, original: str, release: str
) -> list[tuple[float, float | None, float | None]]:
    roles = "qi := ['age'], sensitive := 'c'" if original == "p" else "qi := ['w', 'n']"
    text = f"from relative_error($1, '{original}', '{release}', bounds := 'hard', {roles})"
    rows = con.execute(f"select original, low, high from ({text}) where confidence = 1", [query]).fetchall()
    return [(row[0], row[1], row[2]) for row in rows]


HIDDEN_VALUES = (
    "select coalesce(age, 20) + c >= 10 as k, count(*) as n from p group by k",
    "select count(*) as n from p where coalesce(age, 20) + c >= 10",
    "select sum(c) as n from p where age + c = 6",
    "select count(*) as n from (select coalesce(age, 20) > 10 as k, count(*) as c from p group by k having count(*) > 5)",
    "select list_sum([age, c]) as k, count(*) as n from p group by k",
)  # fmt: skip


@pytest.mark.parametrize("query", HIDDEN_VALUES)
def test_a_box_without_ends_may_be_what_no_other_box_covers(con, query):
    for truth, low, high in bounded(con, query, "p", "r"):
        assert low is None or low <= truth
        assert high is None or truth <= high


def test_a_key_of_a_box_with_ends_is_still_sure(con):
    found = bounded(con, "select c, age >= 20 as k, count(*) as n from p where c > 2 group by all", "p", "r")
    assert found == [(1, 1, 1)] * 4


def test_a_join_has_no_hard_bounds(con):
    assert bounded(con, "select count(*) as n from p", "p", "suppressed") == [(6, 4, 6)]
    assert bounded(con, "select count(*) as n from p join d on true", "p", "suppressed") == []


PICKED = (
    ("select w, count(*) as c from words group by w qualify row_number() over (order by count(*) desc) = 1", [2]),
    ("select distinct on (upper(w)) w, count(*) as c from words group by w order by upper(w), count(*) desc", [2, 1]),
)  # fmt: skip


@pytest.mark.parametrize(("query", "truth"), PICKED)
def test_qualify_and_distinct_on_pick_groups_of_the_original(con, query, truth):
    con.execute("create or replace table coarse as select ['a', 'A', 'b'] as w, {lower: n, upper: n} as n from words")
    found = con.execute(
        "select original from relative_error($1, 'words', 'coarse', qi := ['w', 'n'])", [query]
    ).fetchall()
    assert sorted(found) == sorted((node,) for node in truth)


@pytest.mark.parametrize(
    "query",
    [
        "select upper(w) as k, count(*) as c from words group by w",
        "select upper(w) as k, n, count(*) as c from words group by grouping sets ((w, n), (w))",
        "select upper(w) as w, count(*) as c from words group by words.w having count(*) > 0",
    ],
)
def test_groups_that_look_alike_are_told_apart(con, query):
    found = bounded(con, query, "words", "hidden")
    displayed = con.execute(query).fetchall()
    assert sorted(found) == sorted((row[-1], row[-1], row[-1]) for row in displayed)


def test_a_key_that_is_shown_twice_has_two_names(con):
    text = "from relative_error('select w, w, count(*) as c from words where n = 4 group by w', 'words', 'hidden', qi := ['w', 'n'])"
    assert con.execute(f"select keys from ({text})").fetchall() == [({"w": "b", "w_1": "b"},)]


def test_rows_that_nothing_tells_apart_are_paired_in_the_order_of_their_values(con):
    alone = [row[0] for row in con.execute("select count(*) from words group by w order by 1").fetchall()]
    for query in (
        "select t.c from (select w, count(*) as c from words group by w) as t",
        "select t.b from (select w, count(*) from words group by w) as t(a, b)",
        "select count(*) as c from words group by w union all select 0 where false",
    ):
        text = f"from relative_error('{query}', 'words', 'words', qi := ['w', 'n'])"
        rows = con.execute(f"select original, estimate, low, high {text} order by all").fetchall()
        assert rows == [(many, many, None, None) for many in alone], query


def test_rows_without_an_aggregate_are_counted(con):
    query = "select distinct w, n from words"
    for call in (f"relative_error('{query}', 'words', 'words', qi := ['w', 'n'])",
                 f"estimate('{query}', 'words', original := 'words', qi := ['w', 'n'])"):  # fmt: skip
        found = con.execute(f"select measure, estimate from {call}").fetchall()
        assert found == [("rows", 1.0)] * con.execute(f"select count(*) from ({query})").fetchone()[0]


@pytest.mark.parametrize(
    "query",
    [
        "select age, n from (select age, c, count(*) as n from p group by all)",
        "select age, count(*) as n from p group by age union all select c, count(*) from p group by c",
    ],
)
def test_groups_of_a_step_that_look_alike_are_paired_without_bounds(con, query):
    con.execute("create or replace table twice as from (values (5, 1), (5, 2), (6, 5), (6, 5)) t(age, c)")
    con.execute("create or replace table boxes as select {lower: age, upper: age} as age, c from twice")
    call = f"relative_error('{query.replace(' p ', ' twice ')}', 'twice', 'boxes')"
    alike = con.execute(f"select relative_error, low, high, contains(note, 'paired') from {call}").fetchall()
    assert set(alike) == {(0.0, None, None, True)}
    rows = con.execute(
        "select original, low, high from relative_error('select age, c, n from (select age, c, count(*) as n from "
        "twice group by all)', 'twice', 'boxes')"
    ).fetchall()
    assert sorted(rows) == [(1, None, None), (1, None, None), (2, None, None)]


def test_what_depends_on_the_order_of_rows_is_not_certain(con):
    con.execute("create or replace table ties as from (values (1, 7), (2, 8), (3, 7), (4, 8)) t(age, c)")
    con.execute("create or replace table shuffled as select [age] as age, c from ties order by c desc")
    query = "select mode(c), mode(c) filter (where c > 0), sum(c) from ties"
    rows = con.execute(
        "select low, high, confidence from relative_error(?, 'ties', 'shuffled', qi := ['age'])", [query]
    ).fetchall()
    assert rows == [(None, None, None), (None, None, None), (30, 30, 1)]


def test_kept_columns_beside_randomized_ones_are_not_certain_where_their_values_stand_for_others(con):
    con.execute(
        "create table far as select i % 5 as a, case when i = 0 then 1000 else i % 3 end as v from range(24) r(i)"
    )
    roles = "qi := ['a'], sensitive := 'v'"
    con.execute(f"create table cut as from rr_distort('far', p := 0.8, scope := 'qi', sensitive_edges := 3, {roles})")
    rows = con.execute(
        f"select original, estimate, confidence from relative_error('select max(v) from far', 'far', 'cut', {roles})"
    ).fetchall()
    assert [row[0::2] for row in rows] == [(1000, None)]
    assert rows[0][1] < 1000
