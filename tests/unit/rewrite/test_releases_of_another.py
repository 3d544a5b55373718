"""What a release says of another table than the one that is asked of is not certain of that one."""

import pytest

import duckdb_anon

ROLES = "qi := ['a', 'sex'], sensitive := 'ill', keep := ['v']"


@pytest.fixture(scope="module")
def con():
    with duckdb_anon.connect() as con:
        con.execute(
            "create table t as select (i % 5)::int as a, (['F', 'M'])[1 + i % 2] as sex, (i % 4)::int as v, "
            "case when i % 4 > 0 then (['flu', 'cold'])[1 + i % 2] end as ill from range(24) r(i)"
        )
        con.execute("create view part as from t where v > 1")
        duckdb_anon.release(con, "permuted", f"muco('t', 0.3, {ROLES})", independent=True)
        duckdb_anon.release(con, "of_release", f"mondrian('permuted', 2, {ROLES})", independent=True)
        duckdb_anon.release(con, "of_view", f"mondrian('part', 2, {ROLES})", independent=True)
        duckdb_anon.release(con, "of_query", f"mondrian('(from t where v > 1)', 2, {ROLES})", independent=True)
        named = "(select * replace (coalesce(ill, ''unknown'') as ill) from t)"
        duckdb_anon.release(con, "of_named", f"anatomy('{named}', 1, {ROLES})", independent=True)
        duckdb_anon.release(con, "of_t", f"mondrian('main.t', 2, {ROLES})", independent=True)
        yield con


@pytest.mark.parametrize("release", ["of_release", "of_view", "of_query", "of_named"])
def test_nothing_is_certain_of_another_table(con, release):
    query = "select sex, sum(v), count(*), count(*) filter (where ill is null) from t where a > 1 group by sex"
    for call in (
        f"relative_error(?, 't', '{release}', {ROLES})",
        f"relative_error(?, 't', '{release}', bounds := 'hard', {ROLES})",
        f"estimate(?, '{release}', original := 't', {ROLES})",
    ):
        rows = con.execute(f"select low, high, confidence, note from {call}", [query]).fetchall()
        assert {row[:3] for row in rows} == {(None, None, None)}
    assert "made of a query or of another table" in rows[0][3]


def test_a_release_is_certain_of_what_it_names(con):
    for original, release in (("t", "of_t"), ("permuted", "of_release"), ("part", "of_view")):
        rows = con.execute(
            f"select original, low, high, confidence from relative_error('select count(*) from {original}', "
            f"'{original}', '{release}', {ROLES})"
        ).fetchall()
        assert [(row[1], row[2], row[3]) for row in rows] == [(row[0], row[0], 1) for row in rows]


def test_intervals_speak_of_the_original_and_not_of_its_bins(con):
    """One value stands for each bin, so what is asked of others is off by more than the draws tell."""
    call = "rr_distort('t', p := 0.8, bins := {'V': 2}, scope := 'qi', qi := ['sex', 'v'], keep := ['a'])"
    duckdb_anon.release(con, "binned", call, independent=True)
    low_high_note = "select low, high, note from estimate(?, 'binned', original := 't')"
    of_bins = con.execute(low_high_note, ["select sex, sum(v) from t group by sex"]).fetchall()
    assert {row[:2] for row in of_bins} == {(None, None)}
    why = "no bounds: values of v were binned before they were drawn, and one stands for all of its bin"
    assert all(why in row[2] for row in of_bins)
    others = con.execute(low_high_note, ["select sex, count(*) from t group by sex"]).fetchall()
    assert all(low <= high and "no bounds" not in (note or "") for low, high, note in others)
