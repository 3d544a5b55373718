"""NIST's measures: against plain loops on small tables, against other programs, and at their ends."""

import duckdb
import numpy as np
import pytest
from scipy import stats

from tests.reference import nist as reference
from tests.reference import sdnist

COLUMNS = ("a", "g", "s")


@pytest.fixture
def pair(con):
    """An original and a release in which a third of the values were moved, with NULLs."""
    con.execute(
        "create table o as select (hash(i) % 12)::integer as a, if(hash(i, 1) % 9 = 0, null, 'g' || hash(i, 2) % 3) as g, "
        "'s' || hash(i, 3) % 4 as s from range(90) t(i)"
    )
    con.execute(
        "create table r as select if(hash(a, rowid) % 3 = 0, (a + 1) % 12, a) as a, g, "
        "if(hash(s, rowid) % 3 = 0, 's' || (right(s, 1)::int + 1) % 4, s) as s from o where hash(rowid, 5) % 10 > 0"
    )
    for column, role in zip(COLUMNS, ("quasi", "quasi", "sensitive"), strict=True):
        con.execute(f"comment on column o.{column} is 'anon: {role}'")
    return con


def rows(con: duckdb.DuckDBPyConnection, table: str, where: str = "true") -> list[tuple[object, ...]]:
    return con.execute(f"select a, g, s from {table} where {where}").fetchall()


def test_k_marginal_is_the_mean_over_all_sets(pair):
    found = pair.execute("select k, marginals, score, worst, worst_score from k_marginal('o', 'r')").fetchall()
    for (k, marginals, score, worst, worst_score), order in zip(found, (2, 3), strict=True):
        scores = reference.k_marginal(rows(pair, "o"), rows(pair, "r"), order)
        assert (k, marginals) == (order, len(scores))
        assert score == pytest.approx(sum(scores.values()) / len(scores))
        assert worst_score == pytest.approx(min(scores.values()))
        assert scores[tuple(COLUMNS.index(name) for name in worst.split(", "))] == pytest.approx(worst_score)


@pytest.mark.parametrize("source", sdnist.ORIGINALS)
def test_k_marginal_is_what_sdnist_says(con, source, request):
    if source == "census":
        path = request.getfixturevalue("shared_data") / "census.csv"
        con.execute(f"create table census as from read_csv('{path}')")
    con.execute(f"create table o as from {sdnist.ORIGINALS[source]}")
    for name, recipe in sdnist.RELEASES.items():
        con.execute(f"create or replace table r as {recipe.format(o='o', rows=sdnist.ROWS[source])}")
        call = "k_marginal('o', 'r', columns := ['a', 'b', 'c', 'd'], bins := 1000)"
        found = [score for (score,) in con.execute(f"select score from {call} order by k").fetchall()]
        assert found == pytest.approx(sdnist.SCORES[source, name], abs=1e-9), name


def test_each_subgroup_is_measured_by_itself(pair):
    found = pair.execute(
        "select subgroup, score, original_rows from k_marginal('o', 'r', subgroup := 'g') where k = 2"
    ).fetchall()
    assert [row[0] for row in found] == ["(all)", "g = g0", "g = g1", "g = g2", "g = NULL"]
    for subgroup, score, count in found[1:]:
        where = "g is null" if "NULL" in subgroup else f"g = '{subgroup[-2:]}'"
        ours, theirs = ([(row[0], row[2]) for row in rows(pair, table, where)] for table in ("o", "r"))
        assert count == len(ours)
        assert score == pytest.approx(reference.k_marginal(ours, theirs, 2)[0, 1])


def test_numbers_are_cut_at_the_quantiles_of_the_original(con):
    con.execute("create table o as select i as x, i // 100 as y from range(400) t(i)")
    con.execute("create table r as select i + 0.25 as x, i // 100 as y from range(400) t(i)")
    call = "k_marginal('o', 'r', columns := ['x', 'y'], bins := {})"
    fine, coarse = (con.execute(f"select score from {call.format(b)}").fetchall()[0][0] for b in (1000, 20))
    assert fine < 5
    assert 940 < coarse < 1000  # a value at an edge moves into the next bin
    con.execute("create or replace table r as select if(i < 20, i - 1000, i) as x, i // 100 as y from range(400) t(i)")
    assert con.execute(f"select score from {call.format(20)}").fetchall()[0][0] == 1000


@pytest.mark.parametrize("release", ["r", "o", "(from o limit 1)"])
def test_matches_are_those_of_plain_loops(pair, release):
    table = f"({release})" if release.startswith("(") else release
    uniques, matched = reference.unique_exact_matches(rows(pair, "o"), rows(pair, table))
    found = pair.execute(f"select uniques, matched, share from unique_exact_matches('o', '{release}')").fetchall()[0]
    assert found == pytest.approx((uniques, matched, matched / uniques))


