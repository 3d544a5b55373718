"""Estimates in another engine's words: what it has, and what is refused by name."""

from __future__ import annotations

import duckdb
import pytest

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.dialects import spoken


def test_errors_and_nulls_keep_their_meaning() -> None:
    sql = "select case when a is not distinct from b then error('no') end from t"
    assert spoken(sql, "spark") == "SELECT CASE WHEN a IS NOT DISTINCT FROM b THEN RAISE_ERROR('no') END FROM t"
    assert spoken(sql, "duckdb") == sql


def test_unknown_functions_are_refused_by_name() -> None:
    with pytest.raises(RewriteError, match=r"spark has no words for '?list_zip_with"):
        spoken("select list_zip_with(a, b) from t", "spark")


def test_several_lists_side_by_side_are_refused() -> None:
    assert "EXPLODE" in spoken("select unnest(a) as x from t", "spark")
    with pytest.raises(RewriteError, match="spark unnests one list a SELECT"):
        spoken("select unnest(a) as x, unnest(b) as y from t", "spark")


def test_the_time_is_told_in_the_others_words() -> None:
    assert spoken("select now() as a, today() as b", "spark") == "SELECT CURRENT_TIMESTAMP() AS a, CURRENT_DATE AS b"


def test_rewrite_query_takes_the_dialect(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table people as select i % 40 as age, i % 7 as ward from range(400) r(i)")
    con.execute("create table boxes as from mondrian('people', 4, qi := ['age'])")
    call = "select rewrite_query('SELECT count(*) FROM people WHERE age < 9', 'people', 'boxes', qi := ['age'], dialect := {})"
    assert "`count_star()`" in con.execute(call.format("'spark'")).fetchall()[0][0]
    assert '"count_star()"' in con.execute(call.format("'duckdb'")).fetchall()[0][0]
    with pytest.raises(duckdb.Error, match="dialect := 'sparc' is none of"):
        con.execute(call.format("'sparc'"))
