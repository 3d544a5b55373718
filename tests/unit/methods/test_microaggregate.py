"""Microaggregation and rank swapping against doing it by hand, and what they promise, in SQL."""

from decimal import Decimal

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.methods.microaggregate import mdav_groups
from duckdb_anon.methods.rank_swap import swapped_within
from tests.reference.cover_lp import nominal, ordered
from tests.reference.sse import matrix, mdav

ROLES = "qi := ['born', 'pay', 'age', 'kind', 'ward'], sensitive := 'disease', keep := ['note'], row_id := true, " \
        "hierarchies := {'ward': 'wards'}"  # fmt: skip


@pytest.mark.parametrize("groups", ["sse", "mdav"])
@pytest.mark.parametrize("k", [1, 7])
def test_every_class_has_k_rows_and_shows_their_means_and_modes(patients, groups, k):
    patients.execute(f"create table r as from microaggregate('patients', {k}, groups := '{groups}', {ROLES})")
    # an enum lists values that nobody may have: it is released as text
    types = "select column_name, regexp_replace(data_type, '^ENUM.*', 'VARCHAR') from duckdb_columns() where table_name = '{}' and column_name not in ('row_id', 'place') order by column_name"
    assert patients.execute(types.format("r")).fetchall() == patients.execute(types.format("patients")).fetchall()
    small = patients.execute(f"""select count(*) from (select count(*) as n from r
        group by born, pay, age, kind, ward) where n < {k}""").fetchone()
    assert small == (0,)
    if k == 1:
        return
    classes = patients.execute("""
        select r.born, r.pay, r.age, r.kind, r.ward, list(p.born), list(p.pay), list(p.age), list(p.kind), list(p.ward)
        from r join patients p on r.row_id = p.place group by r.born, r.pay, r.age, r.kind, r.ward
    """).fetchall()
    for born, pay, age, kind, ward, *lists in classes:
        days = [d.toordinal() for d in lists[0] if d is not None]
        assert (born is None) == (not days) and (not days or abs(born.toordinal() - np.mean(days)) <= 0.5 + 1e-9)
        assert abs(pay - sum(lists[1]) / len(lists[1])) <= Decimal("0.005")
        finite = [a for a in lists[2] if np.isfinite(a)]
        assert age == pytest.approx(np.mean(finite))
        for shown, values in ((kind, lists[3]), (ward, lists[4])):
            assert values.count(shown) == max(values.count(v) for v in values)
    passed = patients.execute("""select count(*) from r
        join patients p on r.row_id = p.place and r.note = p.note and r.disease = p.disease""").fetchone()
    assert passed == (300,)
    loss = patients.execute(f"""select iloss from information_loss('patients', 'r', {ROLES.split(", keep")[0]}, hierarchies := {{'ward':
        'wards'}}) where attribute = '(all)'""").fetchone()
    assert loss is not None and 0 < loss[0] < 1


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 40), k=st.integers(1, 6))
def test_mdav_is_the_algorithm_of_the_paper(seed, rows, k):
    rng = np.random.default_rng(seed)
    attributes = [ordered(rng.integers(0, 1000, rows)), nominal(rng.integers(0, 3, rows).tolist())]
    if rows < k:
        return
    expected = mdav(matrix(features_of(attributes), [a.codes for a in attributes]), k)
    assert mdav_groups("mdav", attributes, k).tolist() == expected


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 200), reach=st.integers(0, 60))
def test_ranks_never_differ_by_more_than_the_reach(seed, rows, reach):
    rng = np.random.default_rng(seed)
    by_rank = rng.permutation(rows)
    source = swapped_within(by_rank, reach, rng)
    rank = np.argsort(by_rank)
    assert (source[source] == np.arange(rows)).all()
    assert np.abs(rank[source] - rank).max() <= reach
    stayed = np.flatnonzero(source[by_rank] == by_rank)
    # whoever stays had nobody left within reach
    assert (np.diff(stayed) > reach).all()


def test_partners_are_drawn_evenly():
    rng = np.random.default_rng(1)
    first = [int(swapped_within(np.arange(9), 3, rng)[0]) for _ in range(3000)]
    counts = np.bincount(first, minlength=4)
    assert counts[0] == 0 and counts[4:].sum() == 0
    assert (np.abs(counts[1:4] - 1000) < 4 * np.sqrt(1000 * 2 / 3)).all()


@pytest.mark.parametrize("p", [5, 100])
def test_rank_swapping_keeps_histograms_and_rows(patients, p):
    patients.execute(f"create table r as from rank_swap('patients', {p}, seed := 1, {ROLES})")
    for name in ("born", "pay", "age", "kind", "ward"):
        values = f"select {name}::varchar from {{}} order by all"
        assert patients.execute(values.format("r")).fetchall() == patients.execute(values.format("patients")).fetchall()
    assert patients.execute("""select count(*) from r
        join patients p on r.row_id = p.place and r.note = p.note and r.disease = p.disease""").fetchone() == (300,)
    # values travel at most p percent of the ranks, ties apart
    far = patients.execute(f"""
        with ranks as (select pay, min(n) as low, max(n) as high
                       from (select pay, row_number() over (order by pay) as n from patients) group by pay)
        select count(*) from r join patients p on r.row_id = p.place
        join ranks a on a.pay = r.pay join ranks b on b.pay = p.pay
        where greatest(a.low - b.high, b.low - a.high) > {300 * p / 100}
    """).fetchone()
    assert far == (0,)


def test_what_makes_no_sense_is_refused(patients):
    for call, said in (
        ("microaggregate('patients', 301, qi := 'pay')", "largest k this table can meet is 300"),
        ("microaggregate('patients', 301, qi := 'pay', groups := 'mdav')", "largest k this table can meet is 300"),
    ):
        with pytest.raises(duckdb.Error, match=said):
            patients.execute(f"from {call}")
