"""Moments of every unit: ends of boxes are not rounded, so bounds hold to the nanosecond."""

import pytest

import duckdb_anon

MOMENTS = {
    "TIMESTAMP_NS": "make_timestamp_ns(1577881800123456789 + i * 7 % 13 * 1000001)",
    "TIMESTAMPTZ_NS": "('2020-01-01 00:00:00.12345678' || i * 7 % 10 || '+00')::timestamptz_ns",
    "TIMESTAMP_S": "(timestamp '2020-01-01' + to_seconds(i * 7 % 13))::timestamp_s",
    "TIMESTAMP_MS": "(timestamp '2020-01-01 00:00:00.123' + to_seconds(i * 7 % 13))::timestamp_ms",
    "TIMESTAMP": "timestamp '2020-01-01 00:00:00.123456' + to_seconds(i * 7 % 13)",
    "TIMESTAMPTZ": "timestamptz '2020-01-01 00:00:00.123456+00' + to_seconds(i * 7 % 13)",
    "TIME_NS": "('12:00:00.12345678' || i * 7 % 10)::time_ns",
    "TIME": "time '12:00:00.123456' + to_seconds(i * 7 % 13)",
}
STAMPS = [kind for kind in MOMENTS if kind.startswith("TIMESTAMP")]
ROLES = "qi := ['a', 'b'], sensitive := 's'"


@pytest.fixture(scope="module")
def con():
    con = duckdb_anon.connect()
    con.execute("set timezone = 'Asia/Tokyo'")
    return con


@pytest.mark.parametrize("kind", STAMPS)
def test_an_estimate_of_boxes_without_width_is_the_moment(con, kind):
    con.execute(
        f"create or replace table t as select (select ({MOMENTS[kind]})::{kind} from range(3, 4) as m(i)) as a, "
        "i as b, i % 4 as s from range(60) as r(i)"
    )
    con.execute(f"create or replace table r as from mondrian('t', 3, {ROLES}, seed := 1)")
    query = "select min(a) as lo, max(a) as hi from t where b < 70"
    text = con.execute(f"select rewrite_query($1, 't', 'r', {ROLES})", [query]).fetchone()
    separate = "epoch_ns({x})" if kind.endswith("_NS") else "1000 * epoch_us({x})"
    away = con.execute(
        f"select greatest(abs({separate.format(x='e.lo')} - {separate.format(x='o.lo')}), "
        f"abs({separate.format(x='e.hi')} - {separate.format(x='o.hi')})) from ({text[0]}) as e, ({query}) as o"
    ).fetchone()
    assert away is not None and away[0] <= (128 if kind.endswith("_NS") else 0)  # half a step of doubles near there


@pytest.mark.parametrize("kind", MOMENTS)
def test_shares_of_boxes_of_moments_are_learnt_in_any_unit(con, kind):
    con.execute(
        f"create or replace table t as select ({MOMENTS[kind]})::{kind} as a, i % 3 as b, i * 3 % 4 as s "
        "from range(60) as r(i)"
    )
    con.execute(f"create or replace table r as from laplace_on_groups('t', k := 3, epsilon := 0.1, {ROLES})")
    for condition in ("is null", "is not null"):
        found = con.execute(
            f"select count(*) from relative_error($1, 't', 'r', {ROLES})",
            [f"select count(*) as n, sum(b) as v from t where a {condition}"],
        ).fetchone()
        assert found == (2,)
