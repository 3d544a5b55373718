"""The researcher's endpoint: the original, answered as safe_output does, from the stock shell, ADBC and SQLAlchemy."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckdb_anon.cli import main
from tests.endtoend.serve.conftest import TOKEN, quack_client, rows_of, worker_of

BY_SEX = "select sex, count(*) as n, max(cost) as most from patients where age < 40 group by sex order by sex"
EXPECTED = [["f", "267", "NULL", "most: primary: threshold"], ["m", "533", "NULL", "most: primary: threshold"]]


@pytest.fixture(scope="module")
def researched(folder: Path, serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """An endpoint for the original, and the folder of its file and its audit log."""
    place = tmp_path_factory.mktemp("researched")
    shutil.copy(folder / "original.duckdb", place / "original.duckdb")
    with duckdb.connect(str(place / "original.duckdb")) as con:
        con.execute("comment on table patients is 'the ward of Dr. Weber; anon: outputs(threshold := 10)'")
    options = ("--audit", str(place / "audit"), "--threads", "1")
    with serve(place / "original.duckdb", "researcher", *options) as endpoint:
        yield endpoint, place


def test_stock_shell_asks_the_original_and_rows_stay(researched: Any, folder: Path) -> None:
    endpoint, _ = researched
    assert endpoint.rows(BY_SEX) == EXPECTED
    assert endpoint.attached_rows(f"from r.query($${BY_SEX}$$)") == EXPECTED
    assert endpoint.attached_rows("from r.query('show tables')") == [["patients"]]
    assert endpoint.rows("select data_type from duckdb_columns() where column_name = 'ward'") == [["VARCHAR"]]
    with quack_client() as run:
        run(f"attach '{endpoint.uri}' as r (type quack, token '{TOKEN}')")
        for statement in ("from r.patients", "select count(*) from r.patients", "select cost from r.patients limit 3"):
            with pytest.raises(duckdb.Error, match="rows of the original do not leave"):
                run(statement)
        for statement in ("from notes", "from covered", "select name from patients", "summarize patients"):
            with pytest.raises(duckdb.Error) as refused:
                run(f"from r.query('{statement}')")
            assert not [word for word in ("Weber", "secret", "nobody", str(folder)) if word in str(refused.value)]
        for statement in (
            "insert into r.patients select 1",
            "create table r.mine as select 1",
            "drop table r.patients",
        ):
            with pytest.raises(duckdb.Error):
                run(statement)
    assert endpoint.rows("select count(*) from patients") == [["2000", "NULL"]]


def test_log_has_query_user_cells_and_decision_and_a_person_approves_while_it_is_served(
    researched: Any, capsys: Any
) -> None:
    endpoint, place = researched
    query = "select min(age) from patients"
    assert endpoint.rows(query) == [["20", "NULL"]]  # 40 individuals are so old
    assert endpoint.rows("select max(cost) from patients where age > 67") == [["NULL", "primary: threshold"]]
    noted = [json.loads(line) for line in (place / "audit").read_text().splitlines()]
    found = [line for line in noted if line["event"] == "statement" and line.get("decision")][-1]
    assert (found["token"], found["engine"], found["decision"], found["cells"]) == ("token", "original", "refused", 1)
    assert found["statement"].startswith("select max(cost)") and "Weber" not in json.dumps(found)
    arguments = ["--by", "Eve", "--why", "checked", "--audit", str(place / "audit")]
    assert main(["outputs", "approve", str(place / "original.duckdb"), str(found["output"]), *arguments]) == 0
    assert capsys.readouterr().out.splitlines()[1].isdecimal()
    assert json.loads((place / "audit").read_text().splitlines()[-1])["by"] == "Eve"
    assert endpoint.rows(query) == [["20", "NULL"]]


@pytest.mark.parametrize("library", ["adbc", "sqlalchemy"])
def test_other_clients_ask_the_original(researched: Any, library: str) -> None:
    endpoint, _ = researched
    with quack_client(library) as run:
        rows = run(f"from quack_query('{endpoint.uri}', $${BY_SEX}$$, token := '{TOKEN}')")
    assert rows == [(sex, int(n), None, rule) for sex, n, _, rule in EXPECTED]


def test_the_file_of_a_server_that_was_killed_is_whole(researched: Any) -> None:
    endpoint, _ = researched
    script = f".shell kill -9 {worker_of(endpoint)}\nfrom r.query($${BY_SEX}$$);\n"
    assert rows_of(endpoint.attached(script, from_file=True)) == EXPECTED
