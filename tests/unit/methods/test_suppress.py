"""Cell suppression against exhaustive search, and what it promises, counted in SQL."""

from functools import cache
from itertools import combinations

import duckdb
import numpy as np
import pytest

import duckdb_anon
from duckdb_anon.kernels import cell_suppression
from duckdb_anon.kernels.cell_suppression import suppressed_cells

ROLES = "qi := ['age', 'gender', 'education', 'hours_per_week'], sensitive := 'salary'"
QI = f"{ROLES}, sensitive_edges := 1"
CLASSES = "select count(*) as n from {} group by age, gender, education, hours_per_week"


def least_weight(rows, k, weights):
    """Least weight of suppressed cells over all partitions of the rows into classes of k and more."""

    def cost(members):
        columns = zip(*(rows[i] for i in members), strict=True)
        return len(members) * sum(w for w, values in zip(weights, columns, strict=True) if len(set(values)) > 1)

    @cache
    def best(left):
        if not left:
            return 0.0
        first, others = left[0], left[1:]
        found = float("inf")
        # a class of 2k records is never cheaper than two of k
        for size in range(k - 1, min(2 * k - 2, len(others)) + 1):
            for more in combinations(others, size):
                rest = tuple(i for i in others if i not in more)
                if not 0 < len(rest) < k:
                    found = min(found, cost((first, *more)) + best(rest))
        return found

    return best(tuple(range(len(rows))))


def tables():
    rng = np.random.default_rng(7)
    for _ in range(12):
        columns, k, values = rng.integers(2, 5), int(rng.integers(2, 5)), rng.integers(2, 5)
        yield rng.integers(0, values, (12, columns)), k, rng.integers(1, 4, columns).tolist()


@pytest.mark.parametrize("exact", [True, False])
def test_weight_of_suppressed_cells_against_all_partitions(monkeypatch, exact):
    if not exact:
        monkeypatch.setattr(cell_suppression, "_EXACT", 0)
    ratios = []
    for rows, k, weights in tables():
        gone = suppressed_cells(list(rows.T), weights, k, True, np.random.default_rng(0))
        shown = np.where(gone, -1, rows)
        assert np.unique(shown, axis=0, return_counts=True)[1].min() >= k
        least = least_weight([tuple(row) for row in rows.tolist()], k, weights)
        ratios.append((gone @ weights).sum() / least if least else 1.0 + gone.sum())
    assert max(ratios) == pytest.approx(1) if exact else np.mean(ratios) < 1.2


@pytest.fixture
def people(con):
    con.execute("create table people as from anon_sample('census', 600, seed := 3)")
    con.execute("update people set education = null where age = 40")
    return con


def test_k_records_are_equal_and_only_cells_are_lost(people):
    people.execute(f"create table r as from suppress('people', 5, {QI}, row_id := true, importance := {{'AGE': 9}})")
    assert people.execute(f"select min(n) >= 5 from ({CLASSES.format('r')})").fetchone() == (True,)
    changed = people.execute("""select count(*), count(r.age), count(r.hours_per_week) from r
        join (select *, row_number() over () - 1 as row_id from people) p using (row_id)
        where r.salary = p.salary and coalesce(r.age = p.age and r.gender = p.gender, true)
          and coalesce(r.education = p.education and r.hours_per_week = p.hours_per_week, true)""").fetchone()
    assert changed[0] == 600 and changed[1] > changed[2]


def test_with_wildcards_a_record_shows_what_k_records_of_the_table_share(people):
    people.execute(f"create table w as from suppress('people', 5, {QI}, missing := 'wildcard')")
    shared = """select min((select count(*) from people p where coalesce(w.age = p.age, true)
        and coalesce(w.gender = p.gender, true) and coalesce(w.hours_per_week = p.hours_per_week, true)
        and coalesce(w.education = p.education, true))) from w"""
    assert people.execute(shared).fetchone()[0] >= 5
    k = people.execute(f"from k_anonymity('w', {QI.split(', sens')[0]}, missing := 'wildcard')").fetchone()
    assert k[0] >= 5


def test_attackers_take_a_suppressed_cell_for_any_value(people):
    people.execute("update people set education = 'high school' where education is null")
    found = {}
    for missing in ("value", "wildcard"):
        people.execute(
            f"create or replace table r as from suppress('people', 5, {QI}, missing := '{missing}', row_id := true, seed := 1)"
        )
        found[missing] = people.execute(
            f"select identity from linkage_risk('people', 'r', {ROLES}, seed := 1) where attacker = 'strongest'"
        ).fetchone()[0]
    # read as values, NULLs hide nearly everybody: .03
    assert 0.08 < found["value"] <= 0.2 < found["wildcard"] + 0.05
    loss = people.execute(
        f"select ncp, changed from information_loss('people', 'r', {ROLES}) where attribute = 'age'"
    ).fetchone()
    share = people.execute("select 1 - count(age) / count(*) from r").fetchone()[0]
    assert loss == (pytest.approx(share), pytest.approx(share))


