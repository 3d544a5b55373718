"""What an analyst must not reach: the original, the machine, other people's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ATTEMPTS = [
    "from notes",
    "from duckdb_databases",
    "from read_csv('{folder}/original.duckdb')",
    "select content from read_text('/etc/passwd')",
    "from '{folder}/original.duckdb'",
    "attach '{folder}/original.duckdb' as o",
    "attach '{folder}/original.duckdb' as o; from o.patients",
    "copy covered to '{folder}/out.csv'",
    "create view v as from duckdb_settings()",
    "create table memory.main.t as from range(10)",
    "with covered as (from read_blob('{folder}/original.duckdb')) from covered",
    "with duckdb_tables as (select 1) select * from duckdb_tables",
    "prepare p as from read_csv('/etc/passwd')",
    "select 1; from read_csv('/etc/passwd')",
    "from covered; drop view covered",
    "from \"read_csv\"('/etc/passwd')",
    'from "published"."main"."covered"',
    "select current_setting('temp_directory')",
    "select * from duckdb_settings()",
    "from query('from read_csv(''/etc/passwd'')')",
    "from query_table('notes')",
    "from query_table(['covered', 'boxes'])",
    "set lock_configuration = false",
    "set enable_external_access = true",
    "install httpfs",
    "load httpfs",
    "call quack_stop('quack:localhost')",
    "from quack_active_connections()",
    "select rewrite_query('from read_csv(''/etc/passwd'')', 'patients', 'boxes')",
    "select _anon_plan({{function: 'muco'}})",
    "from muco('(from read_csv(''/etc/passwd''))', 0.2)",
    "from glob('/*')",
    "explain analyze from read_csv('/etc/passwd')",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_attempt_to_reach_the_original_or_the_machine_is_refused(analyst: Any, folder: Path, attempt: str) -> None:
    done = analyst.ask(attempt.format(folder=folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Invalid Input Error: " in done.stderr and "Authorization failed" not in done.stderr
    assert str(folder) not in done.stderr and "secret" not in done.stderr
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "insert into r.covered select * from r.covered limit 1",
        "update r.covered set age = 1",
        "delete from r.covered",
        "create table r.mine as select 1 as a",
        "drop view r.covered",
        "create view r.v as select 1 as a",
    ],
)
def test_attached_client_cannot_write(analyst: Any, statement: str) -> None:
    done = analyst.attached(statement)
    assert done.returncode == 1
    assert analyst.rows("select count(*) from covered") == [["2000"]]


def test_wrong_token_is_refused(analyst: Any, curator: Any) -> None:
    for endpoint in (analyst, curator):
        done = endpoint.ask("select 1", token="another-token-altogether")
        assert (done.returncode, done.stdout) == (1, "")


def test_errors_of_allowed_statements_carry_no_path(analyst: Any, folder: Path) -> None:
    done = analyst.ask("select nowhere from covered")
    assert done.returncode == 1
    assert "nowhere" in done.stderr and str(folder) not in done.stderr and "site-packages" not in done.stderr
