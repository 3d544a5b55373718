"""The original for researchers: what runs in place of a statement, what clients learn of tables, and attempts to learn more."""

import json
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckdb_anon.cli import main
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.audit import Audit
from duckdb_anon.serve.limits import ServingLimits
from duckdb_anon.serve.researcher import Researcher
from duckdb_anon.serve.tokens import Client
from tests.reference.hostile_statements import HOSTILE

ANN = Client("ann")
TABLES = """
create table people as select i as pid, 'n' || i as name, 20 + i % 50 as age, if(i % 3 = 0, 'F', 'M') as sex, i % 100 as cost,
  (['north', 'south'])[1 + i % 2]::enum('north', 'south', 'Atlantis') as region,
  if(i = 7, date '1999-09-09', null) as died from range(600) t(i);
comment on column people.pid is 'anon: person'; comment on column people.name is 'anon: identifier; seen by Dr. Weber';
comment on column people.age is 'anon: quasi'; comment on column people.sex is 'anon: quasi';
comment on column people.region is 'anon: insensitive'; comment on column people.cost is 'anon: sensitive';
comment on table people is 'ward of Dr. Weber; anon: outputs(threshold := 10, p_percent := 17)';
create table boxes as select 'secret-9' as note; comment on table boxes is 'anon: release';
create view young as select age, sex from people where name <> 'n77'; comment on view young is 'anon: outputs()';
create schema other; create table other.hidden as from people;
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two tables that have a policy, and two that have none."""
    place = tmp_path_factory.mktemp("researcher") / "people.duckdb"
    with duckdb.connect(str(place)) as con:
        con.execute(TABLES)
    return place


@pytest.fixture(scope="module")
def researcher(file: Path) -> Researcher:
    return Researcher(str(file))


def rows(researcher: Researcher, statement: str, client: Client = ANN) -> list[tuple[Any, ...]]:
    """The rows of an answer."""
    return researcher.con.cursor().execute(researcher.answer(statement, client).sql).fetchall()


def columns(researcher: Researcher, statement: str) -> list[tuple[str, str]]:
    found = researcher.con.cursor().execute(f"describe {researcher.answer(statement, ANN).sql}").fetchall()
    return [(row[0], row[1]) for row in found]


def ledger(file: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(file)) as con:
        return con.execute('select number, "user", decision, cells, suppressed from anon.outputs order by 1').fetchall()


def test_answers_are_those_of_safe_output_with_types_without_values_and_enter_the_ledger(tmp_path: Path) -> None:
    place = tmp_path / "people.duckdb"
    with duckdb.connect(str(place)) as con:
        con.execute(TABLES)
    served = Researcher(str(place))
    query = "select region, count(*) as n, max(cost) as most from people group by region order by region desc limit 1"
    answer = served.answer(query, ANN)
    assert served.con.cursor().execute(answer.sql).fetchall() == [("south", 300, None, "most: primary: threshold")]
    assert columns(served, query) == [
        ("region", "VARCHAR"),
        ("n", "BIGINT"),
        ("most", "BIGINT"),
        ("suppressed", "VARCHAR"),
    ]
    assert answer.facts == {"output": 1, "decision": "partly answered", "cells": 4, "suppressed": 2}
    assert rows(served, "select count(*) from people where age is null", Client("bob")) == [(0, None)]
    assert rows(served, "select count(*) as n from people where sex = 'X' group by region") == []
    assert [(user, decision) for _, user, decision, *_ in ledger(place)][-2:] == [
        ("bob", "answered"),
        ("ann", "answered"),
    ]


