"""Tables of a released database: drawn together, so that they join and an individual has one value in all of them."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.answering.original_names import SHAPE, Answering, RewriteQuery
from duckdb_anon.serve.server import Analyst
from duckdb_anon.serve.tokens import Client

TOGETHER = {"patients": "release.patients", "visits": "release.visits"}
EXACT = (  # nothing of what these read was generalized
    "select count(*), sum(cost) from patients join visits on id = patient",
    "select count(distinct patient) from visits",
    "select count(*) from patients where not exists (select 1 from visits where patient = id)",
    "select count(*) from patients where id in (select patient from visits where cost > 40)",
    "select count(*) from (select patient, count(*) as n from visits group by 1) where n >= 3",
    "select median(n) from (select id, count(visit) as n from patients left join visits on patient = id group by id)",
    "select count(*) from visits a join visits b on a.patient = b.patient and a.visit < b.visit",
    "select count(distinct case when cost > 40 then patient end) from visits",
)
ESTIMATED = (
    "select female, count(*) as n, count(distinct id) as people from patients join visits on id = patient group by female",
    "select avg(age) from patients join visits on id = patient where ward = 'w1'",
    "select ward, sum(age) from patients, visits where id = patient group by ward",
    "select kind, count(*) from visits join wards using (ward) group by kind",
    "select kind, avg(cost) as c from visits v join passing on v.ward = passing.ward group by kind order by c",
    "select k.kind, sum(age) from patients p join visits v on p.id = v.patient join other.wards k on k.ward = v.ward group by 1",
    "select count(*) from visits where ward in (select ward from passing where kind = 'cut')",
)
REFUSED = (
    "select count(*) from patients where id = 107",
    "select count(*) from patients where id between 100 and 200",
    "select count(*) from patients join visits on id = patient where patient in (107, 108)",
    "select count(*) from (select patient as p, count(*) from visits group by 1) where p < 120",
    "with v as (select patient as p from visits) select count(*) from v where p % 2 = 0",
    "select sum(id) from patients join visits on id = patient",
    "select count(*) from visits where patient = visit + 1",
)


@pytest.fixture(scope="module")
def hospital() -> duckdb.DuckDBPyConnection:
    """400 patients, of whom the older ones come more often, and their visits."""
    con = duckdb_anon.connect()
    con.execute("""create table patients as select range + 100 as id, (hash(range) % 80)::int as age,
        hash(range + 7) % 2 = 0 as female from range(400)""")
    con.execute("""create table visits as select row_number() over () as visit, id as patient, age + n as cost,
        'w' || hash(id, n) % 4 as ward from patients, range(6) t(n) where n <= age / 20 + hash(id) % 3 - 1""")
    for column, label in {"patients.age": "quasi", "patients.female": "quasi", "visits.ward": "quasi",
                          "visits.cost": "sensitive"}.items():  # fmt: skip
        con.execute(f"comment on column {column} is 'anon: {label}'")
    duckdb_anon.release_database(
        con, ["patients", "visits"], individuals="patients", key="id", k=4,
        keys={"visits.patient": "patients.id"},
        treatments={"visits": {"visit": "pseudonym"}},
    )  # fmt: skip
    con.execute(
        "create table wards as select 'w' || range as ward, if(range < 2, 'cut', 'other') as kind from range(4)"
    )
    con.execute(
        "create temp table passing as from wards; attach ':memory:' as other; create table other.wards as from wards"
    )
    return con


def test_tables_of_a_database_are_drawn_so_that_they_join(hospital):
    for name in TOGETHER:
        hospital.execute(f"create or replace temp table d_{name} as "
                         f"from impute('release.{name}', original := '{name}', seed := 1, together := {TOGETHER})")  # fmt: skip
    joined, people = hospital.execute(
        "select count(*), count(distinct id) from d_patients join d_visits on patient = id"
    ).fetchone()
    assert (joined,) == hospital.execute("select count(*) from release.visits").fetchone()
    assert (people,) == hospital.execute("select count(distinct patient) from release.visits").fetchone()
    # every drawn value lies in the released cell of its row
    outside = hospital.execute("""select count(*) from d_patients d join release.patients r using (id)
        where not (d.age between r.age.lower and r.age.upper and list_contains(r.female, d.female))""").fetchone()
    assert outside == (0,)


def test_a_key_of_the_release_joins_groups_and_counts_as_the_original_does(hospital):
    lost = hospital.execute("select (select count(*) from visits) - (select count(*) from release.visits)").fetchone()
    for query in EXACT:
        found = hospital.execute(f"select original, estimate from relative_error($${query}$$, {TOGETHER})").fetchall()
        for original, estimate in found:
            assert abs(original - estimate) <= 0.05 * original + lost[0], query


def test_joined_queries_are_estimated_with_lookup_tables_wherever_they_are(hospital):
    errors = []
    for query in ESTIMATED:
        found = hospital.execute(
            f"select relative_error, method from relative_error($${query}$$, {TOGETHER})"
        ).fetchall()
        errors += [error for error, _ in found]
        groups = hospital.execute(f"select count(*) from estimate($${query}$$, {TOGETHER})").fetchone()
        assert groups == (len(found),), query
    assert sum(errors) / len(errors) < 0.1


@pytest.mark.parametrize("query", REFUSED)
def test_a_constant_is_never_a_key(hospital, query):
    for call in ("relative_error", "estimate"):
        with pytest.raises(duckdb.Error, match=r"is a key, .*\[cannot-estimate\]"):
            hospital.execute(f"from {call}($${query}$$, {TOGETHER})")


def test_an_analyst_joins_releases_without_their_originals(hospital, tmp_path):
    hospital.execute(f"attach '{tmp_path / 'release.duckdb'}' as given")
    for name in TOGETHER:
        hospital.execute(f"create table given.{name} as from release.{name}")
        labels = hospital.execute("select column_name, comment from duckdb_columns() where schema_name = 'release' "
                                  "and table_name = ? and comment is not null", [name]).fetchall()  # fmt: skip
        for column, text in labels:
            hospital.execute(f"comment on column given.{name}.{column} is '{text}'")
    hospital.execute("detach given")
    query = "select female, avg(age), count(*) from patients join visits on id = patient group by female order by all"
    with duckdb_anon.connect(str(tmp_path / "release.duckdb"), read_only=True) as con:
        alone = con.execute(
            f"select * exclude note from estimate($${query}$$, {{'patients': 'patients', 'visits': 'visits'}})"
        )
        rows = alone.fetchall()
    there = hospital.execute(f"select * exclude note from estimate($${query}$$, {TOGETHER})").fetchall()
    assert [row[:2] for row in rows] == [row[:2] for row in there]
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in there])


def test_the_ends_of_tight_boxes_are_values_of_their_class(con):
    # forty classes of three records, whose boxes overlap
    con.execute("create table people (age integer, class integer)")
    con.execute("comment on column people.age is 'anon: quasi'")
    con.execute(
        "create table boxes as select {'lower': range // 3, 'upper': range // 3 + 100} as age, range // 3 as class from range(120)"
    )
    ends = con.execute("select class, min(age) - class, max(age) - class from impute('boxes', original := 'people', seed := 1) "
                       "group by class order by class").fetchall()  # fmt: skip
    assert ends[1:] == [(number, 0, 100) for number in range(1, 40)]  # no other box ends near 100


def test_servers_and_dashboards_answer_queries_over_several_originals(hospital, tmp_path):
    file = str(tmp_path / "published.duckdb")
    hospital.execute(f"attach '{file}' as published")
    for name in TOGETHER:
        hospital.execute(f"create table published.{name}_r as from release.{name}")
        shape = ", ".join(f"null::{kind} as {column}" for column, kind, *_ in
                          hospital.execute(f"describe {name}").fetchall())  # fmt: skip
        hospital.execute(f"create view published.{name} as select {shape} where false")
        hospital.execute(f"comment on view published.{name} is '{SHAPE}'")
        labels = hospital.execute("select column_name, comment from duckdb_columns() where schema_name = 'release' "
                                  "and table_name = ? and comment is not null", [name]).fetchall()  # fmt: skip
        for column, text in labels:
            hospital.execute(f"comment on column published.{name}_r.{column} is '{text}'")
        hospital.execute(f"comment on table published.{name}_r is 'anon: release'")
    hospital.execute("detach published")
    query = "select female, avg(age) as a, count(*) as n from patients join visits on id = patient group by female order by female"
    there = hospital.execute(f"select estimate from estimate($${query}$$, {TOGETHER}) order by all").fetchall()
    answering = Answering.of("patients:patients_r, visits:visits_r")
    with duckdb_anon.connect(file, read_only=True) as con:
        answering.require_published(con)
        text, _ = answering.rewritten(query, (), RewriteQuery(con))
        dashboard = con.execute(text).fetchall()
    served = Analyst(file, answer=dict(answering.releases), seed=1)
    answer = served.answer(query, Client("")).sql
    found = [value for row in dashboard for value in row[1:]]
    answered = served.con.cursor().execute(answer).fetchall()
    assert [value for row in answered for value in row[1:]] == pytest.approx(found)
    assert sorted(found) == pytest.approx(sorted(value for (value,) in there), abs=0.5)


def test_tables_that_were_released_without_links_are_not_joined():
    con = duckdb_anon.connect()
    con.execute("create table patients as select range as id, range % 7 as age from range(80)")
    con.execute("create table visits as select range % 80 as patient, range % 3 as ward from range(160)")
    for column in ("patients.age", "visits.ward"):
        con.execute(f"comment on column {column} is 'anon: quasi'")
    keys = {"visits.patient": "patients.id"}
    duckdb_anon.release_database(
        con, ["patients", "visits"], individuals="patients", key="id", k=4, keys=keys, linked=False
    )
    call = "from estimate('select count(*) from {}', {'patients': 'release.patients', 'visits': 'release.visits'})"
    assert con.execute(call.replace("{}", "visits")).fetchall()
    with pytest.raises(duckdb.Error, match="linked := false") as refused:
        con.execute(call.replace("{}", "patients join visits on id = patient"))
    assert "patients" in str(refused.value) and "visits" in str(refused.value)
