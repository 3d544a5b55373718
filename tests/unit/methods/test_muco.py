"""muco as it is by default: what it promises, re-checked in SQL, and what it refuses."""

from math import ceil

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import All, FrequencyDiversity, KAnonymity
from duckdb_anon.methods import muco
from duckdb_anon.release_api import release
from tests.reference.answers import answered
from tests.reference.cover_lp import ordered

QI = ("born", "pay", "kind", "ward")
ROLES = "qi := ['born', 'pay', 'kind', 'ward'], sensitive := 'disease', hierarchies := {'ward': 'wards'}"


@pytest.mark.parametrize(("text", "delta"), [("1/6", 1 / 6), ("0.37::double", 0.37)])
def test_tables_are_uniform_and_hold_every_record_once(patients, text, delta):
    patients.execute(f"create table tables as from muco_tables('patients', {text}, {ROLES})")
    members = "(select distinct group_id, attribute, original, records from tables)"
    sizes = f"(select group_id, attribute, sum(records) as members from {members} group by all)"
    assert patients.execute(f"select min(members) from {sizes}").fetchone()[0] >= ceil(1 / delta - 1e-9)
    assert patients.execute(f"select distinct sum(members) from {sizes} group by attribute").fetchall() == [(300,)]
    # every record shows a value as often as its group has it
    assert patients.execute(f"""
        select count(*) from tables t join {sizes} z using (group_id, attribute) join {members} o
        on o.group_id = t.group_id and o.attribute = t.attribute and o.original is not distinct from t.output
        where abs(t.probability - o.records / z.members) > 1e-12
    """).fetchone() == (0,)
    found = patients.execute(f"select attribute, holds, attained from delta_probability('patients', {text}, {ROLES})")
    for attribute, holds, attained in found.fetchall():
        assert attribute in QI and holds and attained <= delta + 1e-9


@pytest.mark.campaign
def test_a_released_row_is_her_own_with_the_chance_of_her_group(con):
    # 12 rows are one group; row by row the release tells nothing of which of them is whose
    con.execute("create table t as select i as a, i // 3 as b, 's' || i as s from range(12) t(i)")
    own = near = 0.0
    for seed in range(150):
        rows = con.execute(f"""select a, b, row_id from muco('t', 1/12, repair := false, row_id := true, qi := ['a', 'b'],
            sensitive := 's', seed := {seed})""").fetchall()
        assert len(rows) == 12
        distance = [(abs(a - 5) + 3 * abs(b - 1), i) for a, b, i in rows]
        best = [i for d, i in distance if d == min(distance)[0]]
        near += (5 in best) / len(best)
        own += sum(a == i for a, _, i in rows) / 12
    # four standard errors
    assert abs(near / 150 - 1 / 12) < 4 * np.sqrt(1 / 12 / 150)
    assert abs(own / 150 - 1 / 12) < 4 * np.sqrt(1 / 12 / 12 / 150)


def test_groups_are_larger_than_one_over_delta_by_what_a_model_gains(con):
    con.execute("create table t as select i as a, i * 7 % 40 as b, i // 2 as whose from range(120) t(i)")
    smallest = "select smallest, groups from muco_groups('{}', {}, qi := ['a', 'b']{})"
    # 32 rows are two groups of 16 or more, 31 are one
    for more in ("", ", repair := true", ", repair := false"):
        assert con.execute(smallest.format("(from t limit 31)", "0.1", more)).fetchone() == (31, 1)
        assert con.execute(smallest.format("(from t limit 32)", "0.1", more)).fetchone() == (16, 2)
    assert con.execute(smallest.format("t", "0.1", "")).fetchone()[0] >= 16
    assert con.execute(smallest.format("t", "1", "")).fetchone() == (1, 120)
    # a table of one group shows no association, and needs just as many as delta asks for
    assert con.execute(smallest.format("(from t limit 10)", "0.1", "")).fetchone() == (10, 1)
    assert con.execute("select count(*) from muco('(from t limit 10)', 0.1, qi := ['a', 'b'])").fetchone() == (10,)
    with pytest.raises(duckdb.Error, match="delta := 1/9 is the strictest"):
        con.execute("from muco('(from t limit 9)', 0.1, qi := ['a', 'b'])")
    # persons are counted where somebody has several rows
    persons = "select count(*) from muco('(from t limit {})', 0.1, qi := ['a', 'b'], person := 'whose')"
    assert con.execute(persons.format(20)).fetchone() == (20,)
    with pytest.raises(duckdb.Error, match="k = 10 was requested"):
        con.execute(persons.format(18))