def test_hostile_statements_are_refused_and_enter_no_ledger(researcher: Researcher, file: Path) -> None:
    reasons = {statement: researcher.answer(statement, ANN).refused for statement in HOSTILE}
    assert not [statement for statement, reason in reasons.items() if not reason]
    assert not [
        reason for reason in reasons.values() if "secret-9" in reason or str(file.parent) in reason or "Weber" in reason
    ]
    with duckdb.connect(str(file)) as con:
        assert con.execute("select count(*) from duckdb_tables() where schema_name = 'anon'").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "from boxes", "select count(*) from other.hidden", "select count(*) from memory.people", "from people", "select #1 from people",
        "select null from main.people", "select pid from people limit 1", "select count(*) from people where pid = 7",
        "select count(*) from people where name = 'n7'", "select array_agg(name) from people", "select mode(cost) from people",
        "select age, rank() over () from people", "select count(*) from people, young", "select cost from people union select 1",
        "select count(*) from people where age > (select min(cost) from people)", "from anon_outputs('people')",
        "select count(*) from people where error('x')", "select sum(cost::varchar::date) from people", "select nowhere from people",
        "select count(*) from people where nowhere = 1", "select count(*) from anon.outputs", "from safe_output('select 1')",
        "select count(*), from_json('x') from people", "select count(*) from people using sample 3",
    ],
)  # fmt: skip
def test_everything_but_aggregates_of_tables_with_a_policy_is_refused(researcher: Researcher, statement: str) -> None:
    assert researcher.answer(statement, ANN).refused


def test_a_table_without_a_policy_is_refused_by_its_name(researcher: Researcher) -> None:
    for name in ("boxes", "nowhere"):  # that there is one is not said
        assert researcher.answer(f"select count(*) from {name}", ANN).refused.startswith(f"{name} has no policy")


def test_catalog_has_names_types_and_roles_and_nothing_else(researcher: Researcher) -> None:
    assert rows(researcher, "show tables") == [("people",), ("young",)]
    assert rows(researcher, "describe people")[5][:2] == ("region", "VARCHAR")
    assert rows(researcher, "select comment from duckdb_columns() where table_name = 'people' order by column_index") == [
        ("anon: person",), ("anon: identifier",), ("anon: quasi",), ("anon: quasi",), ("anon: sensitive",),
        ("anon: insensitive",), (None,),
    ]  # fmt: skip
    for statement in (
        "from duckdb_tables()", "from duckdb_columns()", "from duckdb_views()", "from duckdb_constraints()", "show all tables",
        "from information_schema.columns", "from information_schema.tables", "from duckdb_types()", "from duckdb_databases()",
        "from pg_catalog.pg_class", "from pg_catalog.pg_description", "from pragma_table_info('people')",
        "describe select region, max(region), count(*) from people group by region", "from pg_catalog.pg_enum",
    ):  # fmt: skip
        said = str(rows(researcher, statement))
        for secret in ("Atlantis", "Weber", "percent", "boxes", "n77", "hidden", "people.duckdb"):
            assert secret not in said, (statement, secret)


def test_errors_of_types_and_values_quote_none(researcher: Researcher) -> None:
    for query in (
        "select count(*) from people where region::int > 3", "select count(*) from people group by region::date",
        "select count(*), died::varchar::int from people group by 2", "select count(*) from people where region = 3",
        "select count(*) from people where sex like '(' escape 'xx'", "select sum(region) from people",
        "select 1 / sum(cost - cost) from people", "select (sum(cost) * 1e308)::int from people",
    ):  # fmt: skip
        answer = researcher.answer(query, ANN)
        said = answer.refused or str(rows(researcher, query))
        assert not any(value in said for value in ("'n", "1999", "north", "Atlantis")), (query, said)


