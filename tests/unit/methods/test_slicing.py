"""slicing through SQL."""

from __future__ import annotations

import duckdb
import pytest

ROLES = "qi := ['age', 'sex', 'job'], sensitive := 'disease'"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """400 people."""
    con.execute(
        """create table people as select (20 + hash(i) % 50)::int as age, ['f', 'm'][(hash(i, 1) % 2 + 1)::int] as sex,
        'job' || hash(i, 2) % 5 as job, 'd' || hash(i, 3) % 6 as disease from range(400) r(i)"""
    )
    return con


def test_every_bucket_is_l_diverse_and_no_value_is_lost(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(f"create table r as from slicing('people', 3, {ROLES}, columns := [['age', 'sex'], ['job']])")
    shares = people.execute(
        """select max(n / total) from (select count(*) as n, sum(count(*)) over (partition by bucket) as total
        from r group by bucket, disease)"""
    ).fetchone()
    assert shares[0] <= 1 / 3 + 1e-9
    lost = "select age, sex from people except all select unnest(age_sex) from r"
    assert people.execute(f"select count(*) from ({lost})").fetchone() == (0,)
    assert people.execute("select count(distinct bucket) > 5, count(*) from r").fetchone() == (True, 400)


def test_rows_that_share_the_sensitive_column_s_attributes_are_diverse(people: duckdb.DuckDBPyConnection) -> None:
    columns = "columns := [['age'], ['sex', 'disease'], ['job']]"
    people.execute(f"create table r as from slicing('people', 2, {ROLES}, {columns})")
    worst = people.execute(
        """select max(n / total) from (select count(*) as n,
        sum(count(*)) over (partition by bucket, sex_disease.sex) as total from r group by bucket, sex_disease)"""
    ).fetchone()
    assert worst[0] <= 0.5 + 1e-9


def test_the_sensitive_attribute_may_be_kept_alone(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("create table linked as select * replace (disease || age as job) from people")
    alone = people.execute(f"describe from slicing('linked', 2, {ROLES}, sensitive_column := 'alone')").fetchall()
    assert alone[-1][0] == "disease"
    clustered = people.execute(f"describe from slicing('linked', 2, {ROLES}, column_count := 1)").fetchall()
    assert clustered[-1][0] == "age_sex_job_disease"


def test_the_error_says_which_l_could_be_met(people: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match=r"slicing: .* the largest l this table can meet is [0-9.]+"):
        people.execute(f"from slicing('people', 7, {ROLES}, columns := [['age', 'sex', 'job']])").fetchall()
    with pytest.raises(duckdb.Error, match="takes one sensitive column"):
        people.execute("from slicing('people', 2, qi := ['age'], sensitive := ['job', 'disease'])").fetchall()