def test_structural_values_are_excepted_from_l_and_listed(con):
    con.execute("""
        create table t as select (hash(i) % 80)::int as age, hash(i, 1) % 50 as region,
            case when hash(i) % 80 < 16 then 'it''s 0' else 'v' || (hash(i, 2) % 6 + hash(i) % 80 // 20) end as income
        from range(4000) t(i)
    """)
    roles = "qi := ['age', 'region'], sensitive := 'income'"
    children = con.execute("select count(*) from t where age < 16").fetchone()[0]
    found = con.execute(f"from structural_values('t', 0.1, {roles})").fetchall()
    assert [row[:5] for row in found] == [("income", "it's 0", children, children, True)]
    assert 0.9 < found[0][5] <= 1  # who finds a child's group infers the income
    groups = f"select largest, note from muco_groups('t', 0.1, {{}}{roles})"
    for bounding in ("l := 2, ", "l_except := [], "):
        largest, note = con.execute(groups.format(bounding)).fetchone()
        assert largest > 48 and "groups of more than 48" in note and "l does not bound" not in note
    exceptions = "l_except := ['it''s 0', 'a value that is not there']"
    for excepting in ("", "l := 2, l_except := 'structural', ", exceptions + ", "):
        largest, note = con.execute(groups.format(excepting)).fetchone()
        assert largest <= 48 and "l does not bound 1 of the values of 'income'" in note
    assert exceptions in release(con, "r", f"muco('t', 0.1, {exceptions}, {roles})")
    found = release(con, "s", f"muco('t', 0.1, {roles})", independent=True)
    assert "muco(delta := 0.1, l_except := ['it''s 0'])" in found
    with pytest.raises(duckdb.Error, match="l_except belongs to tables := 'uniform'"):
        con.execute(f"from muco('t', 0.1, {exceptions}, tables := 'linear', {roles})")
    # a value of half of each group is allowed, and no more, but for the excepted one
    assert con.execute("from structural_values('(from t where age >= 16)', 0.1, " + roles + ")").fetchall() == []


def test_a_value_of_more_than_half_of_the_records_is_excepted_and_null_may_be(con):
    con.execute("""create table t as select hash(i) % 40 as age, hash(i, 1) % 9 as region,
        case when hash(i, 2) % 3 > 0 then null else 'v' || hash(i, 3) % 3 end as illness from range(3000) t(i)""")
    roles = "qi := ['age', 'region'], sensitive := 'illness'"
    assert con.execute(f"select value, excepted from structural_values('t', 0.1, {roles})").fetchall() == [(None, True)]
    for more in ("", ", l_except := [null]", ", l := 2, l_except := 'structural'"):
        assert con.execute(f"select count(*) from muco('t', 0.1, {roles}{more})").fetchone() == (3000,)
    with pytest.raises(duckdb.Error, match=r"l = 2 was requested.*say l := 1\.\d+, or l := 1"):
        con.execute(f"from muco('t', 0.1, l := 2, {roles})")
    assert "l_except := [NULL]" in release(con, "r", f"muco('t', 0.1, {roles})")
    con.execute(f"create table checked as from muco('t', 0.1, {roles}, row_id := true)")
    call = "call := 'muco(delta := 0.1, l_except := [NULL])'"
    found = con.execute(f"select channel from linkage_risk('t', 'checked', {call}, targets := 20, {roles})").fetchall()
    assert ("simulated",) in found


def test_a_small_homogeneous_part_is_not_structural(con):
    # what l is for: the 40 records of one region have one illness
    con.execute("""create table t as select hash(i) % 40 as age, if(i < 40, 99, hash(i, 1) % 9) as region,
        if(i < 40, 'HIV', 'v' || hash(i, 2) % 6) as illness from range(3000) t(i)""")
    roles = "qi := ['age', 'region'], sensitive := 'illness'"
    found = con.execute(f"select value, alone, excepted from structural_values('t', 0.1, {roles})").fetchall()
    assert found == [("HIV", 40, False)]
    con.execute(
        f"create table groups as select group_id, sum(records) as n from (select distinct group_id, original, "
        f"records from muco_tables('t', 0.1, {roles}) where attribute = 'region' and original = '99') group by all"
    )
    hiv = con.execute("select sum(n), count(*) from groups").fetchone()
    assert hiv[0] == 40
    sizes = con.execute(f"""select sum(records) from (select distinct group_id, original, records from
        muco_tables('t', 0.1, {roles}) where attribute = 'region') where group_id in (select group_id from groups)""")
    assert sizes.fetchone()[0] >= 80


