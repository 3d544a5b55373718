"""What rewriting costs and how its text reads: parses and generations a query, length, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import duckdb
import pytest
from sqlglot.generator import Generator
from sqlglot.parser import Parser

from duckdb_anon.engine.duckdb_metadata import duckdb_name
from duckdb_anon.rewrite.comparison import comparison
from duckdb_anon.rewrite.query.spelling import KEYWORDS
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_releases import AVERAGED, COUNTED, GROUPED
from tests.reference.rewrite_tables import SELF, database, seen

MOST = 3
QUERIES = COUNTED + AVERAGED + GROUPED
MODES = ("none", "sure", "likely")
HARDER = ("identity_randomized", "identity_counts", "identity_sampled")
"""Releases without MIN and MAX."""


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return database(60)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts what enters sqlglot's parser and its generator."""
    found: Counter[str] = Counter()
    for owner, method, kind in (
        (Parser, "parse", "parses"),
        (Parser, "parse_into", "parses"),
        (Generator, "generate", "generations"),
    ):
        monkeypatch.setattr(owner, method, _counted(getattr(owner, method), found, kind))
    yield found


def _counted(function, found: Counter[str], kind: str):  # type: ignore[no-untyped-def]
    def wrapped(*args, **options):  # type: ignore[no-untyped-def]
        found[kind] += 1
        return function(*args, **options)

    return wrapped


def answerable(shape: str) -> list[str]:
    return [query for query in QUERIES if shape not in HARDER or not ("min(" in query or "max(" in query)]


@pytest.mark.parametrize("shape", [f"identity_{shape}" for shape in SELF])
def test_a_query_is_parsed_and_generated_at_most_three_times(
    con: duckdb.DuckDBPyConnection, calls: Counter[str], shape: str
) -> None:
    people, release = seen(con, "people", with_tree=True), seen(con, shape)
    for query in answerable(shape):
        for bounds in MODES:
            rewrite(query, people, release, bounds=bounds, namer=duckdb_name)  # templates are parsed once a process
            calls.clear()
            rewrite(query, people, release, bounds=bounds, namer=duckdb_name)
            assert calls["parses"] <= MOST and calls["generations"] <= MOST, (query, bounds, calls)
        comparison(query, people, release)
        calls.clear()
        comparison(query, people, release)
        assert calls["parses"] <= MOST and calls["generations"] <= MOST, (query, calls)


@pytest.mark.parametrize(("shape", "most"), [("identity_boxes", 12.8), ("identity_randomized", 28.7)])
def test_the_text_is_in_the_median_no_longer_than_so_many_queries(
    con: duckdb.DuckDBPyConnection, shape: str, most: float
) -> None:
    people, release = seen(con, "people"), seen(con, shape)
    ratios = [len(rewrite(query, people, release)) / len(query) for query in answerable(shape)]
    assert median(ratios) <= most


def test_every_word_of_duckdb_that_cannot_be_a_name_is_quoted() -> None:
    words = duckdb.sql("select upper(keyword_name) from duckdb_keywords() where keyword_category <> 'unreserved'")
    assert {word for (word,) in words.fetchall()} <= KEYWORDS


STEPS = ("eligible", "share_of_age", "shares_of_age", "cell", "low", "high", "share", "by_value", "unbounded", "r")


@pytest.mark.parametrize("taken", STEPS)
def test_columns_with_the_names_of_steps_do_not_clash(taken: str) -> None:
    con = duckdb.connect()
    con.execute(f'create table t as select i % 10 as age, i % 3 as "{taken}", i % 4 as k from range(90) as s(i)')
    con.execute(f'create table release as select {{lower: age, upper: age}} as age, ["{taken}"] as "{taken}", k from t')
    for query in (
        f'select "{taken}", count(*), sum(age) from t where age < 7 group by 1',
        f'select k, sum("{taken}"), max("{taken}") from t where age > 2 and "{taken}" < 2 group by k',
        f'select count(*) from (select "{taken}" as eligible from t where age < 5) as "{taken}" where eligible = 1',
    ):
        for bounds in ("none", "sure"):
            text = rewrite(query, seen(con, "t"), seen(con, "release"), bounds=bounds)
            width = len(con.execute(query).description)
            found = [row[:width] for row in con.execute(text).fetchall()]
            assert sorted(map(_numbers, found)) == sorted(map(_numbers, con.execute(query).fetchall())), (taken, query)


@pytest.mark.parametrize("table", STEPS)
def test_tables_with_the_names_of_steps_do_not_clash(table: str) -> None:
    con = duckdb.connect()
    con.execute(
        f'create schema s; create table t as select i % 10 as age from range(90) as s(i); create table "{table}" as select {{lower: age, upper: age}} as age from t'
    )
    release = replace(seen(con, f'"{table}"'), given=table)
    text = rewrite("select age, count(*) from t where age < 4 group by age", seen(con, "t"), release, bounds="sure")
    assert sorted(row[1] for row in con.execute(text).fetchall()) == [9] * 4


def test_a_query_reads_step_by_step() -> None:
    people = TableInfo("people", (("age", "INTEGER"), ("sex", "VARCHAR")))
    boxes = TableInfo("boxes", (("age", "STRUCT(lower INTEGER, upper INTEGER)"), ("sex", "VARCHAR[]")))
    text = rewrite("SELECT sex, count(*) FROM people WHERE age < 30 GROUP BY sex", people, boxes, bounds="sure")
    steps = [
        line.split(" AS (")[0].removeprefix("WITH ").removeprefix("), ")
        for line in text.splitlines()
        if " AS (" in line and not line.startswith(" ")
    ]
    assert steps == ["eligible", "by_value", "by_group"]


def _numbers(row: tuple[object, ...]) -> list[float]:
    return [float(str(value)) for value in row]
