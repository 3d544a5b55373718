"""recommend: a ladder of methods tried on a table, best first."""

import math
import re
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import registry
from duckdb_anon.kernels.jit import CLOCK
from duckdb_anon.report import candidate_search
from tests.reference.answers import dicts

pytestmark = pytest.mark.campaign

ON_REQUEST = ("rank_swap", "merging")
QI = ("gender", "age", "relationship", "education")


@pytest.fixture(scope="module")
def people():
    """A labelled table of made-up people."""
    con = duckdb_anon.connect()
    con.execute("create table people as from anon_sample('census', rows := 1200, seed := 1)")
    for column in QI:
        con.execute(f"comment on column people.{column} is 'anon: quasi'")
    con.execute("comment on column people.salary is 'anon: sensitive'")
    yield con
    con.close()


def steps(con: duckdb.DuckDBPyConnection, arguments: str) -> list[dict[str, Any]]:
    return dicts(con, f"from recommend({arguments}, seed := 3)")


@pytest.fixture(scope="module")
def tried(people):
    """The whole table tried once; calls that the time did not suffice for have no figures."""
    found = steps(people, "'people', max_risk := 0.1, seconds := 900")
    return [step for step in found if step["query_error"] is not None]


def risk(step: dict[str, Any]) -> float:
    return float(max(step["identity"], step["advantage"]))


def made(step: dict[str, Any]) -> str:
    """The call of a step without its table, as a SQL literal."""
    return "$$" + step["call"].removeprefix("FROM ").replace("'people', ", "") + "$$"


def test_every_method_for_rows_is_released_attacked_and_queried_on_the_stated_rows(tried):
    assert {s["method"] for s in tried} == {
        m.name for m in registry.METHODS if m.sweeps and "person" not in m.needs and m.name not in ON_REQUEST
    }
    assert {s["rows"] for s in tried} == {1200}
    assert all(0 <= risk(s) <= 1 and s["query_error"] > 0 and s["seconds"] > 0 for s in tried)


def test_edges_are_recommended_where_sensitive_values_single_out():
    with duckdb_anon.connect() as con:
        con.execute("create table people as select 20 + hash(i) % 40 as age, hash(i, 1) % 3 as area, "
                    "1000 + i * i % 7919 as wage, i % 20 as common, "
                    "case when i < 100 then 'case ' || i else 'flu' end as illness from range(1500) t(i)")  # fmt: skip
        # rare numbers are joined by default, which no argument says
        for sensitive, rare, named in (("wage", True, False), ("illness", True, True), ("common", False, False)):
            roles = f"qi := ['age', 'area'], sensitive := '{sensitive}'"
            found = steps(con, f"'people', max_risk := 0.2, methods := ['muco'], rows := 1500, {roles}")
            assert found and all(("sensitive_edges" in s["call"]) is named for s in found)
            assert all(("single persons out" in (s["note"] or "")) is named for s in found)
            # what is recommended runs as it stands, and nobody is the only one with her wage any more
            con.execute(f"create or replace table r as {found[0]['call']}")
            least = con.execute(f"select min(n) from (select count(*) as n from r group by {sensitive})").fetchall()
            assert least[0][0] >= 10
            plain = (
                found[0]["call"].replace(", sensitive_edges := 10", "").replace(", qi", ", sensitive_edges := 1, qi")
            )
            con.execute(f"create or replace table plain as {plain}")
            options = f"mode := 'univariate', columns := ['{sensitive}'], {roles}, seed := 1"
            (attacks, note), (left, _) = (
                con.execute(f"select attacks, note from singling_out('people', '{name}', {options})").fetchall()[0]
                for name in ("plain", "r")
            )
            assert ("sensitive_edges := 10" in note) is rare
            assert (attacks > 20 and left == 0) if rare else attacks == 0


def test_each_sensitive_column_is_tried_where_a_method_takes_one(people):
    arguments = "rows := 300, targets := 50, workload := {'n': 20}, max_risk := 1, methods := ['anatomy', 'muco']"
    people.execute("create table two as select *, age // 9 as decade from people")
    found = steps(people, f"'two', qi := ['gender', 'education'], sensitive := ['salary', 'decade'], {arguments}")
    calls = {(s["method"], s["call"].partition("sensitive := ")[2].split(", cat")[0].rstrip(")")) for s in found}
    assert calls == {("anatomy", "'salary'"), ("anatomy", "'decade'"), ("muco", "['salary', 'decade']")}
    assert all(s["query_error"] is not None for s in found)
    assert {("salary is not" in s["note"], "decade is not" in s["note"]) for s in found if s["method"] == "anatomy"} == {
        (True, False), (False, True),
    }  # fmt: skip
    # which methods take one follows from what they need
    for method in registry.METHODS:
        candidate = candidate_search.Candidate.of(method)
        try:
            people.execute(f"from {method.name}('two', qi := ['gender'], sensitive := ['salary', 'decade'], "
                           f"person := 'age', {method.smallest or 'seed := 1'})")  # fmt: skip
        except duckdb.Error as error:
            assert candidate.takes_one == ("one sensitive" in str(error)), method.name
        else:
            assert not candidate.takes_one, method.name


