"""What an analyst must not reach: the original, the machine, other people's sessions."""

from pathlib import Path
from typing import Any

import pytest

# the guard's own tests have every kind of statement; these are one for each thing that there is to reach
ATTEMPTS = [
    "from notes", "from read_csv('{folder}/original.duckdb')",
    "attach '{folder}/original.duckdb' as o; from o.patients", "copy covered to '{folder}/out.csv'",
    "create view v as from duckdb_settings()", "set lock_configuration = false", "load httpfs",
    "call quack_stop('quack:localhost')", "from quack_active_connections()", "select _anon_plan({{function: 'muco'}})",
]  # fmt: skip


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
        "create table r.mine as select 1 as a",
        "drop view r.covered",
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
