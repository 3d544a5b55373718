"""What is learnt from a release serves the next query, and no query of changed rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import duckdb_anon
from duckdb_anon.engine.draws import estimator_udfs
from duckdb_anon.engine.draws.estimator_udfs import segments

QUERY = "select count(*) as n from people where age < 20 and town in (''n1'', ''n2'') and sex = ''F''"


@pytest.fixture
def con(monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    monkeypatch.setattr(estimator_udfs, "_kept", {})
    con = duckdb_anon.connect()
    con.execute("select setseed(0.4)")
    con.execute(
        "create table people as select (random() ** 2 * 90)::int as age, 'n' || (random() ** 2 * 5)::int as town, "
        "'FMX'[1 + (random() ** 2 * 2)::int] as sex, (random() * 3)::int as d from range(400)"
    )
    con.execute(
        "create table towns as select distinct town, substr(town, 2)::int // 2 || 'x' as half, '*' as a from people"
    )
    duckdb_anon.release(con, "r", f"mondrian('people', 20, {ROLES})")
    yield con
    con.close()


ROLES = "qi := ['age', 'town', 'sex'], sensitive := 'd', hierarchies := {'town': 'towns'}"


def estimate(con: duckdb.DuckDBPyConnection, bounds: str, name: str = "r") -> float:
    call = (
        f"estimate('{QUERY}', '{name}', original := 'people', bounds := '{bounds}', hierarchies := {{'town': 'towns'}})"
    )
    return float(con.execute(f"select estimate from {call}").fetchall()[0][0])


@pytest.mark.parametrize("bounds", ["sure", "none"])
def test_the_second_query_learns_nothing(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, bounds: str
) -> None:
    first = estimate(con, bounds)
    for name in ("learnt_density", "member_shares"):
        monkeypatch.setattr(estimator_udfs, name, lambda *_: pytest.fail("learnt again"))
    assert estimate(con, bounds) == pytest.approx(first, rel=1e-12)


@pytest.mark.parametrize(
    ("bounds", "change"),
    [
        ("sure", "update r set age = {'lower': 0, 'upper': 3} where age.upper > 20"),
        ("none", "delete from r where d > 0"),
        ("none", "insert into r from r where age.lower < 10"),
        ("sure", "update towns set half = case half when '0x' then '1x' when '1x' then '0x' else half end"),
    ],
)
def test_changed_rows_are_learnt_from_again(con: duckdb.DuckDBPyConnection, bounds: str, change: str) -> None:
    estimate(con, bounds)
    con.execute(change)
    kept = estimate(con, bounds)
    estimator_udfs._kept.clear()
    assert kept == pytest.approx(estimate(con, bounds), rel=1e-12)


def test_rows_of_a_transaction_are_not_kept_for_others(con: duckdb.DuckDBPyConnection) -> None:
    before = estimate(con, "none")
    con.execute("begin")
    con.execute("delete from r where d > 0")
    estimate(con, "none")
    con.execute("rollback")
    assert estimate(con, "none") == pytest.approx(before, rel=1e-12)


def test_shares_of_more_ends_than_are_learnt_one_by_one_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(500) // 5
    cells = {"low": pa.array(numbers**2.0), "high": pa.array((numbers + 1) ** 2.0), "size": pa.array([10.0] * 500)}
    each = segments(cells)
    monkeypatch.setattr(estimator_udfs, "MOST", 20)
    monkeypatch.setattr(estimator_udfs, "PUT_TOGETHER", 10)
    together = segments(cells)
    assert len(each) > 20 and len(together) == 10
    for number, (first, last, density) in enumerate(together):
        assert number == 0 or first == together[number - 1][1]
        inside = sum(share * (b - a) for a, b, share in each if first <= a and b <= last)
        assert density * (last - first) == pytest.approx(inside)