def test_ladder_is_climbed_until_a_step_meets_the_risk(tried):
    for method, sweep in [(m, each) for m in registry.METHODS for each in m.sweeps]:
        calls = [f"FROM {method.name}('people', {arguments}" for arguments in sweep.calls(1200)]
        climbed = [s for call in calls for s in tried if s["call"].split(", columns")[0].removesuffix(")") == call]
        assert [s["call"][: len(call)] for s, call in zip(climbed, calls, strict=False)] == calls[: len(climbed)]
        assert not any(s["meets_max_risk"] for s in climbed[:-1])
        if climbed and not climbed[-1]["meets_max_risk"]:
            assert len(climbed) == len(calls)


def test_steps_that_meet_the_largest_risk_come_first_by_query_error(tried):
    meets = [s["meets_max_risk"] for s in tried]
    assert meets == [risk(s) <= 0.1 for s in tried]
    assert True in meets and False in meets
    assert meets == sorted(meets, reverse=True)
    errors = [s["query_error"] for s in tried if s["meets_max_risk"]]
    assert errors == sorted(errors)


def test_frontier_holds_the_steps_no_other_beats(tried):
    for step in tried:
        beaten = any(
            risk(o) <= risk(step)
            and o["query_error"] <= step["query_error"]
            and (risk(o), o["query_error"]) != (risk(step), step["query_error"])
            for o in tried
        )
        assert step["on_frontier"] == (not beaten)


def test_recommended_call_runs_and_has_the_risk_it_was_tried_with(people, tried):
    for step in [s for s in tried if s["method"] in ("muco", "mondrian", "anatomy")]:
        linked = step["call"].removesuffix(")") + ", row_id := true, seed := 8)"
        people.execute(f"create or replace table linked as {linked}")
        found = people.execute(
            "select identity, attribute from linkage_risk('people', 'linked', targets := 1000, "
            f"qi := {list(QI)}, sensitive := 'salary', seed := 8, call := {made(step)}) where attacker = 'strongest'"
        ).fetchall()[0]
        # other random values of the same groups, another 1000 of 1200 persons: three standard errors
        for measured, tried_with in zip(found, (step["identity"], step["attribute"]), strict=True):
            assert measured == pytest.approx(tried_with, abs=3 * math.sqrt(measured * (1 - measured) / 1000))
        people.execute("drop table linked")


def test_same_seed_gives_the_same_figures_and_a_sample_has_the_requested_size(people):
    def figures() -> list[tuple[Any, ...]]:
        few = "methods := ['muco', 'slicing']"
        found = steps(people, f"'people', {few}, rows := 300, targets := 100, workload := {{'n': 40, 'dims': 2}}")
        return [tuple(value for name, value in s.items() if name != "seconds") for s in found]

    tables = people.execute("select table_name from duckdb_tables()").fetchall()
    first = figures()
    assert first == figures()
    assert people.execute("select table_name from duckdb_tables()").fetchall() == tables  # nothing is written
    assert {row[10] for row in first} == {300}


def test_temporary_table_is_tried_by_its_named_columns(people):
    people.execute("create or replace temp table passing as from people limit 400")
    few = "methods := ['muco', 'mondrian', 'anatomy'], max_risk := 0.2"
    found = steps(people, f"'passing', qi := ['age', 'gender'], sensitive := 'salary', targets := 100, {few}")
    for step in found:
        assert step["call"].endswith("qi := ['age', 'gender'], sensitive := ['salary'], categorical := ['gender'])")
        if step["query_error"] is not None:
            assert people.execute(step["call"]).fetchall()
    people.execute("drop table passing")


