"""Rows that a column joins without a label are not released: hashed keys kept unchanged, identifiers that repeat."""

from __future__ import annotations

import duckdb
import pytest

from duckdb_anon import ColumnError, release, release_database


@pytest.fixture
def visits(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(
        "create table visits as select i % 120 as patient_id, i as visit_id, md5('salt' || i % 120) as hashed, i % 70 as age, "
        "'ward ' || i % 60 as ward, (i * 37 % 997)::double as cost, '2024-01-' || (10 + i % 20) as written, "
        "'d' || i % 3 as disease from range(300) t(i)"
    )
    for column, role in (("age", "quasi"), ("disease", "sensitive")):
        con.execute(f"comment on column visits.{column} is 'anon: {role}'")
    return con


@pytest.mark.parametrize("column", ["hashed", "visit_id", "patient_id"])
def test_a_key_is_not_released_unchanged_unless_forced(visits: duckdb.DuckDBPyConnection, column: str) -> None:
    with pytest.raises(ColumnError, match=f"'{column}'.*written like a key") as caught:
        release(visits, "r", f"mondrian('visits', 5, keep := ['{column}'])")
    assert caught.value.code == "key-column"
    release(visits, "r", f"mondrian('visits', 5, keep := ['{column}'], force := true)")


def test_quantities_and_texts_of_words_are_no_keys(visits: duckdb.DuckDBPyConnection) -> None:
    release(visits, "r", "mondrian('visits', 5, keep := ['ward', 'cost', 'written'])")


def test_an_identifier_that_repeats_asks_for_the_person(visits: duckdb.DuckDBPyConnection) -> None:
    visits.execute("comment on column visits.patient_id is 'anon: identifier'")
    visits.execute("comment on column visits.visit_id is 'anon: identifier'")
    with pytest.raises(ColumnError, match="no column is labelled person") as caught:
        release(visits, "r", "mondrian('visits', 5)")
    assert caught.value.code == "repeated-identifier"
    visits.execute("comment on column visits.patient_id is 'anon: person'")
    release(visits, "r", "mondrian('visits', 5)")


def test_a_database_keeps_no_key_unchanged(visits: duckdb.DuckDBPyConnection) -> None:
    visits.execute("create table patients as select distinct patient_id, patient_id % 50 as age from visits")
    visits.execute("comment on column visits.hashed is 'anon: insensitive'")
    options = {
        "individuals": "patients",
        "key": "patient_id",
        "k": 3,
        "keys": {"visits.patient_id": "patients.patient_id"},
    }
    with pytest.raises(ColumnError, match="'hashed'"):
        release_database(visits, ["patients", "visits"], **options)
    release_database(visits, ["patients", "visits"], treatments={"visits": {"hashed": "pseudonym"}}, **options)


def test_a_household_is_no_role(visits: duckdb.DuckDBPyConnection) -> None:
    visits.execute("comment on column visits.ward is 'anon: household'")
    with pytest.raises(duckdb.Error, match="labelled household, which is no role"):
        visits.execute("from mondrian('visits', 5)")
