"""Fixture files of query and rewritten query, one file a rule, compared as trees; every rewritten query also runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import parse_one

from duckdb_anon.model.release_formats.formats import FORMATS
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_releases import BOXES, BUCKETS, PEOPLE, SLICED
from tests.reference.rewrite_tables import REGIONS, TREE, seen

FIXTURES = Path(__file__).parent / "fixtures"
OTHERS = (
    "create table rows as select age, sex, region, born, weight, disease, cost from people where age is not null",
    "create table counts as select {lower: 20::integer, upper: 29::integer} as age, disease, "
    "12.5::double as noisy_count from (values ('flu'), ('cold')) as t(disease)",
    "create table sampled as select age, disease, cost, 0.5::double as sampling_rate from boxes",
    "create table edged as select age, disease, cost, 10 as sensitive_edges from boxes",
    "create table suppressed as select *, 6 as suppressed from boxes",
    "create table retained as select age, disease, cost, 0.7::double as retention from boxes",
    "create table randomized as select age, sex, cost, {age: {p: 0.8::double, domain: [30, 40]}, "
    "sex: {p: 0.7::double, domain: ['F', 'M']}} as rr from (values (30, 'F', 1), (40, 'M', 2)) as t(age, sex, cost)",
    "create table linked as select *, row_number() over () as row_id from boxes",
    "create table persons as select age, ['north', 's1'] as region from boxes",
)


def database() -> duckdb.DuckDBPyConnection:
    """A database with an empty original and a release of each shape."""
    con = duckdb.connect()
    con.register("_people", PEOPLE.empty_table())
    con.execute("create table people as from _people")
    for statement in (BOXES, BUCKETS, SLICED, TREE, REGIONS, *OTHERS):
        con.execute(statement)
    return con


def pairs() -> list[tuple[str, str, str]]:
    """(shape, query, expected) of all fixture files; lines that start with -- are comments."""
    found = []
    for file in sorted(FIXTURES.glob("*.sql")):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("--")]
        texts = [text.strip() for text in "\n".join(lines).split(";\n") if text.strip()]
        found += [(file.stem, q, e.removesuffix(";")) for q, e in zip(texts[::2], texts[1::2], strict=True)]
    return found


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return database()


@pytest.mark.parametrize(("shape", "query", "expected"), pairs())
def test_query_is_rewritten_as_in_the_fixture(
    con: duckdb.DuckDBPyConnection, shape: str, query: str, expected: str
) -> None:
    people = replace(seen(con, "people", with_tree=True), roles={"disease": "sensitive"})
    text = rewrite(query, people, seen(con, shape), [seen(con, "regions")])
    assert parse_one(text, dialect="duckdb") == parse_one(expected, dialect="duckdb"), text


@pytest.mark.parametrize(("shape", "query", "expected"), pairs())
def test_rewritten_query_runs_and_keeps_the_column_names(
    con: duckdb.DuckDBPyConnection, shape: str, query: str, expected: str
) -> None:
    names = [d[0].lower() for d in con.execute(query).description]
    rewritten = [d[0].lower() for d in con.execute(expected).description]
    assert len(rewritten) == len(names)
    assert [r for r, n in zip(rewritten, names, strict=True) if "(" not in n] == [n for n in names if "(" not in n]


def test_every_rule_has_a_fixture() -> None:
    assert {shape for shape, _, _ in pairs()} == {shape.name for shape in FORMATS}


ALONE = ("rows", "randomized", "retained", "suppressed")
"""Without a join, or with one of a domain."""


@pytest.mark.parametrize(("shape", "query", "expected"), [p for p in pairs() if p[0] not in ALONE])
def test_no_product_of_rows_and_values_is_formed(
    con: duckdb.DuckDBPyConnection, shape: str, query: str, expected: str
) -> None:
    plan = json.loads(con.execute(f"explain (format json) {expected}").fetchall()[0][1])
    for node in nodes(plan[0]):
        kind = node["name"].strip().upper()
        assert not any(join in kind for join in ("NESTED_LOOP", "BLOCKWISE", "PIECEWISE")), expected
        assert kind != "CROSS_PRODUCT" or any(one_row(child) for child in node["children"]), expected


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every operator of a plan."""
    yield plan
    for child in plan["children"]:
        yield from nodes(child)


def one_row(plan: dict[str, Any]) -> bool:
    """Whether an operator gives one row at most: the ends of all boxes."""
    kind = plan["name"].strip().upper()
    if kind == "CROSS_PRODUCT":
        return all(one_row(child) for child in plan["children"])
    return kind == "UNGROUPED_AGGREGATE" or (kind in ("PROJECTION", "FILTER") and one_row(plan["children"][0]))


def test_bounds_on_exact_columns_are_the_answer(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT disease, sum(cost) AS total FROM people GROUP BY disease"
    text = rewrite(query, seen(con, "people"), seen(con, "boxes"), bounds="likely")
    rows = con.execute(text).fetchall()
    assert rows
    assert all(total == low == high for _, total, low, high in rows)


def test_rows_have_no_bounds_because_values_may_be_random(con: duckdb.DuckDBPyConnection) -> None:
    text = rewrite("SELECT sum(cost) AS total FROM people", seen(con, "people"), seen(con, "rows"), bounds="likely")
    assert "low" not in text
