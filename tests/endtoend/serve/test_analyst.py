"""The analyst's endpoint: releases alone, read-only, within limits, from the stock shell."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckdb_anon


def test_analyst_reads_releases_through_query_and_attach(analyst: Any) -> None:
    assert analyst.rows("select count(*), min(age) >= 20 from covered where sex in ('f', 'm')") == [["2000", "true"]]
    found = analyst.attached_rows("select sex, count(*) > 0 from r.covered where age < 40 group by sex order by sex")
    assert found == [["f", "true"], ["m", "true"]]


def test_analyst_has_queries_over_the_original_rewritten_and_runs_them(
    analyst: Any, folder: Path, tables: Callable[[duckdb.DuckDBPyConnection], None]
) -> None:
    query = "select sex, sum(cost) as total from patients where age < 40 group by sex order by sex"
    text = analyst.rows(f"select rewrite_query('{query}', 'patients', 'boxes')")[0][0]
    estimate = {sex: float(total) for sex, total in analyst.rows(text)}
    with duckdb_anon.connect(str(folder / "releases.duckdb"), read_only=True) as con:
        assert estimate == pytest.approx(dict(con.execute(text).fetchall()))
    with duckdb.connect() as con:
        tables(con)
        assert sum(estimate.values()) == pytest.approx(sum(t for _, t in con.execute(query).fetchall()), rel=0.1)


def test_database_with_originals_is_not_served_to_analysts(run: Any, folder: Path) -> None:
    code, said = run("serve", str(folder / "original.duckdb"))
    assert code == 1
    assert "notes, patients" in said and "publish" in said


def test_address_others_can_reach_must_be_meant(run: Any, folder: Path) -> None:
    code, said = run("serve", str(folder / "releases.duckdb"), "--listen", "0.0.0.0:9494")
    assert code == 1
    assert "--anywhere" in said


HEAVY = """select count(*) from covered a, covered b, covered c, covered d
    where a.cost * b.cost * c.cost * d.cost % 7 = 3"""
LARGE = "select len(list(a.disease || b.disease || a.cost || b.cost)) from covered a, covered b"


def test_query_that_runs_too_long_is_ended_alone(folder: Path, serve: Any) -> None:
    with serve(folder / "releases.duckdb", "analyst", "--timeout", "3") as endpoint:
        children = Path(f"/proc/{endpoint.process.pid}/task/{endpoint.process.pid}/children")
        worker = children.read_text()
        heavy = threading.Thread(target=lambda: said.append(endpoint.ask(HEAVY).stderr))
        said: list[str] = []
        heavy.start()
        while heavy.is_alive():
            assert endpoint.rows("select count(*) from covered") == [["2000"]]
        assert "took more than 3 s" in said[0]
        assert children.read_text() == worker


def test_memory_of_queries_is_limited_and_the_endpoint_survives(folder: Path, serve: Any) -> None:
    with serve(folder / "releases.duckdb", "analyst", "--memory", "80MB", "--threads", "1") as endpoint:
        for _ in range(2):
            done = endpoint.ask(LARGE)
            assert done.returncode == 1
            assert "failed to allocate" in done.stderr
            assert str(folder) not in done.stderr
            assert endpoint.rows("select count(*) from covered") == [["2000"]]
        worker = Path(f"/proc/{endpoint.process.pid}/task/{endpoint.process.pid}/children").read_text().split()
        assert len(worker) == 1  # the first one still: nothing had to be ended
    assert "start" not in endpoint.said


def test_endpoint_answers_from_the_moment_it_says_it_is_there(folder: Path, serve: Any) -> None:
    # the server's threads are made while it starts; memory is bounded only after
    with serve(folder / "releases.duckdb", "analyst", "--memory", "1MB", "--threads", "1") as endpoint:
        assert endpoint.ask("select 1 as one", patience=20).stdout.split() == ["one", "1"]


@pytest.mark.parametrize(
    "option", [("--timeout", "soon"), ("--threads", "0"), ("--memory", "plenty"), ("--memory", "0GB")]
)
def test_limit_that_makes_no_sense_is_named(run: Any, folder: Path, option: tuple[str, str]) -> None:
    code, said = run("serve", str(folder / "releases.duckdb"), *option)
    assert code == 2
    assert option[0] in said and option[1] in said
