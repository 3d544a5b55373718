"""workload_error, cube_error and compare over releases of every shape."""

import duckdb
import numpy as np
import pytest

import duckdb_anon

pytestmark = pytest.mark.campaign

RELEASES = {
    "muco": "muco('people', 0.5, row_id := true, seed := 1)",
    "mondrian": "mondrian('people', k := 4, seed := 1)",
    "anatomy": "anatomy('people', 3, seed := 1)",
    "slicing": "slicing('people', 2, columns := [['age', 'sex'], ['zip']], seed := 1)",
    "hybrid": "hybrid('people', 4, rho := 0.7, q := 0.6, seed := 1)",
    "laplace": "laplace_on_groups('people', 5, 1.0, keep := [], seed := 1)",
    "response": "rr_distort('people', p := 0.8, seed := 1)",
}


@pytest.fixture(scope="module")
def people():
    con = duckdb_anon.connect()
    con.execute(
        "create table people as select (18 + hash(i, 1) % 40)::integer as age, "
        "(['f', 'm'])[1 + (hash(i, 2) % 2)::integer] as sex, "
        "(100 + hash(i, 3) % 20)::integer as zip, (10 + hash(i, 4) % 7)::integer as dose from range(400) t(i)"
    )
    for column, role in (("age", "quasi"), ("sex", "quasi"), ("zip", "quasi"), ("dose", "sensitive")):
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    for name, source in RELEASES.items():
        con.execute(f"create table by_{name} as from {source}")
    return con


def check(con: duckdb.DuckDBPyConnection, original: str, release: str, options: str) -> None:
    """Compare each answer of a workload with the query's own rewriting."""
    rows = con.execute(f"select query, original, estimate from workload_error('{original}', '{release}', {options})")
    for query, truth, estimate in (answered := rows.fetchall()):
        statement = "select original, estimate from relative_error($1, $2, $3, engine := 'closed')"
        node = con.execute(statement, [query, original, release])
        assert np.allclose(node.fetchall()[0], (truth, estimate)), query
    assert answered


@pytest.mark.parametrize(
    "options", ["dims := 3, aggregate := 'sum(height)'", "dims := 1, aggregate := 'sum(born)'", "dims := 2"]
)
def test_answers_over_boxes_with_gaps_nulls_lengths_and_sets(con, options):
    con.execute(
        "create table people as select nullif(1900 + 3 * (hash(i, 1) % 40), 1930)::integer as born, "
        "(hash(i, 2) % 1000) / 7.0::double as height, (hash(i, 3) % 5)::integer as room, i % 4 as dose, "
        "'j' || floor(sqrt(hash(i, 4) % 100))::integer as job "
        "from range(300) as t(i)"
    )
    roles = "qi := ['born', 'height', 'room', 'job'], sensitive := 'dose'"
    con.execute(f"create table release as from mondrian('people', k := 6, {roles}, seed := 1)")
    assert con.execute("select count(*) from release where born is not null and born.lower is null").fetchall() != [
        (0,)
    ]
    assert con.execute("select count(*) from release where len(job) > 1").fetchall() != [(0,)]
    check(con, "people", "release", f"{roles}, selectivity := 0.4, n := 12, seed := 2, {options}")


@pytest.mark.parametrize("original", ["visits", "persons"])
def test_lists_of_a_person_count_as_often_as_the_original_has_rows(con, original):
    con.execute("create table tree as select chr((97 + i)::integer) as leaf, (i // 3)::varchar as node, '*' as root "
                "from range(9) as t(i)")  # fmt: skip
    con.execute(
        "create table visits as select i // 3 as person, 20 + i // 3 * 7 % 40 as age, 1 + i // 3 % 3 as ward, "
        "chr((97 + hash(i, 1) % 9)::integer) as diagnosis from range(240) as t(i) where hash(i, 2) % 4 > 0"
    )
    con.execute(
        "create table persons as select person, age, ward, list(diagnosis) as diagnosis from visits group by all"
    )
    for table in ("visits", "persons"):
        con.execute(f"comment on column {table}.diagnosis is 'anon: sensitive hierarchy=tree'")
        con.execute(f"comment on column {table}.age is 'anon: quasi'; comment on column {table}.ward is 'anon: quasi'")
    con.execute("create table release as from one_to_m_generalize('visits', 2, 2, person := 'person', seed := 1)")
    options = "selectivity := 0.4, n := 6, seed := 2, dims := 1"
    check(con, original, "release", f"{options}, aggregate := 'sum(age)'")
    if original == "visits":
        check(con, original, "release", f"{options}, predicate_on_sensitive := true")
    else:
        with pytest.raises(duckdb.Error, match=r"holds lists; ask for list_contains\(diagnosis, value\)"):
            check(con, original, "release", f"{options}, predicate_on_sensitive := true")


