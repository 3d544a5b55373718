"""Cells without ends, beside those with: how they are spread, how they are listed, and what is said of those that cannot be."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.released_columns import OF_NULL, OF_RARE_NULL
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen


@pytest.fixture(scope="module")
def con():
    connection = duckdb.connect()
    connection.execute("create table people (age integer)")
    connection.execute("""
        create table release as select * from (values ({lower: 20, upper: 25}), ({lower: 24, upper: 29}),
          ({lower: null, upper: null}), ({lower: null, upper: null}), (null)) as t(age)
    """)
    return connection


SHARED = (
    ("age >= 24", lambda age: age >= 24),
    ("age BETWEEN 23 AND 26", lambda age: 23 <= age <= 26),
    ("age = 25", lambda age: age == 25),
    ("age BETWEEN 40 AND 50", lambda age: 40 <= age <= 50),
    ("age % 7 = 3", lambda age: age % 7 == 3),
)


@pytest.mark.parametrize(("condition", "holds"), SHARED)
def test_a_cell_without_ends_is_spread_over_all_ends_but_for_its_nulls(con, condition, holds):  # type: ignore[no-untyped-def]
    total = 0.0
    for (age,) in con.execute("select age from release").fetchall():
        if age is not None:
            ends = (age["lower"], age["upper"]) if age["lower"] is not None else (20, 29)
            values = range(ends[0], ends[1] + 1)
            total += sum(map(holds, values)) / len(values) * (1 if age["lower"] is not None else 1 - OF_NULL)
    text = rewrite(f"SELECT count(*) AS n FROM people WHERE {condition}", seen(con, "people"), seen(con, "release"))
    assert con.execute(text).fetchone() == (pytest.approx(total),)


KINDS = {"integer": "{}", "date": "date '2000-01-01' + {}", "decimal(9,2)": "{}.25::decimal(9,2)", "double": "{}.25::double",
         "timestamp": "timestamp '2000-01-01' + to_days({})"}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "alone", "spread", "width"),
    [*((kind, 3, "learnt", 7) for kind in KINDS), *(("integer", alone, spread, width) for alone in (0, 3)
     for spread in ("learnt", "uniform") for width in (0, 7))],
)  # fmt: skip
def test_nulls_and_values_add_up_to_the_records_for_every_type_and_spread(kind, alone, spread, width):
    con = duckdb_anon.connect()
    con.execute(f"create table people (x {kind}, g integer)")
    value = KINDS[kind]
    ends = f"{{lower: {value.format(20)}, upper: {value.format(20 + width)}}}"
    con.execute(f"""
        create table release as select case when i < 30 then {{lower: null, upper: null}} when i < 30 + {alone} then null
          else {ends} end::struct(lower {kind}, upper {kind}) as x, i as g from range(60) as t(i)""")
    query = "select count(*) filter (where x is null) as m, count(x) as n, count(*) filter (where x is not null) as o, count(*) as p from people"
    (text,) = con.execute(
        "select rewrite_query($1, 'people', 'release', spread := $2, qi := ['x'], bounds := 'none')", [query, spread]
    ).fetchone()
    nulls = alone + 30 * (OF_NULL if alone else OF_RARE_NULL)
    assert con.execute(text).fetchone() == pytest.approx((nulls, 60 - nulls, 60 - nulls, 60))
    drawn = "impute('release', 200, original := 'people', qi := ['x'], seed := 2, columns := ['x'])"
    (found,) = con.execute(f"select count(*) filter (where x is null) / 200 from {drawn}").fetchone()
    assert abs(found - nulls) < 5 * (30 * OF_NULL / 200) ** 0.5


MIDDLE = 24.5
"""The middle of the ends of all boxes."""


@pytest.fixture(scope="module")
def grouped():
    """Groups of rows without ends alone, of NULLs alone, of both, of boxes alone, and of all."""
    connection = duckdb.connect()
    connection.execute("create table people (age integer, tag varchar, cost integer)")
    connection.execute("create table tags as from (values ('a', 'x'), ('b', 'x'), ('d', 'y')) t(name, kind)")
    connection.execute("""
        create table release as select case age when 0 then null when 1 then {lower: null, upper: null}
            else {lower: age, upper: age + 5} end::struct(lower integer, upper integer) as age, [tag] as tag, cost
        from (values (1, 'a', 1), (1, 'a', 2), (0, 'b', 3), (0, 'b', 4), (1, 'c', 5), (0, 'c', 6), (20, 'd', 7),
          (24, 'd', 8), (20, 'e', 9), (1, 'e', 10), (0, 'e', 11)) as t(age, tag, cost)
    """)
    return connection


def test_joined_groups_and_products_of_shares_add_up_rows_without_ends(grouped):
    middle, chance = MIDDLE, 1 - OF_NULL
    people, release, tags = (seen(grouped, name) for name in ("people", "release", "tags"))
    query = "SELECT kind, sum(age) AS m FROM people JOIN tags ON tag = name GROUP BY kind"
    found = dict(grouped.execute(rewrite(query, people, release, [tags])).fetchall())
    assert found == pytest.approx({"x": 2 * middle * chance, "y": 22.5 + 26.5})
    query = "SELECT tag, sum(age * cost) AS m, sum(cost) FILTER (WHERE age IS NOT NULL) AS n FROM people GROUP BY tag"
    rows = {tag: (m, n) for tag, m, n in grouped.execute(rewrite(query, people, release)).fetchall()}
    assert rows["a"] == pytest.approx((3 * middle * chance, 3 * chance)) and rows["b"] == (None, None)
    assert rows["e"] == pytest.approx((9 * 22.5 + 10 * middle * chance, 9 + 10 * chance))


@pytest.mark.parametrize(
    ("remaining", "fails"), [("age is null", False), ("age.lower is null", True), ("false", False)]
)
def test_rows_without_ends_need_a_box_with_ends_only_where_there_are_any(remaining, fails):
    con = duckdb.connect()
    con.execute("create table people (age integer, tag varchar)")
    cells = "(null), ({lower: null::integer, upper: null::integer}), ({lower: 1, upper: 2})"
    con.execute(f"create table release as select age, ['a'] as tag from (values {cells}) t(age) where {remaining}")
    query = "SELECT tag, avg(age) AS m, count(age) AS n FROM people GROUP BY tag"
    text = rewrite(query, seen(con, "people"), seen(con, "release"))
    if fails:
        with pytest.raises(duckdb.Error, match="no interval of age has ends"):
            con.execute(text).fetchall()
    else:
        assert con.execute(text).fetchall() == ([("a", None, 0)] if remaining == "age is null" else [])


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        ("{lower: null, upper: null}", "no interval of age has ends"),
        ("{lower: 0, upper: 1000000}", "have over 1000000"),
    ],
)
def test_boxes_whose_values_cannot_be_listed_are_named(cells, wrong):
    con = duckdb.connect()
    con.execute("create table people (age integer)")
    con.execute(f"create table release as select {cells}::struct(lower integer, upper integer) as age from range(3)")
    text = rewrite("SELECT age, count(*) FROM people GROUP BY age", seen(con, "people"), seen(con, "release"))
    with pytest.raises(duckdb.Error, match=wrong):
        con.execute(text).fetchall()


@pytest.mark.parametrize(
    ("chance", "k", "nulls", "upto"), [(50, 10, 0.05, 0.1), (5, 10, 0.01, 0.2), (5, 50, 0.01, 0.5)]
)
def test_nulls_of_real_rows_are_counted_and_spare_the_largest_values(census, chance, k, nulls, upto):
    con = duckdb_anon.connect()
    con.register("rows", census.cursor().sql("from census").to_arrow_table())
    con.execute(
        f"create table people as select * exclude (i) replace (case when hash(i) % {chance} > 0 then age end as age) "
        "from (select *, row_number() over () as i from rows)"
    )
    roles = "qi := ['UHRSWORK', 'RACE', 'SEX', 'RELATE', 'AGE'], sensitive := 'OCC'"
    con.execute(f"create table release as from mondrian('people', {k}, {roles}, seed := 1)")
    query = "select count(*) filter (where age is null) as n, count(*) filter (where age >= 70) as old from people"
    for engine in ("closed", "imputed"):
        found = con.execute(
            f"select original, estimate from relative_error($1, 'people', 'release', {roles}, engine := $2) order by 1 desc",
            [query, engine],
        ).fetchall()
        for (truth, estimate), most in zip(found, (nulls, upto), strict=True):
            assert estimate == pytest.approx(truth, rel=most)


@pytest.mark.parametrize("value", ["20 + i % 30", "date '2000-01-01' + (i % 30)::int", "(i % 30) / 7.0"])
def test_a_workload_is_answered_where_no_interval_has_ends(value):
    # one NULL in the only class: queries are about the values of the original, over which records are spread
    with duckdb_anon.connect() as con:
        con.execute(f"create table t as select case when i > 0 then {value} end as x, i % 5 as s from range(60) r(i)")
        con.execute("comment on column t.x is 'anon: quasi'; comment on column t.s is 'anon: sensitive'")
        con.execute("create table r as from mondrian('t', 40)")
        assert con.execute("select count(*) from r where x.lower is not null").fetchone() == (0,)
        answers = "select count(estimate), max(relative_error) from workload_error('t', 'r', n := 30, selectivity := 0.5, seed := 1)"
        answered, worst = con.execute(answers).fetchone()
        assert answered == 30 and worst < 1
        assert con.execute("select mean_error from compare('t', ['r'], n := 20)").fetchone()[0] < 1


def test_nothing_is_learnt_of_a_column_without_any_ends():
    con = duckdb_anon.connect()
    con.execute("create table t as select (i % 40)::int as age, i % 5 as d from range(200) r(i)")
    con.execute("create table r as select {'lower': null::int, 'upper': null::int} as age, d from t")
    call = "workload_error('t', 'r', 6, dims := 1, seed := 1, qi := ['age'], sensitive := 'd', spread := '{}')"
    learnt, uniform = (con.execute(f"select sum(estimate) from {call.format(spread)}").fetchall()[0][0]
                       for spread in ("learnt", "uniform"))  # fmt: skip
    assert learnt == pytest.approx(uniform)


@pytest.mark.parametrize("kind", ["integer", "date", "double", "timestamp", "time", "decimal(9,2)"])
def test_whether_a_cell_is_null_is_answered_where_no_interval_of_the_column_has_ends(kind):
    con = duckdb_anon.connect()
    con.execute(f"create table people (x {kind}, g integer)")
    con.execute(f"""create table release as select {{lower: null, upper: null}}::struct(lower {kind}, upper {kind}) as x,
        i % 2 as g from range(60) as t(i)""")
    call = "from estimate($1, 'release', original := 'people', qi := ['x'], engine := 'closed')"
    for condition, share in (("x is null", OF_RARE_NULL), ("x is not null", 1 - OF_RARE_NULL)):
        query = f"select count(*) as n from people where {condition}"
        (found,) = con.execute(f"select estimate {call}", [query]).fetchone()
        assert found == pytest.approx(60 * share)
    if kind == "integer":
        with pytest.raises(duckdb.Error, match="cannot-estimate"):
            con.execute(f"select estimate {call}", ["select count(*) as n from people where x < 30"]).fetchall()
