"""recommend: a ladder of methods tried on a table, best first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import duckdb_anon

QI = ("gender", "age", "relationship", "education")


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    """A labelled table of made-up people."""
    con = duckdb_anon.connect()
    con.execute("create table people as from anon_sample('census', rows := 2000, seed := 1)")
    for column in QI:
        con.execute(f"comment on column people.{column} is 'anon: quasi'")
    con.execute("comment on column people.salary is 'anon: sensitive'")
    yield con
    con.close()


def steps(con: duckdb.DuckDBPyConnection, arguments: str) -> list[dict[str, Any]]:
    result = con.execute(f"from recommend({arguments}, seed := 3)")
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module")
def tried(people: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """The whole table tried once."""
    return steps(people, "'people', max_risk := 0.02")


def risk(step: dict[str, Any]) -> float:
    return float(max(step["identity"], step["attribute"]))


def test_every_step_is_measured_on_the_stated_rows(tried: list[dict[str, Any]]) -> None:
    assert [s["failed"] for s in tried] == [None] * 9
    assert {s["rows"] for s in tried} == {2000}
    assert all(0 <= risk(s) <= 1 and s["query_error"] >= 0 and s["seconds"] > 0 for s in tried)


def test_steps_that_meet_the_largest_risk_come_first_by_query_error(tried: list[dict[str, Any]]) -> None:
    meets = [s["meets_max_risk"] for s in tried]
    assert meets == [risk(s) <= 0.02 for s in tried]
    assert True in meets and False in meets
    assert meets == sorted(meets, reverse=True)
    errors = [s["query_error"] for s in tried if s["meets_max_risk"]]
    assert errors == sorted(errors)


def test_frontier_holds_the_steps_no_other_beats(tried: list[dict[str, Any]]) -> None:
    for step in tried:
        beaten = any(
            risk(o) <= risk(step)
            and o["query_error"] <= step["query_error"]
            and (risk(o), o["query_error"]) != (risk(step), step["query_error"])
            for o in tried
        )
        assert step["on_frontier"] == (not beaten)


def test_recommended_call_runs_and_has_the_risk_it_was_tried_with(
    people: duckdb.DuckDBPyConnection, tried: list[dict[str, Any]]
) -> None:
    for step in (tried[0], tried[-1]):
        linked = step["call"].removesuffix(")") + ", row_id := true, seed := 8)"
        people.execute(f"create or replace temp table linked as {linked}")
        found = people.execute(
            "select identity, attribute from disclosure('people', 'linked', "
            f"qi := {list(QI)}, sensitive := 'salary', p_match := 0.7, seed := 8)"
        ).fetchall()[0]
        # other random values of the same groups: a mean over 2000 targets
        assert found == pytest.approx((step["identity"], step["attribute"]), abs=0.003)
        people.execute("drop table linked")


def test_same_seed_gives_the_same_figures_and_a_sample_has_the_asked_size(people: duckdb.DuckDBPyConnection) -> None:
    def figures() -> list[tuple[Any, ...]]:
        found = steps(people, "'people', rows := 500, targets := 100, workload := {'n': 40, 'dims': 2}")
        return [tuple(value for name, value in s.items() if name != "seconds") for s in found]

    first = figures()
    assert first == figures()
    assert {row[9] for row in first} == {500}


def test_temporary_table_is_tried_by_its_named_columns(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("create or replace temp table passing as from people limit 400")
    found = steps(people, "'passing', qi := ['age', 'gender'], sensitive := 'salary', targets := 100")
    assert found[0]["call"].endswith("qi := ['age', 'gender'], sensitive := ['salary'])")
    assert people.execute(found[0]["call"]).fetchall()
    people.execute("drop table passing")


def test_hierarchy_and_numbers_as_names_are_tried_as_labelled() -> None:
    con = duckdb_anon.connect()
    con.execute("create table t as select 20 + hash(range) % 40 as age, hash(range, 2) % 5 as zip, "
                "'d' || hash(range, 1) % 12 as disease from range(600)")  # fmt: skip
    con.execute("create table tree as select distinct disease as leaf, 'all' as root from t")
    roles = "qi := ['age', 'zip'], sensitive := 'disease', categorical := ['zip'], hierarchies := {'disease': 'tree'}"
    best = steps(con, f"'t', {roles}, max_risk := 1, targets := 100")[0]
    assert best["failed"] is None
    assert con.execute(f"select count(*) from ({best['call']})").fetchall() == [(600,)]


def test_step_that_cannot_be_taken_says_why_and_comes_last() -> None:
    con = duckdb_anon.connect()
    con.execute("create table t as select range % 50 as age, range % 7 as zip, "
                "case when range % 3 = 0 then 'flu' else 'd' || range % 20 end as disease from range(600)")  # fmt: skip
    found = steps(con, "'t', qi := ['age', 'zip'], sensitive := 'disease', targets := 100")
    failed = [s for s in found if s["failed"]]
    assert failed and found[-len(failed) :] == failed
    assert all(s["meets_max_risk"] is None and not s["on_frontier"] and "muco" in s["failed"] for s in failed)


def test_nothing_is_written(people: duckdb.DuckDBPyConnection) -> None:
    tables = people.execute("select table_name from duckdb_tables()").fetchall()
    steps(people, "'people', rows := 200, targets := 50, workload := {'n': 20}")
    assert people.execute("select table_name from duckdb_tables()").fetchall() == tables


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("recommend('bare')", "recommend: .*qi"),
        ("recommend('people', workload := {'dim': 2})", "workload has no 'dim'.*dims"),
        ("recommend('people', max_risk := 2)", "max_risk := 2 is out of range"),
        ("recommend('(select * from people where false)', qi := ['age'], sensitive := 'salary')", "is empty"),
    ],
)
def test_wrong_calls_say_what_to_do(people: duckdb.DuckDBPyConnection, call: str, says: str) -> None:
    people.execute("create or replace table bare as select 1 as age, 2 as salary")
    with pytest.raises(duckdb.Error, match=says):
        people.execute(f"from {call}").fetchall()
