"""muco with the paper's random output tables, as a SQL function: what is touched, what is not, and what every setting promises."""

import pytest

from tests.reference.muco import mean_change

LINEAR = "tables := 'linear'"
PAPER = "cut := 'median', width := 'spread', subdivide := 'assign', balance := 0, unchanged := 'redraw'"
ROLES = f"{LINEAR}, qi := ['born', 'pay', 'kind', 'ward'], sensitive := 'disease', hierarchies := {{'ward': 'wards'}}"


@pytest.mark.parametrize("setting", ["", ", " + PAPER])
def test_seeds_repeat(patients, setting):
    def release(seed: int) -> list[tuple[object, ...]]:
        return patients.execute(f"from muco('patients', 0.2, seed := {seed}, {ROLES}{setting})").fetchall()

    assert release(3) == release(3)
    assert release(3) != release(4)


def test_information_loss_is_the_mean_change(con):
    con.execute("create table t as select range * 7 % 31 as a, range * 5 % 11 as b, range % 9 as s from range(200)")
    con.execute(
        "create table r as from muco('t', 0.2, tables := 'linear', qi := ['a', 'b'], sensitive := 's', row_id := true)"
    )
    loss = con.execute(
        "select iloss from information_loss('t', 'r', qi := ['a', 'b']) where attribute = '(all)'"
    ).fetchone()
    both = con.execute("select t.a, t.b, r.a, r.b from r join (select *, row_number() over () - 1 as row_id from t) t "
                       "using (row_id)").fetchall()  # fmt: skip
    assert loss[0] == pytest.approx(mean_change([row[:2] for row in both], [row[2:] for row in both]))