def test_releases_may_be_temporary_or_not_committed(people):
    con = duckdb_anon.load(people.cursor())
    options = "dims := 2, n := 30, seed := 5, predicate_on_sensitive := true"
    found = con.execute(f"from workload_error('people', 'by_anatomy', {options})").fetchall()
    con.execute("create temp table passing as from by_anatomy")
    assert con.execute(f"from workload_error('people', 'passing', {options})").fetchall() == found
    con.execute("begin; create table pending as from by_anatomy")
    assert con.execute(f"from workload_error('people', 'pending', {options})").fetchall() == found
    con.execute("rollback")


def test_releases_answer_the_same_queries(people):
    people.execute("create or replace table other as select * replace (age + 100 as age) from people")
    texts = [
        people.execute(
            f"select query from workload_error('people', '{name}', n := 30, dims := 2, seed := 6)"
        ).fetchall()
        for name in ("people", "by_mondrian", "by_laplace", "other")
    ]
    assert all(text == texts[0] for text in texts)


@pytest.mark.parametrize("number", ["null", "1.5"])
def test_weights_that_are_none_are_refused(people, number):
    rate = f"case when age = 20 then {number} else 0.5 end as sampling_rate"
    people.execute(f"create or replace table weighed as select *, {rate} from people")
    with pytest.raises(duckdb.Error, match="workload_error: column sampling_rate of the release"):
        people.execute("from workload_error('people', 'weighed', n := 3, dims := 1)")


def test_an_empty_release_answers_0(people):
    for name in ("by_mondrian", "by_response", "by_anatomy"):
        people.execute(f"create or replace table none as from {name} limit 0")
        found = people.execute("select distinct estimate from workload_error('people', 'none', n := 5, dims := 2)")
        assert found.fetchall() == [(0.0,)]


def test_queries_without_an_answer_are_drawn_again(people):
    options = "dims := 3, seed := 1, selectivity := 0.002"
    text = f"select min(abs(original)) > 0, min(redrawn) > 0 from workload_error('people', 'by_mondrian', {options})"
    assert people.execute(text).fetchall() == [(True, True)]


def test_cube_has_every_cell_once_with_its_dimensions(people):
    text = "from cube_error('people', 'by_muco', dims := ['sex', 'zip'])"
    found = people.execute(f"select len(dims), count(*), sum(original) {text} group by 1 order by 1").fetchall()
    pairs = people.execute("select count(*) from (select distinct sex, zip from people)").fetchall()[0][0]
    assert found == [(0, 1, 400.0), (1, 22, 800.0), (2, pairs, 400.0)]
    keys = people.execute(f"select dims, map_keys(keys) {text} where dims <> map_keys(keys)").fetchall()
    assert keys == []


def test_cube_without_dims_needs_few_quasi_identifiers(con):
    con.execute(f"create table wide as select {', '.join(f'i as c{k}' for k in range(7))} from range(3) as t(i)")
    with pytest.raises(duckdb.Error, match="7 quasi-identifiers"):
        con.execute(f"from cube_error('wide', 'wide', qi := {[f'c{k}' for k in range(7)]})")


def test_compare_has_a_row_a_release_in_the_order_given(people):
    names = [f"by_{name}" for name in RELEASES]
    rows = people.execute(f"from compare('people', {names}, n := 50, dims := 2, seed := 1)").fetchall()
    assert [r[0] for r in rows] == names
    assert [r[1] for r in rows] == ["rows", "boxes", "buckets", "sliced", "boxes", "counts", "randomized"]
    assert all(error is not None and note for *_, error, note in rows)
    mondrian = rows[1]
    assert mondrian[3] >= 4
    assert rows[0][5] is not None


