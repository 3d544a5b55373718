"""Clients that ask the original's question: the stock shell, ADBC and SQLAlchemy, through DuckDB's own Quack client."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.endtoend.serve.conftest import TOKEN, quack_client

BY_SEX = "select sex, count(*) as n from patients where age < 40 group by sex order by sex"


@pytest.fixture(scope="module")
def answering(folder: Path, serve: Any) -> Iterator[Any]:
    """An endpoint that answers for patients."""
    with serve(folder / "releases.duckdb", "analyst", "--answer", "patients:boxes", "--bounds") as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[tuple[str, float]]:
    """The estimates of the release itself."""
    import duckdb_anon

    with duckdb_anon.connect(str(folder / "releases.duckdb"), read_only=True) as con:
        query = "select sex, count(*) as n from patients where age < 40 group by sex"
        return con.execute(f"select sex, round(estimate) from estimate('{query}', 'boxes') order by sex").fetchall()


def test_stock_shell_asks_the_original_question(answering: Any, expected: Any) -> None:
    found = answering.rows(BY_SEX)
    assert [(sex, float(n)) for sex, n, *_ in found] == expected
    assert all(float(least) <= float(n) for _, n, least, *_ in found)
    assert answering.attached_rows(f"from r.query($${BY_SEX}$$)") == found
    assert answering.rows("select count(distinct disease) as n from patients group by sex") == [["7"], ["7"]]


def test_attached_shell_pulls_plausible_rows_and_sees_one_table(answering: Any) -> None:
    assert answering.attached_rows("select count(*), min(age) >= 20 from r.patients") == [["2000", "true"]]
    assert answering.attached_rows("from r.query('show tables')") == [["patients"]]
    columns = answering.attached_rows("describe r.patients")
    assert [row[0] for row in columns] == ["age", "sex", "cost", "disease", "ward"]
    assert "plausible rows" in answering.rows("select comment from duckdb_tables()")[0][0]


def test_what_cannot_be_answered_is_an_error_of_one_sentence(answering: Any) -> None:
    for query, reason in (
        ("from boxes", "only published tables can be read"),
        ("from patients tablesample 10 rows, patients b", "TABLESAMPLE"),
        ("select count(name) from patients", 'Referenced column "name" not found'),
        ("summarize patients", "SUMMARIZE is not answered"),
    ):
        done = answering.ask(query)
        assert done.returncode == 1 and reason in done.stderr, query
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("library", ["adbc", "sqlalchemy"])
def test_other_clients_ask_the_original_question(answering: Any, expected: Any, library: str) -> None:
    with quack_client(library) as run:
        rows = run(f"from quack_query('{answering.uri}', $${BY_SEX}$$, token := '{TOKEN}')")
        assert [(sex, n) for sex, n, *_ in rows] == expected
        run(f"attach '{answering.uri}' as r (type quack, token '{TOKEN}')")
        assert [(sex, n) for sex, n, *_ in run(f"from r.query($${BY_SEX}$$)")] == expected
        assert run("select count(*) from r.patients where age < 40")[0][0] > 0