def test_correlations_are_those_of_scipy(con):
    con.execute("create table o as select i as x, i * i + hash(i) % 4000 as y from range(80) t(i)")
    con.execute(
        "create table r as select x, y - 10 * x as y from o union all select null, 5 union all select 3, 'nan'::double"
    )
    found = con.execute("from correlation_comparison('o', 'r', columns := ['x', 'y'])").fetchall()
    assert [row[3] for row in found] == ["pearson", "spearman"]
    for row, test in zip(found, (stats.pearsonr, stats.spearmanr), strict=True):
        for column, table in ((4, "o"), (7, "r")):
            x, y = np.array(
                con.execute(f"select x::double, y::double from {table} where isfinite(x) and isfinite(y)").fetchall()
            ).T
            result = test(x, y)
            assert row[column] == pytest.approx(result.statistic)
            if test is stats.pearsonr:
                assert row[column + 1 : column + 3] == pytest.approx(tuple(result.confidence_interval()))
        low, high = max(row[5], row[8]), min(row[6], row[9])
        assert row[11] == pytest.approx(((high - low) / (row[6] - row[5]) + (high - low) / (row[9] - row[8])) / 2)


def test_regression_is_that_of_scipy_on_one_column(con):
    con.execute("create table o as select i as x, 3 * i + hash(i) % 40 as y from range(60) t(i)")
    con.execute("create table r as select x, y + hash(y) % 9 as y from o")
    found = con.execute("from regression_comparison('o', 'r', 'y', columns := ['x'])").fetchall()
    assert [row[1] for row in found] == ["(intercept)", "x"]
    for column, table in ((2, "o"), (5, "r")):
        x, y = np.array(con.execute(f"select x::double, y::double from {table}").fetchall()).T
        fit = stats.linregress(x, y)
        half = stats.t.ppf(0.975, 58)
        assert found[1][column] == pytest.approx(fit.slope)
        assert found[1][column + 2] - found[1][column] == pytest.approx(half * fit.stderr)
        assert found[0][column] == pytest.approx(fit.intercept)
        assert found[0][column + 2] - found[0][column] == pytest.approx(half * fit.intercept_stderr)


def test_a_regression_with_names_is_least_squares_and_says_what_it_cannot_tell(con):
    con.execute(
        "create table o as select i % 7 as x, 2 * (i % 7) as twice, 'g' || i % 3 as g, i % 7 + 5 * (i % 3) + hash(i) % 10 as y "
        "from range(200) t(i)"
    )
    con.execute("create table r as from o where g <> 'g1'")
    found = {r[0]: r[1:] for r in con.execute(
        "select term, original, release, overlap from regression_comparison('o', 'r', 'y', columns := ['x', 'g'])"
    ).fetchall()}  # fmt: skip
    table = con.execute("select 1.0, x, (g = 'g1')::int, (g = 'g2')::int, y from o").fetchall()
    wanted = np.linalg.lstsq(np.array(table)[:, :4].astype(float), np.array(table)[:, 4].astype(float), rcond=None)[0]
    assert [found[t][0] for t in ("(intercept)", "x", "g = g1", "g = g2")] == pytest.approx(wanted.tolist())
    assert found["g = g1"][1:] == (None, None)
    both = con.execute("select count(original) from regression_comparison('o', 'r', 'y', columns := ['x', 'twice'])")
    assert both.fetchall() == [(2,)]


def test_propensity_tells_a_copy_from_noise(census):
    pytest.importorskip("sklearn", reason="the ml extra is not installed")
    options = "columns := ['AGE', 'SEX', 'EDUC', 'UHRSWORK', 'INCWAGE'], rows := 3000, permutations := 3, seed := 1"
    halves = "'(from census where hash(rowid) % 2 = 0)', '(from census where hash(rowid) % 2 = 1)'"
    same = census.execute(
        f"select learner, pmse, expected, ratio from propensity({halves}, qi := ['AGE'], {options})"
    ).fetchall()
    for learner, pmse, expected, ratio in same:
        assert 0 < pmse < 0.1, learner
        assert ratio == pytest.approx(pmse / expected)
        assert 0.2 < ratio < 3, learner
    shifted = "(select * replace (AGE + 15 as AGE) from census)"
    different = census.execute(
        f"select ratio from propensity('census', '{shifted}', qi := ['AGE'], {options})"
    ).fetchall()
    assert all(ratio > 3 for (ratio,) in different)


def test_what_cannot_be_compared_is_refused(pair):
    for call, message in (
        (
            "k_marginal('o', 'r', subgroup := 'gg')",
            "k_marginal: subgroup := 'gg' is no labelled column.*did you mean 'g'",
        ),
        ("k_marginal('o', 'r', columns := ['a'])", "there is only a"),
        ("regression_comparison('o', 'r', 's')", "target := 's' is no number.*there are a"),
        ("correlation_comparison('o', 'r')", "pairs of numbers or dates, and there are 1"),
        ("unique_exact_matches('o', '(from r limit 0)')", "empty"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            pair.execute(f"from {call}").fetchall()


def test_boxes_enter_through_draws_from_what_they_cover(con):
    con.execute("create table o as select i % 10 as a, i % 2 as b from range(4000) t(i)")
    con.execute("create table r as select {lower: 0, upper: 9} as a, b from o")
    score = con.execute("select score from k_marginal('o', 'r', qi := ['a', 'b'], seed := 1) where k = 2").fetchall()[
        0
    ][0]
    # a uniform column in one box is right by itself; that odd numbers go with b = 1 is lost: half of the mass
    assert score == pytest.approx(500, abs=25)
