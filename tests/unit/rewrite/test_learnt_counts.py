"""Counts of several randomized columns: the slow reference, the rule, and what is never touched."""

import duckdb
import numpy as np
import pytest

import duckdb_anon
from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, invert
from duckdb_anon.kernels.randomized_response.joint_counts import joint_counts
from tests.reference import joint_counts as reference

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

ROLES = "qi := ['a', 'b', 'd'], sensitive := 's'"


@pytest.fixture(scope="module")
def con():
    made = duckdb_anon.connect()
    made.execute(
        "create table t as select i % 4 as a, ['x', 'y', null][1 + (i * i // 3) % 3] as b, (i // 7) % 5 as s, "
        "i % 3 as d, i % 10 as kept from range(900) as r(i)"
    )
    options = f"{ROLES}, keep := ['kept'], seed := 4"
    made.execute(f"create table noisy as from rr_distort('t', p := 0.45, {options})")
    made.execute(f"create table mild as from rr_distort('t', p := 0.97, {options})")
    return made


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("chances", [(0.9, 0.8), (0.5, 0.45), (0.6, 1.0, 0.55), (0.45, 0.4, 0.5)])
def test_joint_counts_are_those_of_whole_matrices(chances, seed):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(3, 5, len(chances))]
    cells, rows = np.unique(
        rng.integers(0, sizes, (int(rng.integers(20, 400)), len(sizes))), axis=0, return_counts=True
    )
    channels = [RetentionChannel(size, p) for size, p in zip(sizes, chances, strict=True)]
    found = joint_counts(cells, rows.astype(float), channels)
    slow = reference.joint_counts(
        {tuple(map(int, c)): int(n) for c, n in zip(cells, rows, strict=True)}, sizes, chances
    )
    assert np.allclose(found.ravel(), list(slow.values()))
    assert np.isclose(found.sum(), rows.sum())


def test_nothing_is_learnt_where_inversion_is_better():
    cells, rows = np.array([[0, 0], [1, 1]]), np.array([5.0, 5.0])
    one_randomized = [RetentionChannel(2, 0.8), RetentionChannel(2, 1.0)]
    tells_nothing = [RetentionChannel(2, 0.8), RetentionChannel(2, 0.5)]
    many_cells = [RetentionChannel(20, 0.8), RetentionChannel(20, 0.8)]
    assert all(joint_counts(cells, rows, channels) is None for channels in (one_randomized, tells_nothing, many_cells))


def test_strong_associations_are_left_as_they_were_inverted():
    channels = [RetentionChannel(3, 0.9), RetentionChannel(3, 0.9)]
    released = np.eye(3) * 30_000 + 1_000
    cells = np.array([[a, b] for a in range(3) for b in range(3)])
    found = joint_counts(cells, released.ravel(), channels)
    assert found is not None
    assert np.allclose(found, invert(released, channels), rtol=1e-3, atol=5)


QUERIES = (
    "select count(*) as m1 from t where a = 1 and b = 'x'",
    "select a as k1, count(*) as m1, count(b) as m2, sum(kept) as m3 from t where s < 3 and b is not null group by a",
    "select a as k1, b as k2, count(*) filter (where s = 2) as m1 from t group by a, b",
    "select kept as k1, count(*) as m1 from t where a = 2 and b is null group by kept",
)


@pytest.mark.parametrize(
    "query", [pytest.param(q, marks=pytest.mark.campaign if k == 1 else ()) for k, q in enumerate(QUERIES)]
)
def test_noisy_counts_are_sums_of_learnt_cells_and_the_others_inverted(con, query):
    changed = 0
    for release in ("noisy", "mild"):
        text = "select keys, measure, estimate, low, high from relative_error(?, 't', ?, spread := ?, " + ROLES + ")"
        estimated, inverted = (
            con.execute(f"{text} order by keys::varchar, measure", [query, release, spread]).fetchall()
            for spread in ("learnt", "uniform")
        )
        assert [row[:2] for row in estimated] == [row[:2] for row in inverted]
        assert np.allclose([row[3:] for row in estimated], [row[3:] for row in inverted])
        slow = _slow(con, release, query)
        for (keys, measure, estimate, _, high), (_, _, without, _, _) in zip(estimated, inverted, strict=True):
            learnt = slow.get((str(keys), measure))
            wide = learnt is not None and (high - without) / 1.959963984540054 > 0.5 * max(learnt, 1)
            assert estimate == pytest.approx(max(learnt, 0) if learnt is not None and wide else without)
            changed += estimate != pytest.approx(without)
    assert changed


WHERE_NOTHING_IS_LEARNT = {
    "more cells than rows tell": ("p := {'a': 0.6, 's': 0.6}", "many % 300 as a, many % 70 as s"),
    "a channel that hardly tells anything": ("p := {'a': 0.6, 's': 0.501}", "many % 3 as a, many // 7 % 2 as s"),
}


