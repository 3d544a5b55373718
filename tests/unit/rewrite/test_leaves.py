"""Leaves may stand where other leaves did: a release that shows no inner node proves nothing of its rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import duckdb_anon

QUERY = "select count(*) from people where city = ''c1'' and age < 4"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb_anon.connect()
    con.execute(
        "create table people as select i % 9 as age, 'c' || (i * 7) % 8 as city, (i * 5) % 11 as cost from range(200) t(i)"
    )
    con.execute(
        "create table tree as select 'c' || i as leaf, 'half' || i // 4 as half, 'all' as root from range(8) t(i)"
    )
    for column, role in {"age": "quasi", "city": "quasi hierarchy=tree", "cost": "sensitive"}.items():
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    yield con
    con.close()


def certain(con: duckdb.DuckDBPyConnection, call: str) -> tuple[bool, bool]:
    """Whether any answer is called certain, and whether all truths lie within what is called so."""
    con.execute(f"create or replace table release as from {call}")
    rows = con.execute(
        f"select original, low, high, confidence from relative_error('{QUERY}', 'people', 'release', bounds := 'hard')"
    ).fetchall()
    sure = [(truth, low, high) for truth, low, high, confidence in rows if confidence == 1]
    return bool(sure), all((low is None or low <= t) and (high is None or t <= high) for t, low, high in sure)


@pytest.mark.parametrize("call", ["muco('people', 0.1)", "rank_swap('people', 50)", "microaggregate('people', 10)"])
def test_exchanged_leaves_bound_nothing(con: duckdb.DuckDBPyConnection, call: str) -> None:
    assert certain(con, call) == (False, True)


def test_inner_nodes_do(con: duckdb.DuckDBPyConnection) -> None:
    assert certain(con, "mondrian('people', 60)") == (True, True)