@pytest.mark.parametrize("excepted", [(), (0,), (0, 3)])
def test_l_bounds_the_values_that_are_not_excepted(excepted):
    rng = np.random.default_rng(4)
    age = rng.integers(0, 60, 1500)
    secret = np.where(age < 20, 0, rng.integers(1, 5, 1500)).astype(np.int32)
    model = FrequencyDiversity(2.5, excepted)
    group = partition([ordered(age), ordered(rng.integers(0, 9, 1500))], secret, All((KAnonymity(5), model)), cut="sse")
    counts = np.zeros((group.max() + 1, 5), dtype=int)
    np.add.at(counts, (group, secret), 1)
    bounded = np.delete(counts, excepted, axis=1).max(axis=1) * 2.5 <= counts.sum(axis=1)
    assert bounded.all()
    assert (counts.max(axis=1) * 2.5 > counts.sum(axis=1)).any() == bool(excepted)
    for worse in (2.5, 4.0):
        by_hand = np.delete(counts, excepted, axis=1).max(axis=1) * worse <= counts.sum(axis=1)
        assert (FrequencyDiversity(worse, excepted).holds(Groups(group, secret)) == by_hand).all()


def test_constant_columns_and_tables_of_one_group_are_released(con):
    con.execute("create table t as select 1 as a, null::date as b, 'x' as c, i % 2 as s from range(20) t(i)")
    rows = con.execute("from muco('t', 0.1, qi := ['a', 'b', 'c'], sensitive := 's')").fetchall()
    assert sorted(rows) == sorted([(1, None, "x", i % 2) for i in range(20)])
    with pytest.raises(duckdb.Error, match=r"k = 25 was requested.*delta := 1/20 is the strictest"):
        con.execute("from muco('t', 0.04, qi := ['a', 'b', 'c'])")
    with pytest.raises(duckdb.Error, match=r"l = 2 was requested.*say l := 1"):
        con.execute("from muco('(select 1 as a, 2 as s from range(30))', 0.1, l := 2, qi := 'a', sensitive := 's')")


def _moved(source: np.ndarray) -> None:
    source[1] = np.roll(source[1], 1)


def _doubled(source: np.ndarray) -> None:
    source[2][0] = source[2][np.flatnonzero(source[2] != source[2][0])[0]]


@pytest.mark.parametrize("spoil", [_moved, _doubled])
def test_a_column_that_left_its_groups_is_not_released(patients, monkeypatch, spoil):
    def spoilt(qi: object, sensitive: object, groups: object, source: np.ndarray, rng: object) -> np.ndarray:
        spoil(source)
        return source

    monkeypatch.setattr(muco, "repaired", spoilt)
    with pytest.raises(duckdb.Error, match="muco: a column left its groups; nothing is released"):
        patients.execute(f"create table r as from muco('patients', 0.2, {ROLES})")
    assert patients.execute("select count(*) from duckdb_tables() where table_name = 'r'").fetchone() == (0,)


def test_counts_in_sql(con):
    con.execute("create table t as select i // 40 as a, i // 40 as b, i as s from range(120) t(i)")
    roles = "qi := ['a', 'b'], sensitive := 's'"
    found = answered(con, f"from muco_groups('t', 0.1, {roles})")
    sizes = {"rows": 120, "groups": 3, "smallest": 40, "largest": 40}
    assert found == {**sizes, "as_they_were": 120, "moved": 0, "note": ""}
    linear = con.execute(f"select moved from muco_groups('t', 0.1, {roles}, tables := 'linear')").fetchall()
    assert linear == [(120,)]
    # two groups that vary on b alone
    con.execute("create table u as select i // 20 as a, i // 10 % 2 as b, i as s from range(40) t(i)")
    for changed, moved in ((1, 0), (2, 40)):
        call = f"muco_groups('u', 1/20, {roles}, tables := 'linear', min_changed := {changed})"
        assert con.execute(f"select groups, moved from {call}").fetchall() == [(2, moved)]
    with pytest.raises(duckdb.Error, match=r"min_changed := 2\.0 belongs to the paper's"):
        con.execute(f"from muco_groups('t', 0.1, {roles}, min_changed := 2)").fetchall()