@pytest.mark.parametrize(
    "arguments, names",
    [
        ("5, importance := {'agee': 5}", "age"),
        ("5, importance := {'age': 0}", "age"),
        ("601", "601"),
        ("5, missing := 'any'", "wildcard"),
    ],
)
def test_wrong_arguments_are_named(people, arguments, names):
    with pytest.raises(duckdb.Error, match=names):
        people.execute(f"from suppress('people', {arguments}, {QI})").fetchall()


@pytest.mark.parametrize("engine", ["closed", "imputed"])
def test_a_suppressed_cell_is_read_as_any_value_of_its_column_in_answers(engine):
    con = duckdb_anon.connect()
    con.execute("""create table p as select (hash(i) % 40)::int as age, ['F', 'M', 'X'][1 + (hash(i * 3) % 3)::int] as sex,
        case when i % 10 > 0 then (hash(i * 7) % 5)::int end as grade, i % 3 as dis from range(900) t(i)""")
    roles = "qi := ['age', 'sex', 'grade'], sensitive := 'dis'"
    con.execute(f"create table s as from suppress('p', 4, {roles}, importance := {{'age': 3}}, seed := 1)")
    left = con.execute("select count(*) filter (grade is null), count(*) filter (sex = 'M') from s").fetchone()
    assert left[0] > 250 and left[1] < 150
    for query, tolerance in (("age < 20", 0.03), ("sex = 'M'", 0.15), ("grade is null", 0.05), ("grade = 2", 0.15)):
        ((found, truth),) = con.execute(
            f"select estimate, original from relative_error($$select count(*) from p where {query}$$, 'p', 's', {roles}, "
            f"engine := '{engine}')"
        ).fetchall()
        assert abs(found - truth) <= tolerance * truth, query
    (total,) = con.execute(
        f"select sum(estimate) from relative_error('select sex, count(*) from p group by sex', 'p', 's', {roles})"
    ).fetchone()
    assert total == pytest.approx(900, rel=0.01)


def test_an_attacker_reads_a_suppressed_cell_as_any_value_and_a_null_of_the_table_as_one():
    con = duckdb_anon.connect()
    con.execute(
        "create table p as from (values (1, 'a', 'x'), (1, 'b', 'x'), (2, null, 'y'), (2, null, 'y')) t(q, r, s)"
    )
    roles = "qi := ['q', 'r'], sensitive := 's'"
    con.execute(f"create table s as from suppress('p', 2, {roles}, row_id := true, seed := 1)")
    assert con.execute("select distinct suppressed_cells from s").fetchall() == [({"q": 0, "r": 2},)]
    # both a and b fit both rows of q = 1
    assert con.execute(f"select k from k_map('s', 'p', {roles.split(', sens')[0]})").fetchall() == [(2,)]


def test_a_suppressed_cell_is_at_the_root_of_its_hierarchy():
    con = duckdb_anon.connect()
    con.execute(
        "create table towns as from (values ('a', 'n', '*'), ('b', 'n', '*'), ('c', 's', '*')) t(leaf, part, top)"
    )
    con.execute(
        "create table p as select i % 7 as q, ['a', 'b', 'c'][1 + i % 8 % 3] as town, i % 2 as s from range(60) t(i)"
    )
    roles = "qi := ['q', 'town'], sensitive := 's', hierarchies := {'town': 'towns'}"
    con.execute(
        f"create table r as from suppress('p', 4, {roles}, importance := {{'q': 9}}, row_id := true, seed := 1)"
    )
    (suppressed,) = con.execute("select count(*) filter (town is null) / 60 from r").fetchone()
    assert suppressed > 0.2
    for measure, column in (("distortion_ratio", "distortion_ratio"), ("information_loss", "ncp")):
        call = f"{measure}('p', 'r', {roles})"
        assert con.execute(f"select {column} from {call} where attribute = 'town'").fetchone() == pytest.approx(
            (suppressed,)
        )
    (drawn,) = con.execute(
        f"select count(*) filter (town in ('a', 'b', 'c')) from impute('r', 1, original := 'p', {roles}, seed := 1)"
    ).fetchone()
    assert drawn == 60


def test_a_column_of_which_each_value_is_suppressed_is_refused_and_others_are_answered():
    con = duckdb_anon.connect()
    con.execute("create table p as select i % 3 as q, 'x' || i as r, i % 2 as s from range(30) t(i)")
    roles = "qi := ['q', 'r'], sensitive := 's'"
    con.execute(f"create table r as from suppress('p', 4, {roles}, importance := {{'q': 9}}, seed := 1)")
    call = f"select estimate from relative_error($1, 'p', 'r', {roles}, engine := $2)"
    for engine in ("closed", "auto"):
        assert con.execute(call, ["select count(*) from p where q = 1", engine]).fetchone() == (10,)
    for engine in ("closed", "auto", "imputed"):
        with pytest.raises(duckdb.Error, match="suppressed"):
            con.execute(call, ["select count(*) from p where r = 'x1'", engine]).fetchall()