def test_compare_tells_the_risk_of_buckets_and_the_errors_of_lists(people):
    con = people
    estimated = con.execute(
        "select l, mean_error > 0 from compare('people', ['by_slicing', 'by_anatomy'], n := 20, dims := 2)"
    ).fetchall()
    by_slicing = con.execute("select l from slicing_diversity('people', 'by_slicing')").fetchall()[0][0]
    assert estimated[0] == (by_slicing, True)
    assert estimated[1][1]
    con.execute("create table linked as from anatomy('people', 3, row_id := true, seed := 1)")
    row = con.execute("select identity, attribute from compare('people', ['linked'], n := 5, dims := 2)").fetchall()[0]
    strongest = "from linkage_risk('people', 'linked', targets := 400, seed := 1) where attacker = 'strongest'"
    assert row == con.execute(f"select identity, attribute {strongest}").fetchall()[0]
    con.execute("create table answers as from rr_distort('people', 3, row_id := true, seed := 1)")
    loss = con.execute("select shape, iloss, mean_error > 0 from compare('people', ['answers'], n := 5, dims := 2)")
    assert loss.fetchall() == [("randomized", None, True)]
    con.execute("create table tree as select (10 + i)::integer as dose, 'all' as root from range(7) as t(i)")
    con.execute("create table visits as select *, rowid // 2 as person from people")
    for column, role in (("age", "quasi"), ("zip", "quasi"), ("dose", "sensitive hierarchy=tree")):
        con.execute(f"comment on column visits.{column} is 'anon: {role}'")
    con.execute("update visits set age = 30 + person % 9, zip = 100 + person % 7")
    con.execute("create table lists as from one_to_m_generalize('visits', 2, 2, person := 'person', seed := 1)")
    text = "select shape, k, identity, mean_error >= 0 from compare('visits', ['lists'], n := 20, dims := 2, seed := 1)"
    assert con.execute(text).fetchall() == [("persons", None, None, True)]


def test_text_of_even_shares_runs_without_the_package(people, tmp_path):
    query = "SELECT sex, count(*) AS n FROM people WHERE age < 30 GROUP BY sex"
    for release in ("mondrian", "anatomy", "slicing"):
        learnt, text = (
            people.execute(
                f"select rewrite_query($1, 'people', $2, spread := '{spread}')", [query, f"by_{release}"]
            ).fetchall()[0][0]
            for spread in ("learnt", "uniform")
        )
        plain, copy = duckdb.connect(), tmp_path / f"{release}.parquet"
        people.execute(f"copy by_{release} to '{copy}'")
        plain.execute(f"create table by_{release} as from '{copy}'")
        expected = people.execute(
            f"select keys, estimate from relative_error($1, 'people', 'by_{release}', engine := 'closed')", [query]
        ).fetchall()
        assert sorted(people.execute(learnt).fetchall()) == sorted(
            (keys["sex"], round(estimate)) for keys, estimate in expected
        )
        assert sorted(plain.execute(text).fetchall()) == sorted(people.execute(text).fetchall())


def test_boxes_that_noise_has_emptied_are_spread_evenly(people):
    con = duckdb_anon.load(people.cursor())
    con.execute("create or replace temp table drawn as select (range % 8)::double as a from range(80)")
    con.execute(
        "create or replace table noisy as select {lower: low::double, upper: low::double + 2} as a, n as noisy_count "
        "from (values (0, 30::bigint), (2, -6::bigint), (4, 40::bigint), (6, 0::bigint)) as t(low, n)"
    )
    con.execute("create or replace table exact as from drawn")
    estimated = "workload_error('exact', 'noisy', qi := ['a'], n := 40, dims := 1, selectivity := 0.3, seed := 1"
    found = con.execute(f"select query, estimate from {estimated})").fetchall()
    even = con.execute(f"select query, estimate from {estimated}, spread := 'uniform')").fetchall()
    assert any(value < 0 for _, value in even)
    for (query, value), (_, plain) in zip(found, even, strict=True):
        node = con.execute(
            "select estimate from relative_error($q, 'exact', 'noisy', qi := ['a'])", {"q": query}
        ).fetchall()
        assert value == pytest.approx(node[0][0] or 0, abs=1e-9), query
        assert value == pytest.approx(plain, abs=1e-9), query
