"""Names in a rewritten text: of its steps, of columns and tables called the same, and words that must be quoted."""

from dataclasses import replace

import duckdb
import pytest

from duckdb_anon.rewrite.query.trees import KEYWORDS
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen

pytestmark = pytest.mark.campaign


def test_every_word_of_duckdb_that_cannot_be_a_name_is_quoted():
    names = "('unreserved', 'column_name')"
    with duckdb.connect() as con:
        words = con.execute(
            f"select upper(keyword_name) from duckdb_keywords() where keyword_category not in {names}"
        ).fetchall()
    assert {word for (word,) in words} <= KEYWORDS


STEPS = ("released", "age_values", "weighted", "bounds", "low", "r")


@pytest.mark.parametrize("taken", STEPS)
def test_columns_with_the_names_of_steps_do_not_clash(taken):
    con = duckdb.connect()
    con.execute(f'create table t as select i % 10 as age, i % 3 as "{taken}", i % 4 as k from range(90) as s(i)')
    con.execute(f'create table release as select {{lower: age, upper: age}} as age, ["{taken}"] as "{taken}", k from t')
    for query in (
        f'select "{taken}", count(*), sum(age) from t where age < 7 group by 1',
        f'select k, sum("{taken}"), avg("{taken}") from t where age > 2 and "{taken}" < 2 group by k',
        f'select count(*) from (select "{taken}" as weighted from t where age < 5) as "{taken}" where weighted = 1',
    ):
        for bounds in ("none", "sure"):
            text = rewrite(query, seen(con, "t"), seen(con, "release"), bounds=bounds)
            width = len(con.execute(query).description)
            found = [row[:width] for row in con.execute(text).fetchall()]
            assert sorted(map(_numbers, found)) == sorted(map(_numbers, con.execute(query).fetchall())), (taken, query)


@pytest.mark.parametrize("table", STEPS)
def test_tables_with_the_names_of_steps_do_not_clash(table):
    con = duckdb.connect()
    con.execute(
        f'create schema s; create table t as select i % 10 as age from range(90) as s(i); create table "{table}" as select {{lower: age, upper: age}} as age from t'
    )
    release = replace(seen(con, f'"{table}"'), given=table)
    text = rewrite("select age, count(*) from t where age < 4 group by age", seen(con, "t"), release, bounds="sure")
    assert sorted(row[1] for row in con.execute(text).fetchall()) == [9] * 4


def _numbers(row: tuple[object, ...]) -> list[float]:
    return [float(str(value)) for value in row]
