"""The register: what release() enters, for which original, and what is never in it."""

import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.engine.records.register import registered

ROLES = "qi := ['age', 'edu'], sensitive := 'disease'"
CALL = f"mondrian('people', 10, {ROLES})"


@pytest.fixture
def people(con):
    con.execute("""
        create table people as select 'id' || i as person_id, (i * 7) % 50 as age,
        ['BA', 'MA', 'PhD', 'none'][i % 4 + 1] as edu, 'd' || (i % 6) as disease from range(400) t(i)""")
    return con


def test_a_release_is_entered_with_its_records(people):
    duckdb_anon.release(people, "r", CALL, key="PERSON_ID")
    (entered,) = registered(people, "memory", "people")
    assert (entered.name, entered.key, entered.method, entered.rows) == ("r", "person_id", "mondrian", 400)
    digest = people.execute("select comment from duckdb_tables() where table_name = 'r'").fetchall()[0][0]
    assert f" digest {entered.digest} seal " in digest
    listed = people.execute("select name, original, rows, recognized_by from anon_register()").fetchall()
    assert listed == [("r", "people", 400, "records")]
    # groups are the classes of the released rows
    sizes = people.execute('select count(*) from anon.records group by "group" order by all').fetchall()
    assert sizes == people.execute("select count(*) from r group by age, edu order by all").fetchall()
    assert people.execute("select count(distinct key), count(distinct content) from anon.records").fetchall() == [
        (400, 300)
    ]


def test_the_register_holds_no_value_of_the_original(people):
    duckdb_anon.release(people, "r", CALL, key="person_id")
    texts = [str(row) for row in people.execute("from anon.records").fetchall()]
    assert not any(value in text for text in texts for value in ("id17", "PhD", "'d3'"))
    # a key is found only with the secret
    guessed = "select count(*) from anon.records where key in (select sha256(person_id)[:32]::uuid from people)"
    assert people.execute(guessed).fetchall() == [(0,)]
    shown = people.execute("from anon_register()").fetchall()
    assert people.execute("select secret from anon.secret").fetchall()[0][0] not in str(shown)


def test_draws_come_from_the_secret(people):
    call = f"anatomy('people', 3, {ROLES})"
    duckdb_anon.release(people, "r", call)
    people.execute("delete from anon.releases")
    duckdb_anon.release(people, "again", call)
    assert people.execute("(from r except all from again) union all (from again except all from r)").fetchall() == []
    people.execute("delete from anon.releases; update anon.secret set secret = 'another'")
    duckdb_anon.release(people, "other", call)
    assert people.execute("from r except all from other").fetchall() != []


@pytest.mark.parametrize(
    ("change", "key", "reason"),
    [
        ("update people set person_id = null where age = 7", "person_id", "is NULL in 8 rows"),
        ("insert into people from people limit 1", "person_id",
         r"one value in several records \(401 rows, 400 values\)"),
        ("select 1", "personid", "there is no column 'personid' in people .did you mean 'person_id'"),
    ],
)  # fmt: skip
def test_a_column_that_identifies_no_record_is_refused(people, change, key, reason):
    people.execute(change)
    with pytest.raises(AnonError, match=reason):
        duckdb_anon.release(people, "r", CALL, key=key)
    assert people.execute("from anon_register()").fetchall() == []


def test_records_of_an_individual_have_one_key(people):
    people.execute("insert into people select person_id, age, edu, 'd' || (age % 6) from people using sample 100")
    people.execute("create table visits as select row_number() over () as visit, * from people")
    people.execute("comment on column visits.person_id is 'anon: person'")
    call = f"mondrian('visits', 10, {ROLES})"
    with pytest.raises(AnonError, match="key must be the person column 'person_id'"):
        duckdb_anon.release(people, "r", call, key="visit")
    duckdb_anon.release(people, "r", call, key="person_id")
    assert people.execute("select count(*), count(distinct key) from anon.records").fetchall() == [(500, 400)]


def test_the_register_is_in_the_database_of_the_original(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "out.duckdb"))
    con.execute(f"attach '{tmp_path / 'people.duckdb'}' as holder")
    con.execute("""create table holder.people as select i as id, i % 50 as age, 'd' || (i % 5) as disease
        from range(200) t(i)""")
    call = "mondrian('holder.people', 5, qi := ['age'], sensitive := 'disease')"
    duckdb_anon.release(con, "r", call, key="id")
    assert [r.name for r in registered(con, "holder", "people")] == ["out.r"]
    assert registered(con, "out") == []
    con.close()
    con = duckdb_anon.connect(str(tmp_path / "people.duckdb"))
    assert con.execute("select database, name, original from anon_register()").fetchall() == [
        ("people", "out.r", "people")
    ]
    con.close()


def test_views_and_queries_over_one_table_stand_for_it(people):
    people.execute(
        "create view adults as select * from people where age > 17; "
        "create temp table t as select age % 2 as age, edu, disease from people"
    )
    duckdb_anon.release(people, "r1", f"mondrian('adults', 5, {ROLES})")
    duckdb_anon.release(
        people, "r2", f"mondrian('(with a as (from adults) select * from a)', 5, {ROLES})", independent=True
    )
    duckdb_anon.release(people, "r3", f"mondrian('t', 5, {ROLES}, categorical := ['edu', 'disease'])")
    found = people.execute("select name, original, independent, recognized_by from anon_register()").fetchall()
    assert found == [
        ("r1", "people", False, "records"), ("r2", "people", True, "records"), ("r3", "temp.t", False, "name"),
    ]  # fmt: skip
