"""The columns of estimate's answers."""

import re

import pytest

import duckdb_anon

FIXED = ["measure", "estimate", "low", "high", "confidence", "method", "note"]


@pytest.fixture
def people(con):
    con.execute("""create table people as select (hash(range) % 50)::int as age, 'c' || range % 3 as city,
        date '2020-01-01' + (range % 300)::int as born, range % 2 = 0 as flag, 's' || range % 4 as disease
        from range(300)""")
    for column in ("age", "city", "born", "flag"):
        con.execute(f"comment on column people.{column} is 'anon: quasi'")
    con.execute("comment on column people.disease is 'anon: sensitive'")
    duckdb_anon.release(con, "boxes", "mondrian('people', 5)", independent=True)
    return con


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("select age, city, born, flag, count(*) as n from people group by all", 4),
        ("select date_trunc('month', born) as m, disease, avg(age) from people group by all", 2),
        ("select count(*) from people", 0),
    ],
)
def test_keys_have_the_names_and_types_of_the_query(people, query, keys):
    right = [(row[0], row[1]) for row in people.execute(f"describe {query}").fetchall()[:keys]]
    found = [(row[0], row[1]) for row in people.execute(f"describe from estimate($${query}$$, 'boxes')").fetchall()]
    assert found[:keys] == right
    assert [name for name, _ in found[keys:]] == FIXED


def test_keys_named_like_columns_of_the_answer_are_told_apart(people):
    query = 'select city as estimate, flag as "Note", count(*) as n from people group by all'
    names = [row[0] for row in people.execute(f"describe from estimate($${query}$$, 'boxes')").fetchall()]
    assert names == ["estimate_1", "Note_1", *FIXED]


def test_totals_say_which_keys_they_are_over(people):
    query = "select city, flag, count(*) as n from people group by rollup (city, flag)"
    found = people.execute(f"select \"grouping\", sum(estimate) from estimate($${query}$$, 'boxes') group by 1")
    assert dict(found.fetchall()) == pytest.approx({0: 300, 1: 300, 3: 300})


def test_an_answer_without_doubt_is_exact(people):
    found = people.execute(
        "select disease, method from estimate('select disease, count(*) from people group by disease', 'boxes')"
    ).fetchall()
    assert sorted(found) == [(f"s{i}", "exact") for i in range(4)]
    statement = "select method from estimate('select count(*) from people where age < 20', 'boxes')"
    assert people.execute(statement).fetchall() == [("closed form",)]


def test_permuted_values_beside_other_columns_are_imputed_within_their_bounds(people):
    duckdb_anon.release(people, "buckets", "anatomy('people', 3)", independent=True)
    query = "select disease, count(*) as n from people where age < 20 group by disease order by n desc"
    statement = f"select method, estimate, low, high from estimate($${query}$$, 'buckets'"
    found = people.execute(f"{statement})").fetchall()
    assert len(found) == 4 and {row[0] for row in found} <= {"imputed", "exact"}
    assert all(low <= estimate <= high for _, estimate, low, high in found)
    assert [row[1] for row in found] == sorted((row[1] for row in found), reverse=True)
    for engine in ("spread := 'uniform'", "engine := 'closed'"):
        assert {row[0] for row in people.execute(f"{statement}, {engine})").fetchall()} == {"closed form"}
    alone = "select method from estimate('select disease, count(*) from people group by disease', 'buckets')"
    assert {row[0] for row in people.execute(alone).fetchall()} == {"exact"}


def test_the_engine_follows_from_the_release_and_the_aggregate(con):
    con.execute("""create table p as select (hash(i) % 40)::int as a, (hash(i) % 40 + hash(i, 1) % 5)::int as b,
        (hash(i, 2) % 9)::int as s from range(1000) as r(i)""")
    roles = "qi := ['a', 'b'], sensitive := 's', seed := 1"
    con.execute(f"create table boxes as from mondrian('p', 20, {roles})")
    con.execute(f"create table few as from mondrian('(from p limit 900)', 20, {roles})")
    con.execute(f"create table random as from rr_distort('p', p := 0.7, {roles})")
    count, mean = (f"select {x} as n from p where a < 12 and b >= 12" for x in ("count(*)", "avg(s)"))
    cases = [("boxes", count, "imputed"), ("boxes", mean, "imputed"), ("few", count, "closed form"),
             ("random", count, "closed form"), ("random", mean, "imputed")]  # fmt: skip
    for release, query, method in cases:
        call = f"select method from estimate($1, '{release}', original := 'p', qi := ['a', 'b'], sensitive := 's')"
        assert (release, query, con.execute(call, [query]).fetchall()) == (release, query, [(method,)])


