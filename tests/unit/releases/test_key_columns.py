"""Rows that a column joins without a label are not released: hashed keys kept unchanged, identifiers that repeat."""

import warnings

import pytest

import duckdb_anon
from duckdb_anon import AnonError, AnonWarning, ColumnError, release, release_database
from duckdb_anon.cli import main
from duckdb_anon.serve.publish import publish


@pytest.fixture
def visits(con):
    con.execute("""create table visits as select i % 120 as patient_id, i as visit_id, md5('salt' || i % 120) as hashed, i % 70 as age,
        'ward ' || i % 60 as ward, (i * 37 % 997)::double as cost, '2024-01-' || (10 + i % 20) as written,
        'd' || i % 3 as disease from range(300) t(i)""")
    for column, role in (("age", "quasi"), ("disease", "sensitive")):
        con.execute(f"comment on column visits.{column} is 'anon: {role}'")
    return con


@pytest.mark.parametrize("column", ["hashed", "visit_id"])
def test_a_key_is_not_released_unchanged_unless_forced(visits, column):
    with pytest.raises(ColumnError, match=f"'{column}'.*written like a key") as caught:
        release(visits, "r", f"mondrian('visits', 5, keep := ['{column}'])")
    assert caught.value.code == "key-column"
    release(visits, "r", f"mondrian('visits', 5, keep := ['{column}'], force := true)")


def test_quantities_and_texts_of_words_are_no_keys(visits):
    release(visits, "r", "mondrian('visits', 5, keep := ['ward', 'cost', 'written'])")


def test_an_identifier_that_repeats_asks_for_the_person(visits):
    visits.execute("comment on column visits.patient_id is 'anon: identifier'")
    visits.execute("comment on column visits.visit_id is 'anon: identifier'")
    with pytest.raises(ColumnError, match="no column is labelled person") as caught:
        release(visits, "r", "mondrian('visits', 5)")
    assert caught.value.code == "repeated-identifier"
    visits.execute("comment on column visits.patient_id is 'anon: person'")
    release(visits, "r", "mondrian('visits', 5)")


def test_a_plain_call_warns_of_an_identifier_that_repeats(visits, tmp_path, capsys):
    visits.execute("from mondrian('visits', 5)")
    visits.execute("comment on column visits.patient_id is 'anon: identifier'")
    for call in ("mondrian('visits', 5)", "k_anonymity('visits')"):
        name = call.partition("(")[0]
        with pytest.warns(AnonWarning, match=rf"{name}: the identifier 'patient_id' .* has 120 values in 300 rows"):
            assert visits.execute(f"from {call}").fetchall()
    visits.execute("from mondrian('visits', 5, force := true)")
    visits.execute("comment on column visits.patient_id is 'anon: person'")
    visits.execute("from mondrian('visits', 5)")
    visits.execute("create view seen as select patient_id as who, age from visits")
    with pytest.warns(AnonWarning, match="k_anonymity: column 'who' of seen is labelled person in visits"):
        visits.execute("from k_anonymity('seen', ['age'])").fetchall()
    visits.execute("from k_anonymity('seen', ['age'], person := 'who')")
    visits.execute("comment on column visits.patient_id is 'anon: identifier'")
    visits.execute(f"attach '{tmp_path}/v.duckdb' as file")
    visits.execute("create table file.visits as from visits")
    for column in ("patient_id is 'anon: identifier'", "age is 'anon: quasi'"):
        visits.execute(f"comment on column file.visits.{column}")
    visits.execute("detach file")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main([str(tmp_path / "v.duckdb"), "-c", "from k_anonymity('visits')"]) == 0
    assert capsys.readouterr().err.startswith("warning: k_anonymity: the identifier 'patient_id'")


def test_publish_refuses_a_key_that_nobody_vouches_for(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "v.duckdb"))
    con.execute("""create table r as select md5('salt' || i % 120) as hashed, i % 7 as age, 'w' || i % 3 as ward
        from range(300) t(i)""")
    con.execute("comment on table r is 'anon: release'")
    con.close()
    given = (str(tmp_path / "v.duckdb"), str(tmp_path / "out.duckdb"))
    with pytest.raises(AnonError, match=r"'hashed' of r has 120 values in 300 rows.*--allow r.hashed"):
        publish(*given, allow=["r"])
    with pytest.raises(AnonError, match=r"--allow r.hashd: there is no such table or column"):
        publish(*given, allow=["r", "r.hashd"])
    assert publish(*given, allow=["r", "R.hashed"]).releases == {"r": 300}


def test_pseudonyms_of_a_database_are_no_keys_for_publish(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "v.duckdb"))
    con.execute("create table patients as select i as id, i % 30 as age from range(200) t(i)")
    con.execute("comment on column patients.age is 'anon: quasi'")
    release_database(con, ["patients"], individuals="patients", key="id", k=5)
    con.execute("drop table patients")
    con.close()
    made = publish(str(tmp_path / "v.duckdb"), str(tmp_path / "out.duckdb"), allow=["patients"])
    assert made.releases == {"patients": 200}


def test_a_database_keeps_no_key_unchanged(visits):
    visits.execute("create table patients as select distinct patient_id, patient_id % 50 as age from visits")
    visits.execute("comment on column visits.hashed is 'anon: insensitive'")
    options = {
        "individuals": "patients", "key": "patient_id", "k": 3, "keys": {"visits.patient_id": "patients.patient_id"},
    }  # fmt: skip
    with pytest.raises(ColumnError, match="'hashed'"):
        release_database(visits, ["patients", "visits"], **options)
    release_database(visits, ["patients", "visits"], treatments={"visits": {"hashed": "pseudonym"}}, **options)