@pytest.mark.parametrize("case", WHERE_NOTHING_IS_LEARNT)
@pytest.mark.parametrize("query", ("", "kept as k"))
def test_counts_stay_inverted_where_nothing_is_learnt(case, query):
    """They came out as 0 beside an interval around the truth: NULL is no count of 0."""
    chances, columns = WHERE_NOTHING_IS_LEARNT[case]
    con = duckdb_anon.connect()
    con.execute(f"create table t as select {columns}, many % 3 as kept from range(1500) as r(many)")
    roles = "qi := ['a'], sensitive := 's', keep := ['kept']"
    con.execute(f"create table noisy as from rr_distort('t', {chances}, {roles}, seed := 4)")
    text = f"select {query + ', ' if query else ''}count(*) as n, count(*) filter (where a > 1) as m from t "
    text += "where a < 200 and s < 60" + (" group by k" if query else "")
    estimated, inverted = (
        con.execute(
            f"select keys, measure, estimate, low, high from relative_error(?, 't', 'noisy', spread := ?, {roles}) "
            "order by keys::varchar, measure", [text, spread],
        ).fetchall()
        for spread in ("learnt", "uniform")
    )  # fmt: skip
    assert [row[:2] for row in estimated] == [row[:2] for row in inverted]
    for row, other in zip(estimated, inverted, strict=True):
        assert row[2:] == pytest.approx(other[2:], rel=1e-9)
    assert any(estimate for _, _, estimate, _, _ in estimated)


def _slow(con: duckdb.DuckDBPyConnection, release: str, query: str) -> dict[tuple[str, str], float]:
    """The counts of a query over the reference's joint counts, in a table of one row a combination and a column n."""
    used = [node for node in ("a", "b", "s", "d", "kept") if _mentions(query, node)]
    estimated = con.execute(f"select rr from {release} where rr is not null limit 1").fetchall()[0][0]
    remaining = [x for (x,) in con.execute("select distinct kept from t").fetchall()]
    domains = [estimated[factor]["domain"] if factor in estimated else remaining for factor in used]
    chances = [estimated[factor]["p"] if factor in estimated else 1.0 for factor in used]
    rows = con.execute(f"select {', '.join(used)}, count(*) from {release} group by all").fetchall()
    cells = {tuple(d.index(x) for d, x in zip(domains, row[:-1], strict=True)): row[-1] for row in rows}
    counts = reference.joint_counts(cells, [len(d) for d in domains], chances)
    other = duckdb_anon.connect()
    types = {"a": "integer", "b": "varchar", "s": "integer", "d": "integer", "kept": "integer"}
    other.execute(f"create table t ({', '.join(f'{factor} {types[factor]}' for factor in used)}, n double)")
    filled = [[*(d[k] for d, k in zip(domains, cell, strict=True)), n] for cell, n in counts.items()]
    other.executemany(f"insert into t values ({', '.join('?' * (len(used) + 1))})", filled)
    statement = query.replace("count(*)", "sum(n)").replace("count(b)", "sum(n) filter (where b is not null)")
    found = other.execute(statement.replace("sum(kept)", "null"))
    names = [node[0] for node in found.description]
    counts_of = {}
    for row in found.fetchall():
        values = dict(zip(names, row, strict=True))
        keys = {
            k: None if v is None else str(v).lower() if v is True or v is False else str(v) for k, v in values.items()
        }
        key = str({k: v for k, v in keys.items() if k.startswith("k")})
        counts_of |= {(key, k): v for k, v in values.items() if k.startswith("m") and v is not None}
    return counts_of


def _mentions(query: str, column: str) -> bool:
    return any(word == column for word in "".join(c if c.isalnum() or c == "_" else " " for c in query).split())


def test_answers_of_a_workload_are_those_of_its_queries(con):
    rows = con.execute(
        f"select query, estimate from workload_error('t', 'noisy', n := 30, dims := 2, seed := 3, {ROLES})"
    )
    statement = rows.fetchall()
    learnt = 0
    for query, estimate in statement:
        found = {}
        for spread in ("learnt", "uniform"):
            text = f"select estimate from relative_error(?, 't', 'noisy', spread := '{spread}', {ROLES})"
            found[spread] = con.execute(text, [query]).fetchall()[0][0]
        assert estimate == pytest.approx(found["learnt"])
        learnt += found["learnt"] != pytest.approx(found["uniform"])
    assert learnt


def test_answers_never_sum_what_was_projected(con):
    """Cells cut off at 0 add up to too much; answers add up cells with their signs."""
    cells = con.execute("select b, estimate, projected from rr_reconstruct('mild', ['b', 'a'])").fetchall()
    cells += con.execute("select b, estimate, projected from rr_reconstruct('noisy', ['b', 'a', 's', 'd'])").fetchall()
    assert any(raw < 0 for _, raw, _ in cells)
    for release, columns in (("mild", "['b', 'a']"), ("noisy", "['b', 'a', 's', 'd']")):
        sums = con.execute(
            f"select b, sum(estimate), sum(projected) from rr_reconstruct('{release}', {columns}) group by b"
        ).fetchall()
        text = f"from relative_error('select b, count(*) from t group by b', 't', ?, {ROLES})"
        estimated = {
            next(iter(keys.values())): x
            for keys, x in con.execute(f"select keys, estimate {text}", [release]).fetchall()
        }
        assert {b: pytest.approx(raw) for b, raw, _ in sums} == estimated
    assert any(abs(raw - projected) > 1 for _, raw, projected in sums)