def test_hierarchy_and_numbers_as_names_are_tried_as_labelled(con):
    con.execute("create table t as select 20 + hash(range) % 40 as age, hash(range, 2) % 5 as zip, "
                "'d' || hash(range, 1) % 12 as disease from range(600)")  # fmt: skip
    con.execute("create table tree as select distinct disease as leaf, 'all' as root from t")
    roles = "qi := ['age', 'zip'], sensitive := 'disease', categorical := ['zip'], hierarchies := {'disease': 'tree'}"
    best = steps(con, f"'t', {roles}, methods := ['muco', 'mondrian'], max_risk := 1, targets := 100")[0]
    assert best["meets_max_risk"]
    assert con.execute(f"select count(*) from ({best['call']})").fetchall() == [(600,)]


def test_step_that_cannot_be_taken_says_why_and_comes_last(con):
    con.execute("create table t as select range % 50 as age, range % 7 as zip, 'd' || range % 5 as disease "
                "from range(15)")  # fmt: skip
    found = steps(con, "'t', qi := ['age', 'zip'], sensitive := 'disease', methods := ['muco'], max_risk := 1e-6")
    failed = [s for s in found if s["query_error"] is None]
    assert [s["method"] for s in failed] == ["muco"] and found[-len(failed) :] == failed
    assert all(s["meets_max_risk"] is None and not s["on_frontier"] and "muco" in s["note"] for s in failed)


def test_a_hierarchy_that_cannot_be_read_is_named_as_its_table_is(con):
    con.execute("create table t as select range % 50 as age, 'z' || range % 7 as zip from range(200)")
    con.execute("create table areas as select distinct zip as leaf, zip[:1] || leaf as top from t")
    found = steps(con, "'t', qi := ['age', 'zip'], hierarchies := {'zip': 'areas'}, methods := ['mondrian']")
    assert all("hierarchy 'areas' has 7 roots" in step["note"] for step in found)


@pytest.fixture(scope="module")
def visits():
    """500 persons with one to four rows each, and a hierarchy."""
    con = duckdb_anon.connect()
    con.execute("create table visits as select pid, 20 + hash(pid) % 40 as age, 'd' || hash(pid, i) % 12 as disease "
                "from range(500) a(pid), range(4) b(i) where i <= pid % 4")  # fmt: skip
    con.execute(
        "create table tree as select distinct disease as leaf, 'x' || right(disease, 1) as x, 'all' from visits"
    )
    con.execute("comment on column visits.pid is 'anon: person'")
    con.execute("comment on column visits.age is 'anon: quasi'")
    con.execute("comment on column visits.disease is 'anon: sensitive hierarchy=tree'")
    yield con
    con.close()


def test_several_rows_a_person_are_tried_with_methods_that_count_persons(visits):
    found = steps(visits, "'visits', max_risk := 0.3")
    of_classes = {"muco", "mondrian", "incognito", "anatomy", "slicing"}
    assert {s["method"] for s in found} == of_classes | {"one_to_m_generalize", "rmr"}
    taken = [s for s in found if s["query_error"] is not None]
    assert taken
    for step in taken:
        risk = max(step["identity"], step["advantage"])
        assert 0 <= step["identity"] <= 1 and step["meets_max_risk"] == (risk <= 0.3)
        assert "linkage_risk: " not in (step["note"] or "")
        visits.execute(step["call"]).fetchall()
    assert any(s["on_frontier"] for s in taken)
    errors = [s["query_error"] for s in taken if s["meets_max_risk"]]
    assert errors and errors == sorted(errors)


def test_a_sample_has_all_records_of_an_individual(visits):
    every = steps(visits, "'visits', methods := ['one_to_m_generalize']")
    some = steps(visits, "'visits', methods := ['one_to_m_generalize'], rows := 400")
    assert {s["rows"] for s in every} == {1250} and {s["rows"] for s in some} == {400}
    # cut anywhere, rows of a person would be missing and query errors those of another table
    of_all = {s["call"].split(", l :=")[0]: s["query_error"] for s in every}
    taken = [s for s in some if s["query_error"] is not None]
    assert taken and all(s["query_error"] <= of_all[s["call"].split(", l :=")[0]] for s in taken)


