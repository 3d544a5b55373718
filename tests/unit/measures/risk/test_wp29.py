"""singling_out, linkability, inference and membership_risk against brute force, and in the limits."""

import duckdb
import pytest

LABELS = "qi := ['a', 'b', 'c'], sensitive := 's'"


def table(con: duckdb.DuckDBPyConnection, name: str, rows: int, salt: int) -> list[tuple[object, ...]]:
    con.execute(
        f"create table {name} as select (hash(range, {salt}) % 100)::int as a, 'v' || hash(range, {salt} + 1) % 3 as b, "
        f"(hash(range, {salt} + 2) % 10)::int as c, (hash(range, {salt} + 3) % 5)::int as s from range({rows}) "
        "union all values (0, 'v0', 0, 0), (99, 'v0', 9, 4)"
    )
    return con.execute(f"from {name}").fetchall()


def test_an_undistorted_copy_is_singled_out_linked_and_inferred(con):
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


def test_independent_rows_give_no_risk_beyond_the_control(con):
    for name, salt in (("original", 1), ("release", 50), ("others", 90)):
        table(con, name, 1500, salt)
    for call in ("linkability", "inference"):
        row = con.execute(
            f"select risk_low, attack, control from {call}('original', 'release', {LABELS}, holdout := 'others', seed := 2)"
        ).fetchone()
        assert row[0] == pytest.approx(0, abs=0.02)


def test_membership_is_certain_in_a_copy_and_a_guess_in_noise(con):
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
    assert noise[0] < 0.5 < noise[1]
