"""Boxes of more values than can be listed: moments are told by their ends, what needs a list is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import duckdb_anon


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb_anon.connect()
    con.execute("select setseed(0.3)")
    con.execute(
        "create table people as select (random() * 5e9)::bigint as w, (random() * 1e7)::int as i, random() * 1e6 as x, "
        "(random() * 90)::int as a, 'xyz'[1 + (random() * 2)::int] as s from range(3000)"
    )
    duckdb_anon.release(con, "r", "mondrian('people', 5, qi := ['w', 'i', 'x'], sensitive := 's', keep := ['a'])")
    yield con
    con.close()


@pytest.mark.parametrize("spread", ["learnt", "uniform"])
@pytest.mark.parametrize("moment", ["stddev(w)", "var_pop(i)", "stddev(x)", "stddev(2 * i - 7)"])
def test_moments_of_wide_boxes_are_near(con: duckdb.DuckDBPyConnection, moment: str, spread: str) -> None:
    ((truth,),) = con.execute(f"select {moment} from people").fetchall()
    statement = f"select estimate from estimate('select {moment} from people', 'r', spread := '{spread}')"
    ((found,),) = con.execute(statement).fetchall()
    assert found == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("spread", ["learnt", "uniform"])
def test_listed_values_have_the_shares_of_segments(con: duckdb.DuckDBPyConnection, spread: str) -> None:
    """`a % 7` lists every value of an interval, and `a in (...)` cuts it into segments."""
    con.execute("create or replace table narrow as from mondrian('people', 5, qi := ['a', 'x'], sensitive := 's')")
    values = ", ".join(str(value) for value in range(3, 91, 7))
    listed, segments = (
        con.execute(
            f"select estimate from estimate('select count(*) from people where {condition}', 'narrow', "
            f"original := 'people', spread := '{spread}')"
        ).fetchall()
        for condition in ("a % 7 = 3", f"a in ({values})")
    )
    assert listed[0][0] == pytest.approx(segments[0][0])
