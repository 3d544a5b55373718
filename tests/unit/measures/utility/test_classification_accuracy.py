"""classification_accuracy: what a tree learns from releases of several shapes."""

import duckdb
import pytest

pytest.importorskip("sklearn")

ROLES = "qi := ['age', 'sex', 'job'], sensitive := 'class'"


@pytest.fixture
def people(con):
    """600 people whose class follows from age and sex."""
    con.execute(
        """create table people as select age, sex, job, case when age < 40 then 'young' when sex = 'f' then 'old_f'
        else 'old_m' end as class from (select (20 + hash(i) % 40)::int as age,
        ['f', 'm'][(hash(i, 1) % 2 + 1)::int] as sex, 'job' || hash(i, 2) % 4 as job from range(600) r(i))"""
    )
    return con


def _measured(con: duckdb.DuckDBPyConnection, release: str, extra: str = "") -> dict[str, float]:
    con.execute(f"create or replace table r as {release}")
    result = con.execute(f"from classification_accuracy('people', 'r', 'class', {ROLES}, seed := 1{extra})")
    row = dict(zip([c[0] for c in result.description], result.fetchall()[0], strict=True))
    assert row["learner"] == "CART" and row["target"] == "class"
    return row


def test_the_original_as_a_release_is_learned_perfectly(people):
    row = _measured(people, "select *, row_number() over () - 1 as row_id from people")
    assert row["accuracy"] == row["original_accuracy"] == 1.0
    share = people.execute("select max(n) / 600 from (select count(*) as n from people group by class)").fetchone()[0]
    assert row["majority_accuracy"] == pytest.approx(share, abs=0.01)


def test_a_release_without_any_information_is_worth_the_largest_class(people):
    blank = "select 30 as age, 'f' as sex, 'job1' as job, class, row_number() over () - 1 as row_id from people"
    row = _measured(people, blank)
    assert row["accuracy"] == pytest.approx(row["majority_accuracy"], abs=0.02)
    assert row["original_accuracy"] == 1.0


def test_test_records_are_not_in_the_training_data(people):
    # a column that identifies each record would let the tree look its class up
    people.execute(
        "create or replace table people as select * replace (hash(age, sex, job, rowid) % 97 as age) from people"
    )
    row = _measured(people, "select *, row_number() over () - 1 as row_id from people", ", min_leaf := 1")
    assert row["accuracy"] < 0.8
    assert row["accuracy"] == row["original_accuracy"]


def test_a_release_without_row_id_is_refused(people):
    call = f"from mondrian('people', k := 5, {ROLES})"
    with pytest.raises(duckdb.Error, match="row_id := true"):
        _measured(people, call)


def test_errors_name_the_cause(people):
    call = f"from classification_accuracy('people', '(select *, rowid as row_id from people)', '{{}}', {ROLES}{{}})"
    with pytest.raises(duckdb.Error, match="did you mean 'class'"):
        people.execute(call.format("clas", "")).fetchall()
    with pytest.raises(duckdb.Error, match="ask for fewer folds"):
        people.execute(call.format("class", ", folds := 601")).fetchall()