def test_wrong_calls_say_what_to_do(people):
    people.execute("create or replace table bare as select 1 as age, 2 as salary")
    for call, message in (
        ("recommend('bare')", "recommend: .*qi"),
        ("recommend('people', workload := {'dim': 2})", "workload has no 'dim'.*dims"),
        ("recommend('people', methods := [])", r"methods := \[\] names none"),
        ("recommend('people', methods := ['mucco'])", "methods has 'mucco'.*did you mean 'muco'"),
        ("recommend('(select * from people where false)', qi := ['age'], sensitive := 'salary')", "is empty"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            people.execute(f"from {call}").fetchall()


def test_queries_count_all_records_of_individuals_with_several(con):
    con.execute("create table t as select range//4 pid, 20+range*7%60 age, range%2 sex, range%11 dis from range(4000)")
    roles = "qi := ['age', 'sex'], sensitive := 'dis', person := 'pid'"
    (step,) = [s for s in steps(con, f"'t', {roles}, methods := ['anatomy'], max_risk := 1")]
    con.execute(f"create table r as {step['call']}")
    error = con.execute(
        "select avg(abs(relative_error)) from workload_error('t', 'r', n := 300, dims := 2, "
        f"predicate_on_sensitive := true, seed := 3, {roles})"
    ).fetchone()
    assert step["query_error"] < 0.01
    assert error[0] == pytest.approx(step["query_error"], abs=0.005)


def test_l_is_relaxed_where_one_sensitive_value_has_most_records(con):
    con.execute("create table t as select 20 + hash(range) % 60 as age, range % 2 as sex, "
                "if(hash(range, 1) % 5 = 0, 'flu', 'none') as dis from range(1000)")  # fmt: skip
    found = steps(con, "'t', qi := ['age', 'sex'], sensitive := 'dis', targets := 100")
    assert all(s["query_error"] is not None for s in found)
    relaxed = [s for s in found if "l := 1" in s["call"].split(", ")]
    # muco excepts the value from l by itself
    assert {"anatomy", "mondrian", "incognito"} <= {s["method"] for s in relaxed}
    assert all("too frequent for a larger l" in s["note"] for s in relaxed)
    assert len(con.execute(relaxed[0]["call"]).fetchall()) == 1000


def test_a_table_without_a_sensitive_column_and_one_of_13_records_are_tried(con):
    con.execute("create table t as select 20 + range * 7 as age, range % 2 as sex, range % 3 as dis from range(13)")
    without = steps(con, "'t', qi := ['age', 'sex'], max_risk := 0.2")
    assert {"mondrian", "muco", "incognito"} <= {s["method"] for s in without if s["query_error"] is not None}
    assert all(s["advantage"] is None and "l :=" not in s["call"] for s in without)
    assert any(s["meets_max_risk"] for s in without)
    few = steps(con, "'t', qi := ['age', 'sex'], sensitive := 'dis', max_risk := 0.2")
    assert {"mondrian", "incognito", "microaggregate", "muco"} <= {s["method"] for s in few if s["meets_max_risk"]}


def test_several_sensitive_columns_share_the_least_l(con):
    con.execute("create table t as select 20 + hash(range) % 60 as age, range % 2 as sex, range % 20 as job, "
                "hash(range, 3) % 3 as dis from range(600)")  # fmt: skip
    found = steps(con, "'t', qi := ['age', 'sex'], sensitive := ['job', 'dis'], methods := ['mondrian'], targets := 50")
    assert found[0]["query_error"] is not None
    assert all(re.search(r"l := [12],", s["call"]) for s in found)


def test_a_time_limit_ends_with_what_there_is(people):
    found = steps(people, "'people', seconds := 0.001, max_risk := 0.1")
    assert {s["method"] for s in found} >= {"muco", "incognito"}
    assert all(s["note"].startswith("not tried: seconds := 0.001 were over") and s["call"] is None for s in found)
    with pytest.raises(duckdb.Error, match="seconds"):
        steps(people, "'people', seconds := 0")


def test_a_call_above_the_largest_risk_says_which_figure_is(people):
    found = [s for s in steps(people, "'people', max_risk := 0, methods := ['anatomy'], targets := 50") if s["call"]]
    assert found
    for step in (step for step in found if not step["meets_max_risk"]):
        assert step["note"].startswith(f"identity {step['identity']:.4g} is above max_risk := 0")


def test_a_method_takes_at_most_a_third_of_the_time(people, monkeypatch):
    """A clock that a second passes on with each look leaves a method some calls, and the others theirs."""
    seen = iter(range(100_000))
    monkeypatch.setattr(candidate_search.CLOCK, "now", lambda: float(next(seen)))
    found = steps(people, "'people', max_risk := 0, methods := ['anatomy', 'mondrian'], seconds := 30, targets := 50")
    assert {s["method"] for s in found} == {"anatomy", "mondrian"}
    assert any("a third" in (s["note"] or "") for s in found)


def test_compiling_is_not_counted():
    with CLOCK.stopped():
        begun = CLOCK.now()
        with CLOCK.stopped():
            pass
        assert CLOCK.now() == begun
