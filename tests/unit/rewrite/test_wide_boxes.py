"""Boxes of more values than can be listed: moments are told by their ends, what needs a list is refused by name."""

import duckdb
import pytest

import duckdb_anon


@pytest.fixture(scope="module")
def con():
    con = duckdb_anon.connect()
    con.execute("select setseed(0.3)")
    con.execute(
        "create table people as select (random() * 5e9)::bigint as w, (random() * 1e7)::int as i, random() * 1e6 as x, "
        "(random() * 90)::int as a, 'xyz'[1 + (random() * 2)::int] as s from range(3000)"
    )
    duckdb_anon.release(con, "r", "mondrian('people', 5, qi := ['w', 'i', 'x'], sensitive := 's', keep := ['a'])")
    yield con
    con.close()


@pytest.mark.parametrize("spread", ["learnt", "uniform"])
@pytest.mark.parametrize("moment", ["stddev(w)", "var_pop(i)", "stddev(x)", "stddev(2 * i - 7)"])
def test_moments_of_wide_boxes_are_near(con, moment, spread):
    ((truth,),) = con.execute(f"select {moment} from people").fetchall()
    statement = f"select estimate from estimate('select {moment} from people', 'r', spread := '{spread}')"
    ((found,),) = con.execute(statement).fetchall()
    assert found == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("spread", ["learnt", "uniform"])
def test_listed_values_have_the_shares_of_segments(con, spread):
    """`a % 7` lists every value of an interval, and `a in (...)` cuts it into segments."""
    con.execute("create or replace table narrow as from mondrian('people', 5, qi := ['a', 'x'], sensitive := 's')")
    values = ", ".join(str(value) for value in range(3, 91, 7))
    listed, segments = (
        con.execute(
            f"select estimate from estimate('select count(*) from people where {condition}', 'narrow', "
            f"original := 'people', spread := '{spread}')"
        ).fetchall()
        for condition in ("a % 7 = 3", f"a in ({values})")
    )
    assert listed[0][0] == pytest.approx(segments[0][0])


@pytest.fixture(scope="module")
def three(con):
    """Ten boxes with some 500 values of each of three columns, so 125,000,000 combinations each."""
    con.execute(
        "create table cubes as select (random() * 999)::int as a, (random() * 999)::int as b, (random() * 999)::int as c, "
        "'xyz'[1 + (random() * 2)::int] as s from range(100)"
    )
    duckdb_anon.release(con, "cubed", "mondrian('cubes', 10, qi := ['a', 'b', 'c'], sensitive := 's')")
    return con


LISTED = "select a % 2 as x, b % 2 as y, {} % 2 as z, {} from cubes group by all"


def test_more_combinations_than_memory_holds_are_imputed(three):
    query = LISTED.format("c", "count(*) as n")
    rows = three.execute("select low, method, note from estimate(?, 'cubed')", [query]).fetchall()
    assert {row[:2] for row in rows} == {(None, "imputed")}
    assert all("combinations of values of a, b, c" in row[2] and "no bounds" in row[2] for row in rows)
    with pytest.raises(duckdb.Error, match=r"combinations of values of a, b, c, and at most 10,000,000 are gone"):
        three.execute("from estimate(?, 'cubed', engine := 'closed')", [query])


def test_bounds_that_repeat_combinations_for_each_record_have_a_limit(three):
    """500 x 500 values of ten boxes fit, but not once for each of ten records."""
    for measure, bounded in (("count(*)", True), ("median(c)", False)):
        query = LISTED.format("7", measure)
        rows = three.execute("select low, note from estimate(?, 'cubed', bounds := 'hard')", [query]).fetchall()
        assert all((low is not None) == bounded for low, _ in rows)
        assert all(("combinations of values" in note) != bounded for _, note in rows)
