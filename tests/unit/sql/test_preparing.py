"""The macros that clean columns, read generalized texts and label hierarchies, in a stock DuckDB."""

import duckdb
import pytest

from tests.conftest import PROJECT


@pytest.fixture
def stock():
    con = duckdb.connect()
    for file in ("cleaning.sql", "generalized_text.sql", "hierarchies.sql"):
        con.execute((PROJECT / "sql" / file).read_text(encoding="utf-8"))
    return con


def value(con, sql):
    return con.execute(f"select {sql}").fetchall()[0][0]


def test_numbers_of_nines_that_lie_apart_and_words_for_nothing_are_codes(stock):
    stock.execute("create table t as select unnest([18, 25, 40, 999, 999, 99]) as x, null::varchar as v, 1 as n")
    counted = "(select x, v, sum(n) as n, _anon_may_be_code(x, v) as may_be from t group by all)"
    codes = stock.execute(f"select list_transform(_anon_codes(x, v, n, may_be), lambda c: c.x) from {counted}")
    assert codes.fetchall() == [([999],)]
    assert value(stock, "_anon_may_be_code(null, ' Unknown ')") is True
    assert value(stock, "_anon_may_be_code(null, 'nurse')") is False


def test_an_open_end_is_outside_and_an_unreadable_text_has_no_ends(stock):
    found = value(stock, "_anon_interval_of('[20, 30[', 0, 99)")
    assert found == {"lower_end": 20, "upper_end": 30, "without_lower": False, "without_upper": True}
    assert value(stock, "_anon_interval_of('young', 0, 99).lower_end") is None
    assert value(stock, "_anon_values_of('13*', ['1312', '1399', '1412'], false)") == ["1312", "1399"]


def test_joined_intervals_have_open_outer_ends_and_codes_are_masked(stock):
    edges = value(stock, "_anon_round_edges(1, 97, 8)")
    assert edges == [20, 40, 60, 80]
    labels = [value(stock, f"_anon_joined({edges}::double[], {i}, 2)") for i in range(5)]
    assert labels == ["< 40", "< 40", "[40, 80)", "[40, 80)", ">= 80"]
    assert value(stock, "_anon_prefix('12345', 2, 5)") == "12***"
    assert value(stock, "_anon_date_label(date '2021-05-03', '5 years')") == "2020..2024"
