"""rr_reconstruct: the SQL grid against the array algebra."""

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.randomized_response.channel import project
from tests.reference.randomized import count_variance, inverted


@pytest.fixture
def release(con):
    con.execute("""
        create table t as select ['a', 'b'][1 + i % 2] as g, i * i % 3 as "the v", ['x', 'y'][1 + i % 7 // 4] as plain
        from range(500) r(i);
        create table r as from rr_distort('t', p := {'g': 0.8, 'the v': 0.6}, qi := ['g', 'the v'],
            categorical := ['the v'], keep := ['plain'], seed := 5);
    """)
    return con


def counted(con: duckdb.DuckDBPyConnection) -> np.ndarray:
    rows = con.execute("""
        select count(r.g) from (values ('a'), ('b')) a(g) cross join (values (0), (1)) b("the v")
            cross join (values ('x'), ('y')) c(plain) left join r on r.g = a.g and r."the v" = b."the v"
            and r.plain = c.plain group by a.g, b."the v", c.plain order by a.g, b."the v", c.plain
    """).fetchall()
    return np.array(rows, dtype=float).reshape(2, 2, 2)


@pytest.mark.parametrize("population", [False, True])
def test_cells_equal_the_array_algebra(release, population):
    found = release.execute(f"""
        select estimate, std_error, projected from rr_reconstruct('r', ['g', 'the v', 'Plain'],
            population := {population}) order by g, "the v", plain
    """).fetchall()
    counts = counted(release)
    shares = [0.8, 0.6, 1.0]
    estimate = inverted(counts, shares)
    expected = [
        estimate,
        np.sqrt(count_variance(counts, shares, population)),
        project(estimate) * counts.sum(),
    ]
    np.testing.assert_allclose(np.array(found), np.stack([e.ravel() for e in expected], axis=1), atol=1e-9)


def test_cells_nobody_has_are_listed(con):
    con.execute("create table t as select i % 3 as a, i % 3 as b from range(9) r(i)")
    con.execute("create table r as from rr_distort('t', p := 0.9, qi := ['a', 'b'])")
    assert con.execute("select count(*), sum(estimate) from rr_reconstruct('r', ['a', 'b'])").fetchone() == (
        9,
        pytest.approx(9),
    )


def test_plain_columns_are_counted_exactly(release):
    found = release.execute("select plain, estimate, std_error from rr_reconstruct('r', 'plain') order by 1").fetchall()
    truth = release.execute("select plain, count(*), 0.0 from t group by 1 order by 1").fetchall()
    assert found == truth


def test_wrong_calls_say_what_is_allowed(release):
    for arguments, message in (
        ("'t', ['g']", "no column 'rr'.*make one with rr_distort"),
        ("'r', ['h']", r"no column 'h' in r.*ts columns are g, the v, plain"),
        ("'r', []", "columns is empty"),
        ("'r', ['rr']", "no column 'rr'"),
        ("'nowhere', ['g']", "nowhere"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            release.execute(f"from rr_reconstruct({arguments})")
