"""Statements that name an original: what runs in their place, and attempts to read something else."""

import math
import re
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.serve.limits import ServingLimits
from duckdb_anon.serve.publish import publish
from duckdb_anon.serve.server import Analyst
from duckdb_anon.serve.tokens import Client
from tests.reference.corpus import queries
from tests.reference.hostile_statements import HOSTILE
from tests.reference.rewrite_tables import PEOPLE

REFUSED = "select error("
SHAPES = {"boxes": "mondrian('people', 5)", "buckets": "anatomy('people', 2)"}
LABELS = {column: "quasi" for column in ("age", "sex", "region", "born", "weight")} | {
    "disease": "sensitive",
    "cost": "insensitive",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a published file of releases of people."""
    place = tmp_path_factory.mktemp("answers")
    with duckdb_anon.connect(str(place / "original.duckdb")) as con:
        con.execute(PEOPLE.format(rows=400))
        con.execute("update people set disease = 'none' where disease is null")
        for column, role in LABELS.items():
            con.execute(f"comment on column people.{column} is 'anon: {role}'")
        for name, call in SHAPES.items():
            duckdb_anon.release(con, name, call, independent=True)
    publish(str(place / "original.duckdb"), str(place / "releases.duckdb"), independent=True)
    return place


@pytest.fixture(scope="module", params=list(SHAPES))
def analyst(request: Any, folder: Path) -> Analyst:
    """What serves one of the releases in the place of people."""
    # the most frequent of equally frequent values is another one with each order of threads
    return Analyst(str(folder / "releases.duckdb"), ServingLimits(threads=1), {"people": request.param}, 1)


def instead(analyst: Analyst, statement: str) -> str:
    """The SQL that runs in place of a statement of a client who may read every table."""
    return analyst.answer(statement, Client("")).sql


def test_hostile_statements_are_refused_for_a_reason_that_names_nothing(analyst: Analyst) -> None:
    assert len(HOSTILE) >= 400
    passed = [statement for statement in HOSTILE if not instead(analyst, statement).startswith(REFUSED)]
    assert not passed
    reasons = {instead(analyst, statement) for statement in HOSTILE}
    assert not [reason for reason in reasons if "boxes" in reason or "published." in reason or "/" in reason]


def test_corpus_is_answered_as_estimate_answers_it(analyst: Analyst, request: pytest.FixtureRequest) -> None:
    shape = request.node.callspec.params["analyst"]
    con, compared = analyst.con.cursor(), 0
    for _, query in list(queries())[::11]:
        call = f"from estimate($q${query}$q$, '{shape}', bounds := 'none')"
        try:
            expected = con.execute(call).fetchdf()
        except duckdb.Error:
            continue
        try:
            found = con.execute(instead(analyst, query)).fetchdf()
        except duckdb.Error as error:
            assert re.search("only published tables|not allowed|one SELECT at a time", str(error)), query
            continue
        for measure, rows in expected.groupby("measure"):
            if measure in found.columns and rows["estimate"].notna().any():
                compared += 1
                # estimate says 0 where the sum of nothing is NULL
                wanted, got = (sorted(map(float, values.fillna(0))) for values in (rows["estimate"], found[measure]))
                # counts are rounded to whole numbers where the statement's own answer has such
                close = [math.isclose(a, b, rel_tol=1e-6, abs_tol=0.51) for a, b in zip(wanted, got, strict=True)]
                assert all(close), (query, wanted, got)
    assert compared >= 15


def test_bounds_are_columns_where_the_server_gives_them(folder: Path) -> None:
    served = Analyst(str(folder / "releases.duckdb"), answer={"people": "boxes"}, seed=1, bounds="sure")
    statement = "select sex, count(*) as n from people where age < 40 group by sex"
    found = served.con.cursor().execute(instead(served, statement))
    assert found.description is not None and [c[0] for c in found.description][:4] == ["sex", "n", "n_low", "n_high"]
    rows = found.fetchall()
    assert len(rows) >= 2 and all(least <= estimate <= most for _, estimate, least, most, *_ in rows)


def test_rows_are_those_of_a_plausible_table_which_its_comment_says(analyst: Analyst, folder: Path) -> None:
    def run(statement: str) -> list[Any]:
        return analyst.con.cursor().execute(instead(analyst, statement)).fetchall()

    assert len(run("from people")) == 400
    assert run("select #1, #3 from main.people limit 5") == [
        (row[0], row[2]) for row in run("from main.people limit 5")
    ]
    assert "plausible rows" in run("select comment from duckdb_tables()")[0][0]
    with duckdb.connect(str(folder / "original.duckdb"), read_only=True) as con:
        kinds = [(row[0], row[1]) for row in con.execute("describe people").fetchall()]
        original = con.execute("from people").fetchall()
    assert [(row[0], row[1]) for row in run("describe people")] == [pair for pair in kinds if pair[0] in LABELS]
    assert sorted(map(str, run("from people"))) != sorted(map(str, original))


def test_other_draws_come_from_other_seeds(folder: Path) -> None:
    def rows(seed: int) -> list[Any]:
        served = Analyst(str(folder / "releases.duckdb"), answer={"people": "buckets"}, seed=seed)
        return served.con.cursor().execute("from people").fetchall()

    assert rows(5) == rows(5) != rows(6)


def test_catalog_has_the_original_and_nothing_else(analyst: Analyst) -> None:
    con = analyst.con.cursor()
    for statement in (
        "show tables",
        "select table_name from information_schema.tables",
        "select table_name from duckdb_tables() union select view_name from duckdb_views() where not internal",
        "select distinct table_name from duckdb_columns() where not internal",
        "select relname from pg_catalog.pg_class where relnamespace = "
        "(select oid from pg_catalog.pg_namespace where nspname = 'main' limit 1)",
    ):
        assert con.execute(instead(analyst, statement)).fetchall() == [("people",)], statement


def test_release_that_cannot_answer_is_named(folder: Path) -> None:
    for answer in ({"people": "nowhere"}, {"persons": "boxes"}):
        with pytest.raises(duckdb_anon.AnonError, match="--answer"):
            Analyst(str(folder / "releases.duckdb"), answer=answer)


# Functions that analysts may call, each with arguments that it does not expect: of a wrong type, of a wrong shape, empty.
ODD = ["1", "'x'", "[1]", "[[1]]", "[{'a': 1}]", "[{'a': 'x', 'b': null}]", "null"]


def test_no_error_of_a_function_carries_a_path_of_the_machine(folder: Path) -> None:
    served = Analyst(str(folder / "releases.duckdb"), ServingLimits(threads=1))
    places = [
        str(folder), str(Path(duckdb_anon.__file__).parents[1]), str(Path(duckdb.__file__).parents[1]), sys.prefix,
    ]  # fmt: skip
    calls = [
        f"select {name}({', '.join(given)})"
        for name in ("learnt_ranges", "learnt_members")
        for count in range(6)
        for given in {tuple(odd for _ in range(count)) for odd in ODD} | {tuple(ODD[:count]), tuple(ODD[-count:])}
    ]
    calls += [f"from {name}('boxes')" for name in ("describe_release", "anatomy_qit", "anatomy_st")]
    calls += [f"from estimate('{query}', 'boxes')" for query in ("select nowhere from people", "select 1", "")]
    calls += ["select rewrite_query('select nowhere from people', 'people', 'boxes')", "select nowhere from boxes"]
    answers = []
    for call in calls:
        sql = served.answer(call, Client("someone"), "A").sql
        if sql.startswith("select error("):
            answers.append(sql)
    assert len(answers) >= 5
    assert not [answer for answer in answers for place in places if place in answer or "At:" in answer]