def test_groups_that_few_plausible_tables_have_are_left_out_and_counted(people):
    query = "select age, city, count(*) as n from people group by all"
    found = people.execute(f"select method, note from estimate($${query}$$, 'boxes', engine := 'imputed')").fetchall()
    assert found and all(method == "imputed" and "left out" in note for method, note in found)


def test_bounds_wider_than_the_answer_say_so(people):
    rows = people.execute(
        "select estimate, low, high, note from estimate('select age, count(*) as n from people group by age', 'boxes')"
    ).fetchall()
    wide = [high - low > estimate for estimate, low, high, _ in rows]
    assert any(wide)
    assert [note is not None and "high minus low is larger than the estimate" in note for *_, note in rows] == wide


def test_joins_that_take_single_rows_of_the_original_are_imputed(people):
    people.execute("create table days as select range * 10 + 23 as day from range(4)")
    query = "select count(*) as n from days asof join people on days.day >= people.age"
    found = people.execute(f"select estimate, low, method from estimate('{query}', 'boxes')").fetchall()
    assert people.execute(query).fetchall() == [(4,)]
    assert found == [(4.0, None, "imputed")]


def test_the_text_of_rewrite_query_gives_the_estimates_and_names_its_spread(people):
    duckdb_anon.release(people, "buckets", "anatomy('people', 3)", independent=True)
    query = "select disease, avg(age) as m from people where age < 30 group by disease order by disease"
    for release, line in (("boxes", "-- spread := 'learnt'"), ("buckets", "-- plausible tables")):
        estimates = people.execute(f"select disease, estimate from estimate($${query}$$, '{release}')").fetchall()
        ((text,),) = people.execute(f"select rewrite_query($${query}$$, 'people', '{release}')").fetchall()
        assert text.startswith(line)
        assert people.execute(text).fetchall() == [(key, pytest.approx(mean)) for key, mean in sorted(estimates)]
    wide = "select count(*) as n from people where age = 7 and city = 'c1'"
    ((text,),) = people.execute(f"select rewrite_query($${wide}$$, 'people', 'boxes', bounds := 'hard')").fetchall()
    assert people.execute(text).fetchall()[0][-1] == "n: high minus low is larger than the estimate"


@pytest.fixture(scope="module")
def costs():
    with duckdb_anon.connect() as con:
        con.execute(
            "create table bills as select i % 50 as age, i % 2 as sex, (i % 100)::decimal(9, 2) as cost from range(2000) t(i)"
        )
        call = "mondrian('bills', 7, qi := ['age', 'sex'], keep := ['cost'])"
        duckdb_anon.release(con, "r", call)
        yield con


@pytest.mark.parametrize(
    "aggregate",
    [
        "quantile_cont(cost, [0.25, 0.5, 0.75])",
        "quantile_disc(cost, [0.25, 0.5, 0.75])",
        "quantile_cont(age, [0.25, 0.5, 0.75])",
        "percentile_cont([0.25, 0.5, 0.75]) within group (order by age)",
    ],
)
@pytest.mark.parametrize("bounds", ["none", "sure", "likely"])
def test_several_quantiles_are_in_the_note(aggregate, bounds, costs):
    true = costs.execute(f"select {aggregate} from bills").fetchall()[0][0]
    call = f"estimate('select {aggregate} from bills', 'r', 'bills', qi := ['age', 'sex'], bounds := '{bounds}')"
    ((estimate, note),) = costs.execute(f"select estimate, note from {call}").fetchall()
    found = re.search(r"the answer is \[(.*?)\], which is not a number", note)
    assert estimate is None and found is not None
    assert [float(text) for text in found[1].split(", ")] == pytest.approx([float(x) for x in true], abs=1)


@pytest.mark.parametrize("key", ["ntile(4) over (order by age)", "row_number() over (order by age) % 4"])
def test_ranks_of_a_nested_query_are_keys(key, costs):
    query = f"select n, count(*) from (select {key} as n from bills) group by n order by n"
    rows = costs.execute(f"select n, estimate from estimate('{query}', 'r', 'bills', qi := ['age', 'sex'])").fetchall()
    assert rows == costs.execute(query).fetchall()


def test_pairs_of_records_have_a_note(costs):
    query = "select count(*) from bills as a join bills as b using (age)"
    ((note,),) = costs.execute(f"select note from estimate('{query}', 'r', 'bills', qi := ['age', 'sex'])").fetchall()
    assert "joined with itself" in note


def test_query_without_an_aggregate_counts_rows_that_are_alike(costs):
    found = costs.execute(
        "select measure, estimate from estimate('select distinct sex from bills', 'r', 'bills', qi := ['age', 'sex'])"
    )
    rows, there = found.fetchall(), costs.execute("select count(distinct sex) from bills").fetchone()
    assert rows == [("rows", 1.0)] * there[0]