@pytest.mark.parametrize("error", [MemoryError(), OSError("Conversion Error: 'n7'"), OSError("Out of Memory Error: x")])
def test_errors_while_an_answer_is_computed_say_what_is_short_and_no_value(
    researcher: Researcher, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("duckdb_anon.serve.researcher.answer", fail)
    refused = researcher.answer("select count(*) from people", ANN).refused
    assert ("short of memory" in refused) == ("Conversion" not in str(error)) and "n7" not in refused


def test_the_original_reaches_no_file_and_prints_no_progress(researcher: Researcher) -> None:
    with researcher._opened() as con:
        for setting in ("enable_external_access", "enable_progress_bar", "autoload_known_extensions"):
            assert con.execute(f"select current_setting('{setting}')").fetchall() == [(False,)]


def test_a_token_reads_its_tables_alone(researcher: Researcher) -> None:
    narrow = Client("intern", ("young",))
    assert rows(researcher, "show tables", narrow) == [("young",)]
    assert researcher.answer("select count(*) from people", narrow).refused
    assert rows(researcher, "select count(*) from young", narrow) == [(599, None)]


def test_the_file_is_open_while_a_statement_is_answered_alone(file: Path) -> None:
    served = Researcher(str(file))
    with duckdb.connect(str(file)) as con:
        con.execute(
            "create table more as select i % 5 as a from range(100) t(i); comment on table more is 'anon: outputs()'"
        )
    assert rows(served, "select count(*) from more") == [(100, None)]
    with duckdb.connect(str(file)) as con:
        con.execute("comment on table more is null")
    assert served.answer("select count(*) from more", ANN).refused
    assert rows(served, "select 1") == [(1,)]


def test_a_statement_that_takes_too_long_or_of_a_client_that_is_gone_is_ended(file: Path) -> None:
    served = Researcher(str(file))
    with duckdb.connect() as con, pytest.raises(Exception, match="gone"):
        threading.Timer(0.2, served.statements.cancel, ["A"]).start()
        with served.statements.watched("A", "ann", con, 0.0):
            con.execute("select count(*) from range(1000000) a, range(1000000) b where a.range * b.range % 7 = 3")
    assert rows(served, "select 1") == [(1,)]


def test_statements_are_answered_one_after_the_other_and_the_catalog_meanwhile(file: Path) -> None:
    served = Researcher(str(file), ServingLimits(seconds=0.3))
    with served._one:
        assert "ask again" in served.answer("select count(*) from people", ANN).refused
        assert rows(served, "show tables") and rows(served, "select 1") == [(1,)]
    served, found = Researcher(str(file)), []
    asking = [
        threading.Thread(
            target=lambda age=age: found.append(rows(served, f"select count(*) from people where age > {age}"))
        )
        for age in (20, 40, 60)
    ]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert sorted(found) == [[(108, None)], [(348, None)], [(588, None)]]


def test_a_view_of_a_file_is_listed_and_not_answered_from(tmp_path: Path) -> None:
    place, outside = tmp_path / "p.duckdb", tmp_path / "outside.parquet"
    with duckdb.connect(str(place)) as con:
        con.execute(f"copy (select i % 5 as a from range(100) t(i)) to '{outside}'; create view v as from '{outside}'")
        con.execute(
            "create table t as from v; comment on table t is 'anon: outputs()'; comment on view v is 'anon: outputs()'"
        )
    served = Researcher(str(place))
    assert rows(served, "show tables") == [("t",), ("v",)] and rows(served, "select count(*) from t") == [(100, None)]
    refused = served.answer("select count(*) from v", ANN).refused
    assert "outside of the database" in refused and str(tmp_path) not in refused


def test_what_cannot_be_served_is_said_at_the_start(tmp_path: Path) -> None:
    place = tmp_path / "p.duckdb"
    for comment in (None, "anon: outputs(treshold := 3)"):
        with duckdb.connect(str(place)) as con:
            con.execute("create or replace table t as select 1 as a")
            if comment:
                con.execute(f"comment on table t is '{comment}'")
        with pytest.raises(AnonError):
            Researcher(str(place), ServingLimits(threads=1))
    with pytest.raises(AnonError):
        Researcher(str(tmp_path / "nowhere.duckdb"))


def test_an_approval_is_in_the_ledger_and_in_the_audit_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, log = tmp_path / "people.duckdb", tmp_path / "audit.jsonl"
    with duckdb.connect(str(place)) as con:
        con.execute(TABLES)
    served, audit = Researcher(str(place)), Audit(str(log))
    assert rows(served, "select max(cost) from people") == [(None, "primary: threshold")]
    assert main(["outputs", "approve", str(place), "1", "--by", "Eve", "--why", "checked", "--audit", str(log)]) == 0
    assert capsys.readouterr().out.endswith("\n99\n")
    audit.close()
    noted = json.loads(log.read_text())
    assert {name: noted[name] for name in ("event", "token", "output", "of", "by", "why")} == {
        "event": "approved", "token": "ann", "output": 2, "of": 1, "by": "Eve", "why": "checked",
    }  # fmt: skip
    assert ledger(place) == [(1, "ann", "refused", 1, 1), (2, "ann", "approved", 1, 0)]
    assert main(["audit", str(log)]) == 0
    assert "approved" in capsys.readouterr().out
