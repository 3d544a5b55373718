"""Distances and uncertainty coefficients of randomized releases go through the inverted channels."""

import duckdb
import numpy as np
import pytest


@pytest.fixture
def table(con):
    con.execute("""
        create table t as select i % 4 as a, i % 5 as c,
            ['x', 'y', 'z'][1 + case when i // 4 % 3 = 0 then i // 12 % 3 else i % 4 % 3 end] as b
        from range(24000) r(i);
        comment on column t.a is 'anon: quasi categorical';
        comment on column t.b is 'anon: quasi';
        comment on column t.c is 'anon: insensitive';
        create table r as from rr_distort('t', p := 0.8, seed := 3);
    """)
    return con


def coefficient(con: duckdb.DuckDBPyConnection, tbl: str) -> float:
    found = con.execute(
        f"select uncertainty_coefficient from correlation('{tbl}', qi := ['a', 'b'], categorical := ['a']) "
        "where given = 'a'"
    ).fetchall()
    return float(found[0][0])


def test_worked_distances(con):
    con.execute("""
        create table p as select v from (values ('a', 5), ('b', 3), ('c', 2)) t(v, n), range(9) r(i) where i < n;
        create table q as select v from (values ('a', 4), ('b', 4), ('c', 2)) t(v, n), range(9) r(i) where i < n;
    """)
    found = con.execute(
        "select kl, chi2, l1, l2, hellinger from distribution_distance('p', 'q', qi := ['v'], smoothing := 0)"
    ).fetchone()
    np.testing.assert_allclose(found, [0.0252672, 0.05, 0.2, 0.1414214, 0.0798514], atol=1e-7)


def test_distances_are_those_of_the_estimated_cells(table):
    cells = np.array(
        table.execute("""
            select original, estimate
            from relative_error('select a, b, c, count(*) from t group by a, b, c', 't', 'r')
        """).fetchall()
    )
    p, q = cells[:, 0] / 24000, cells[:, 1] / 24000
    found = table.execute(
        "select l1, l2 from distribution_distance('t', 'r', columns := ['a', 'b', 'c'], categorical := ['a'])"
    ).fetchone()
    np.testing.assert_allclose(found, [np.abs(p - q).sum(), np.sqrt(((p - q) ** 2).sum())], atol=1e-9)


def test_inverting_brings_back_the_correlation_that_the_released_rows_have_lost(table):
    table.execute("create table raw as select * exclude (rr) from r")
    exact, estimated, raw = (coefficient(table, name) for name in ("t", "r", "raw"))
    assert estimated == pytest.approx(exact, rel=0.1)
    assert raw < 0.6 * exact


def test_coefficients_of_adult(con, shared_data):
    con.execute(
        f"create table adult as select * from read_csv('{shared_data / 'adult.csv'}') where columns(*) is not null"
    )
    found = con.execute(
        "select given, uncertainty_coefficient "
        "from correlation('adult', qi := ['income', 'education', 'sex', 'race', 'occupation']) "
        "where response = 'occupation'"
    ).fetchall()
    expected = {"income": 0.027438, "education": 0.099042, "sex": 0.044050, "race": 0.005693}
    assert {given: pytest.approx(u, abs=1e-6) for given, u in found} == expected
