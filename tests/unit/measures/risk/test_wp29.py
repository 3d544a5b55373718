"""singling_out, linkability, inference and membership_risk against brute force, and in the limits."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from duckdb_anon.measures.risk.membership_risk import figures
from duckdb_anon.measures.risk.singling_out import multivariate, singled, univariate
from duckdb_anon.measures.risk.wp29 import Numbers, residual
from tests.reference import wp29

LABELS = "qi := ['a', 'b', 'c'], sensitive := 's'"
SPANS = [99.0, None, 9.0, 4.0]


def table(con: duckdb.DuckDBPyConnection, name: str, rows: int, salt: int) -> list[tuple[object, ...]]:
    con.execute(
        f"create table {name} as select (hash(range, {salt}) % 100)::int as a, 'v' || hash(range, {salt} + 1) % 3 as b, "
        f"(hash(range, {salt} + 2) % 10)::int as c, (hash(range, {salt} + 3) % 5)::int as s from range({rows}) "
        "union all values (0, 'v0', 0, 0), (99, 'v0', 9, 4)"
    )
    return con.execute(f"from {name}").fetchall()


def test_linkability_lies_between_what_ties_allow(con: duckdb.DuckDBPyConnection) -> None:
    original, release = table(con, "original", 60, 1), table(con, "release", 60, 1)
    release = con.execute("from release").fetchall()
    by_a = [wp29.nearest(t, release, (0,), SPANS) for t in original]
    by_b = [wp29.nearest(t, release, (1, 2, 3), SPANS) for t in original]
    surely = np.mean([x == y and len(x) == 1 for x, y in zip(by_a, by_b, strict=True)])
    possibly = np.mean([bool(x & y) for x, y in zip(by_a, by_b, strict=True)])
    found = con.execute(
        f"select attack from linkability('original', 'release', {LABELS}, columns_a := ['a'], seed := 1)"
    ).fetchone()
    assert found is not None
    assert surely <= found[0] <= possibly
    assert surely > 0


def test_inference_takes_the_value_of_the_nearest_row(con: duckdb.DuckDBPyConnection) -> None:
    original, release = table(con, "original", 60, 1), table(con, "release", 60, 5)
    near = [wp29.nearest(t, release, (0, 1, 2), SPANS) for t in original]
    pairs = list(zip(near, original, strict=True))
    surely = np.mean([all(release[r][3] == t[3] for r in rows) for rows, t in pairs])
    possibly = np.mean([any(release[r][3] == t[3] for r in rows) for rows, t in pairs])
    found = con.execute(f"select attack from inference('original', 'release', {LABELS}, seed := 1)").fetchone()
    assert found is not None
    assert surely <= found[0] <= possibly


def test_predicates_hold_for_one_released_row_each() -> None:
    rng = np.random.default_rng(1)
    values = np.stack([rng.integers(0, 30, 80), rng.integers(0, 3, 80), rng.integers(0, 9, 80)]).astype(float)
    release = Numbers(["a", "b", "c"], values, np.array([False, True, False]), np.array([29.0, 1.0, 8.0]))
    rows = values.T.tolist()
    for predicates in (univariate(release, 1, 50, rng), multivariate(release, 2, 50, rng)):
        assert predicates
        for terms in predicates:
            assert sum(wp29.holds(row, terms) for row in rows) == 1
            other = [[float(v) for v in row] for row in rng.integers(0, 9, (40, 3))]
            there = Numbers(release.names, np.array(other).T.copy(), release.nominal, release.span)
            assert singled(there, terms) == float(sum(wp29.holds(row, terms) for row in other) == 1)


def test_an_undistorted_copy_is_singled_out_linked_and_inferred(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create table original as select range as a, range * 7 % 1009 as b, range * 3 % 1009 as c, range as s from range(1000)"
    )
    con.execute("create table release as from original order by hash(a)")
    for call in (
        f"singling_out('original', 'release', {LABELS}, attacks := 50)",
        f"linkability('original', 'release', {LABELS})",
        f"inference('original', 'release', {LABELS}, tolerance := 0)",
    ):
        for (rate,) in con.execute(f"select attack from {call}").fetchall():
            assert rate == 1.0, call


def test_independent_rows_give_no_risk_beyond_the_control(con: duckdb.DuckDBPyConnection) -> None:
    for name, salt in (("original", 1), ("release", 50), ("others", 90)):
        table(con, name, 1500, salt)
    for call in ("linkability", "inference"):
        row = con.execute(
            f"select risk_low, attack, control from {call}('original', 'release', {LABELS}, holdout := 'others', seed := 2)"
        ).fetchone()
        assert row is not None
        assert row[0] == pytest.approx(0, abs=0.02)


def test_membership_is_certain_in_a_copy_and_a_guess_in_noise(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create table original as select range * 2 as a, hash(range) % 97 as b, hash(range, 1) % 89 as c, 1 as s from range(500)"
    )
    con.execute(
        "create table others as select range * 2 + 1 as a, hash(range, 5) % 97 as b, hash(range, 6) % 89 as c, 1 as s from range(500)"
    )
    con.execute("create table release as select *, rowid as row_id from original order by hash(a)")
    found = con.execute(
        f"select auc, tpr_at_1_fpr from membership_risk('original', 'release', {LABELS}, holdout := 'others') "
        "where attacker = 'nearest'"
    ).fetchone()
    assert found == (1.0, 1.0)
    noise = con.execute(
        f"select auc_low, auc_high from membership_risk('original', '(select hash(range, 7) % 1000 as a, hash(range, 8) % 97 "
        f"as b, hash(range, 9) % 89 as c, 1 as s, range as row_id from range(500))', {LABELS}, holdout := 'others') "
        "where attacker = 'nearest'"
    ).fetchone()
    assert noise is not None
    assert noise[0] < 0.5 < noise[1]


def test_auc_counts_pairs_and_ties_half() -> None:
    inside, outside = np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.0, 2.0, -1.0])
    pairs = [(i > o) + 0.5 * (i == o) for i in inside for o in outside]
    assert figures(inside, outside)["auc"] == pytest.approx(np.mean(pairs))


def test_risk_without_control_is_the_rate_of_the_attack() -> None:
    assert residual(np.array([1.0, 0.0, 0.0, 0.0]), None)[0] == 0.25
    risk, low, high = residual(np.repeat([1.0, 0.0], [300, 700]), np.repeat([1.0, 0.0], [100, 900]))
    assert low < risk < high
    assert risk == pytest.approx((0.3 - 0.1) / 0.9, abs=0.002)
