"""information_loss on worked examples."""

import duckdb
import pytest


def loss(con: duckdb.DuckDBPyConnection, more: str = "") -> dict[str, tuple[float, float, float]]:
    rows = con.execute(f"from information_loss('original', 'release'{more})").fetchall()
    return {r[0]: r[2:] for r in rows}


def hospital(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create table original as from (values (22, 'M', 47905), (22, 'F', 47905), (33, 'F', 47901), (52, 'M', 47901), "
        "(54, 'M', 47902), (60, 'F', 47902), (60, 'F', 47308), (64, 'F', 47308)) t(age, sex, zip)"
    )
    con.execute(
        "create table release as select {'lower': lo, 'upper': hi} as age, sex, {'lower': zip, 'upper': zip} as zip from "
        "(values (22, 22, ['F', 'M'], 47905), (33, 52, ['F', 'M'], 47901), (54, 60, ['F', 'M'], 47902), "
        "(60, 64, ['F'], 47308)) t(lo, hi, sex, zip), range(2)"
    )


def test_hospital_groups_have_the_worked_losses(con):
    hospital(con)
    found = loss(con, ", qi := ['age', 'sex', 'zip']")
    assert found["(all)"][0] == pytest.approx((29 / 43 + 3 / 2) / 12)
    assert found["(all)"][1] == pytest.approx((3 + 29 / 42) / 12)
    assert found["(all)"][0] == pytest.approx(0.18120, abs=5e-6)
    assert found["(all)"][1] == pytest.approx(0.30754, abs=5e-6)


def test_a_value_beyond_the_original_loses_no_more_than_everything(con):
    con.execute("create table original as select range as a from range(11)")
    con.execute("create table release as select a + 1000 as a, rowid as row_id from original")
    assert loss(con, ", qi := ['a']")["a"] == (pytest.approx(10 / 11), 1.0, 1.0)


@pytest.mark.parametrize(
    ("release", "losses"),
    [  # the tree distance of replaced values, and the leaves of nodes
        ("(values ('a1', 0), ('a2', 1), ('a1', 2), ('b2', 3)) t(v, row_id)", (1 / 4, 1.5 / 4, 2 / 4)),
        ("(values ('A'), ('*'), ('b1'), ('b2')) t(v)", (1 / 4, 1.5 / 4, 2 / 4)),
    ],
)
def test_replaced_values_and_nodes_count_leaves_below_the_node_above_both(con, release, losses):
    con.execute(
        "create table tree as from (values ('a1','A','*'),('a2','A','*'),('b1','B','*'),('b2','B','*')) t(x,y,z)"
    )
    con.execute("create table original as from (values ('a1'), ('a1'), ('b1'), ('b2')) t(v)")
    con.execute(f"create table release as from {release}")
    assert loss(con, ", qi := ['v'], hierarchies := {'v': 'tree'}")["v"] == pytest.approx(losses)


def test_plain_values_without_row_id_are_refused(con):
    con.execute("create table original as select range as a from range(11)")
    con.execute("create table release as from original")
    with pytest.raises(duckdb.Error, match="row_id"):
        loss(con, ", qi := ['a']")


@pytest.fixture
def people(con):
    con.execute("""
        create table tree as select * from (values
            ('a1', 'A', '*'), ('a2', 'A', '*'), ('b1', 'B', '*'), ('b2', 'B', '*')) t(leaf, above, root);
        create table people as select * from (values ('a1', 20, 'f', 1), ('a2', 30, 'f', 2), ('b1', 40, 'm', 3),
            ('b2', 50, 'm', 4)) t(place, age, sex, disease);
        comment on column people.place is 'anon: quasi hierarchy=tree';
        comment on column people.age is 'anon: quasi';
        comment on column people.sex is 'anon: quasi';
        comment on column people.disease is 'anon: sensitive';
    """)
    return con


def test_nodes_intervals_and_sets_have_their_levels(people):
    people.execute("""
        create table r as select * from (values
            ('A', {lower: 20, upper: 30}, ['f'], 1), ('A', {lower: 20, upper: 30}, ['f'], 2),
            ('*', {lower: 40, upper: 40}, ['f', 'm'], 3), ('b2', {lower: NULL, upper: NULL}, ['m'], 4)
        ) t(place, age, sex, disease)
    """)
    found = people.execute("from distortion_ratio('people', 'r')").fetchall()
    assert found == [
        ("place", 2, pytest.approx((1 + 1 + 2 + 0) / 8)),
        ("age", 1, pytest.approx(3 / 4)),
        ("sex", 1, pytest.approx(1 / 4)),
        ("(all)", 2, pytest.approx((1 / 2 + 3 / 4 + 1 / 4) / 3)),
    ]


def test_replaced_values_count_the_node_above_both(people):
    people.execute("""
        create table r as select * from (values
            ('a2', 20, 'f', 1, 0), ('a2', 20, 'f', 2, 1), ('a1', 40, 'f', 3, 2), ('b2', 50, 'm', 4, 3)
        ) t(place, age, sex, disease, row_id)
    """)
    found = dict((a, r) for a, _, r in people.execute("from distortion_ratio('people', 'r')").fetchall())
    assert found["place"] == pytest.approx((1 + 0 + 2 + 0) / 8)
    assert found["age"] == pytest.approx(1 / 4)
    assert found["sex"] == pytest.approx(1 / 4)


def test_attributes_that_cannot_be_generalized_are_left_out(people):
    people.execute("create table one as select 7 as age, 'f' as sex, i as s from range(4) t(i)")
    people.execute("create table r as from mondrian('one', k := 2, qi := ['age', 'sex'])")
    found = people.execute("from distortion_ratio('one', 'r', qi := ['age', 'sex'])").fetchall()
    assert found == [("(all)", 0, 0.0)]


@pytest.mark.parametrize("row_id", ["true", "false"])
def test_permuting_costs_nothing_and_fake_rows_count(people, row_id):
    merged = f"columns := [['place'], ['age', 'sex']], fake := 2, min_bucket := 6, row_id := {row_id}, sensitive_edges := 1, seed := 1"
    people.execute(f"create table r as from merging('people', 1, {merged})")
    assert people.execute("select max(distortion_ratio) from distortion_ratio('people', 'r')").fetchone() == (0.0,)


def test_a_box_that_may_be_null_covers_everything(con):
    con.execute("create table original as select range as a from range(11) union all select null")
    con.execute("create table release as select {'lower': null::bigint, 'upper': null::bigint} as a from original")
    assert loss(con, ", qi := ['a']")["a"] == pytest.approx((10 / 11, 1, 1))


def test_continuous_attributes_divide_by_the_range(con):
    con.execute("create table original as select range / 2.0::double as a from range(11)")
    con.execute("create table release as select {'lower': a, 'upper': a + 1} as a from original where a < 5")
    assert loss(con, ", qi := ['a']")["a"][:2] == pytest.approx((1 / 5, 1 / 5))
