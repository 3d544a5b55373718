"""The macros of sql/randomized_response.sql in a stock DuckDB."""

import duckdb
import numpy as np
import pytest

from tests.conftest import PROJECT


@pytest.fixture
def stock():
    con = duckdb.connect()
    con.execute((PROJECT / "sql" / "randomized_response.sql").read_text())
    con.execute("select setseed(0.25)").fetchall()
    return con


def test_answers_follow_the_channel(stock):
    shares = stock.execute("""
        with drawn as (
            select v, randomized_response(v, ['a', 'b', null, 'c'], 0.4) as answer
            from (select ['a', null][1 + i % 2] as v from range(80000) t(i)))
        select avg((answer is not distinct from v)::int), avg((answer is not distinct from 'b')::int) from drawn group by v
    """).fetchall()
    np.testing.assert_allclose(shares, [[0.4, 0.2]] * 2, atol=0.01)


def test_one_value_and_certain_probabilities(stock):
    assert stock.execute("""
        select randomized_response('a', ['a'], 0.0), randomized_response(1, [1, 2], 0.0),
            randomized_response(2, [1, 2], 1.0), typeof(randomized_response(date '2020-01-01', [date '2020-01-01'], 1))
    """).fetchone() == ("a", 2, 2, "DATE")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("randomized_response('d', ['a', 'b'], 0.5)", "value is not in the domain"),
        ("randomized_response(null, ['a', 'b'], 0.5)", "value is not in the domain"),
        ("randomized_response('a', ['a', 'b'], 1.5)", "p must be a probability"),
        ("randomized_response('a', ['a', 'b'], null)", "p must be a probability"),
        ("randomized_response_count(1, 2, 1, 4, 0.25)", "keeps nothing to estimate from"),
    ],
)
def test_wrong_calls_are_errors(stock, call, message):
    with pytest.raises(duckdb.Error, match=message):
        stock.execute(f"select {call}").fetchall()


def test_counts_are_estimated_with_their_error(stock):
    found = stock.execute("""
        with answers as (
            select run, randomized_response((['a', 'b', 'c', 'd'])[1 + i % 4], ['a', 'b', 'c', 'd'], 0.6) as answer
            from range(400) r(run), range(200) t(i)),
        estimates as (
            select randomized_response_count(count(*) filter (where answer in ('a', 'b')), count(*), 2, 4, 0.6) as e
            from answers group by run)
        select avg(e.estimate), stddev_pop(e.estimate), avg(e.std_error) from estimates
    """).fetchone()
    assert found[0] == pytest.approx(100, abs=4 * found[1] / 20)
    assert found[2] == pytest.approx(found[1], rel=0.12)
