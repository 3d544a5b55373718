"""Estimates in another engine's words: what it has, and what is refused by name."""

import duckdb
import pytest
import sqlglot

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.dialects import spoken


def test_errors_and_nulls_keep_their_meaning():
    sql = "select case when a is not distinct from b then error('no') end from t"
    assert spoken(sql, "spark") == "SELECT CASE WHEN a IS NOT DISTINCT FROM b THEN RAISE_ERROR('no') END FROM t"
    assert spoken(sql, "duckdb") == sql


def test_unknown_functions_are_refused_by_name():
    with pytest.raises(RewriteError, match=r"spark has no words for '?list_zip_with"):
        spoken("select list_zip_with(a, b) from t", "spark")


def test_several_lists_side_by_side_are_refused():
    assert "EXPLODE" in spoken("select unnest(a) as x from t", "spark")
    with pytest.raises(RewriteError, match="spark unnests one list a SELECT"):
        spoken("select unnest(a) as x, unnest(b) as y from t", "spark")


def test_the_time_is_told_in_the_others_words():
    assert spoken("select now() as a, today() as b", "spark") == "SELECT CURRENT_TIMESTAMP() AS a, CURRENT_DATE AS b"


def test_rewrite_query_takes_the_dialect(con):
    con.execute("create table people as select i % 40 as age, i % 7 as ward from range(400) r(i)")
    con.execute("create table boxes as from mondrian('people', 4, qi := ['age'])")
    call = "select rewrite_query('SELECT count(*) FROM people WHERE age < 9', 'people', 'boxes', qi := ['age'], dialect := {})"
    assert "`count_star()`" in con.execute(call.format("'spark'")).fetchall()[0][0]
    assert '"count_star()"' in con.execute(call.format("'duckdb'")).fetchall()[0][0]
    with pytest.raises(duckdb.Error, match="dialect := 'sparc' is not one of"):
        con.execute(call.format("'sparc'"))


def test_lists_are_cast_before_they_are_unnested():
    assert spoken("select unnest(a)::int as x from t", "spark") == "SELECT EXPLODE(CAST(a AS ARRAY<INT>)) AS x FROM t"


def test_a_series_is_unnested_in_a_select_of_its_own():
    sql = "select x from t cross join range(0, 32) as points(x)"
    assert spoken(sql, "spark") == "SELECT x FROM t CROSS JOIN (SELECT EXPLODE(SEQUENCE(0, 31)) AS x) AS points"


def test_functions_take_as_many_arguments_as_there():
    sql = "select greatest(a) as g, least(a, b) as l, grouping(a, b) as n from t group by rollup (a, b), least(a, b)"
    estimated = spoken(sql, "spark")
    assert estimated.startswith("SELECT a AS g, LEAST(a, b) AS l, GROUPING_ID(a, b) AS n")


@pytest.mark.parametrize("number", [1.5, -1.7e308, float("nan"), float("inf"), float("-inf"), None])
def test_a_finite_number_lies_between_the_largest(con, number):
    estimated = spoken("select isfinite(x) from t", "spark").removeprefix("SELECT ").removesuffix(" FROM t")
    assert estimated.startswith("x BETWEEN")  # DuckDB too has NaN above all numbers
    sql = f"select {estimated}, isfinite(x) from (select $1::double as x)"
    ((node, other),) = con.execute(sql, [number]).fetchall()
    assert node == other


@pytest.mark.parametrize("window", ["row_number() over ()", "lag(a) over (partition by b)"])
def test_rows_without_an_order_are_not_numbered(window):
    with pytest.raises(RewriteError, match="spark does not number rows that have no order"):
        spoken(f"select {window} as n from t", "spark")
    assert "ROW_NUMBER" in spoken("select row_number() over (order by a) as n from t", "spark")


NESTED = (
    "with steps as (with steps as (select a from t where a > 1), more as (select a from steps) select a from more) "
    "select steps.a from steps union all (with steps as (select a + 1 as a from steps) select steps.a from steps)",
    "with a as (select 1 as x), b as (with a as (select x + 1 as x from a) select * from a) "
    "select a.x, b.x as y from a, b",
    "with t as (select a * 2 as a from t as u where a < 3) select t.a from t",
)


@pytest.mark.parametrize("sql", NESTED)
def test_steps_inside_of_steps_keep_what_they_say(con, sql):
    """sqlglot brings them to one WITH, where two of a name are an error, or the wrong one is read."""
    con.execute("create table t as from range(5) r(a)")
    wanted = con.execute(sql).fetchall()
    estimated = spoken(sql, "spark")
    names = [cte.alias.lower() for cte in sqlglot.parse_one(estimated, dialect="spark").find_all(sqlglot.exp.CTE)]
    assert len(set(names)) == len(names) and "t" not in names
    assert con.execute(sqlglot.transpile(estimated, read="spark", write="duckdb")[0]).fetchall() == wanted
