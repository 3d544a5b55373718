"""Counts that every row of a bucket carries are unnested from it, with the estimates that buckets give."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.rewriter import rewrite

ROLES = "qi := ['age', 'sex'], sensitive := 'ill', keep := ['cost']"
QUERIES = (
    "select count(*) from t where ill = 'flu'",
    "select count(*) from t where 'flu' = ill and age < 12",
    "select sex, count(*), sum(cost), avg(cost) from t where ill in ('flu', 'it''s') and age < 20 group by sex",
    "select count(*) from t where ill is null or ill like '%o%'",
    "select count(*) from t where ill = 'none of them'",
    "select sex, count(*) from t where ill in ('none of them') group by sex",
    "select count(*) from t where not (ill = 'flu' or ill = 'acne') and sex = 'F'",
    "select count(*) from t where ill = 'flu' or sex = 'F'",
    "select ill, sex, count(*), sum(cost) from t where age < 25 group by ill, sex",
    "select ill, sex, count(*) from t group by rollup (ill, sex)",
    "select upper(ill), count(*) filter (where sex = 'M') from t group by 1 having count(*) > 1",
    "select length(ill) + cost, count(*) from t where ill <> 'cold' group by 1",
    "select sum(case when ill = 'flu' then cost else 1 end) from t",
    "select sum(length(ill)), count(ill), max(cost), min(length(ill)) from t where age > 3",
    "select count(distinct ill), median(cost) from t where ill in ('flu', 'cold')",
    "select k.label, count(*) from t join k on k.ill = t.ill where sex = 'M' group by 1",
    "select ill from t group by ill order by count(*) desc, ill",
)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb_anon.connect()
    made.execute(
        "create table t as select i % 30 as age, ['F', 'M'][1 + i % 2] as sex, "
        "['flu', 'cold', 'acne', 'it''s'][1 + (i + i // 5) % 4] as ill, "
        "case when i % 7 then i % 9 end as cost from range(243) as r(i)"
    )
    made.execute("create table k as select unnest(['flu', 'cold', 'acne']) as ill, unnest(['a', 'b', 'a']) as label")
    released(made, "r", f"anatomy('t', 2, {ROLES})")
    made.execute("create view bare as select * replace (bucket::double as bucket) from r")  # not looked at
    return made


def released(con: duckdb.DuckDBPyConnection, name: str, call: str) -> None:
    """A release that says what made it, as the comment of a table by hand does."""
    con.execute(f"create table {name} as from {call}")
    con.execute(f"comment on table {name} is 'anon: release of t by anatomy(l := 2)'")


def text_of(con: duckdb.DuckDBPyConnection, query: str, release: str) -> str:
    (text,) = con.execute(
        f"select rewrite_query(?, 't', '{release}', qi := ['age', 'sex'], sensitive := 'ill')", [query]
    ).fetchall()[0]
    return str(text)


@pytest.mark.parametrize("query", QUERIES)
def test_a_release_that_says_how_it_was_made_has_the_estimates_of_one_that_does_not(
    con: duckdb.DuckDBPyConnection, query: str
) -> None:
    known, unknown = (text_of(con, query, release) for release in ("r", "bare"))
    assert "bucket" in unknown
    ordered = "order by" in query  # by whole numbers: sums of chances would put equal ones in any order
    plain = (text if ordered else text.replace("round", "").replace("::BIGINT", "") for text in (known, unknown))
    mine, theirs = (con.execute(text).fetchall() for text in plain)
    order = (lambda rows: rows) if ordered else (lambda rows: sorted(rows, key=str))
    assert len(mine) == len(theirs)
    for a, b in zip(order(mine), order(theirs), strict=True):
        assert a == pytest.approx(b)


def test_nothing_is_grouped_by_bucket_and_rows_without_the_value_are_left_out(con: duckdb.DuckDBPyConnection) -> None:
    text = text_of(con, "select sex, count(*) from t where ill in ('flu', 'cold') group by sex", "r")
    assert "bucket" not in text and "map_contains(ill, 'flu') OR map_contains(ill, 'cold')" in text
    other = text_of(con, "select count(*) from t where ill like 'flu' or length(ill) = 4", "r")
    assert "bucket" not in other and "map_contains" not in other


@pytest.mark.parametrize(
    "more",
    [
        (("other", "MAP(VARCHAR, BIGINT)"),),
        (("sampling_rate", "DOUBLE"),),
        (("missing_rows", "BIGINT"),),
        (("sex", "VARCHAR[]"),),
    ],
)
def test_only_counts_alone_are_unnested(more: tuple[tuple[str, str], ...]) -> None:
    columns = (("age", "INTEGER"), ("sex", "VARCHAR"), ("ill", "VARCHAR"), ("other", "VARCHAR"))
    original = TableInfo("t", columns, roles={"ill": "sensitive", "other": "sensitive"})
    release = {"bucket": "BIGINT", "age": "INTEGER", "ill": "MAP(VARCHAR, BIGINT)"} | dict(more)
    known = TableInfo("r", tuple(release.items()), counted_rows=True)
    query = "select ill, count(*) from t where age < 3 group by ill"
    texts = [rewrite(query, original, one) for one in (known, replace(known, counted_rows=False))]
    if any(name in ("other", "sex", "sampling_rate") for name, _ in more):
        assert texts[0] == texts[1]
    else:
        assert "bucket" not in texts[0] and "bucket" in texts[1]


def test_constants_of_another_type_are_not_looked_up(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create or replace table n as select age, sex, cost, "
        "case ill when 'flu' then 3 when 'cold' then 5 when 'acne' then 6 else -4 end as ill from t"
    )
    released(con, "rn", f"anatomy('n', 2, {ROLES})")
    for wanted, looked_up in (("3", True), ("3.2", False), ("'3'", False), ("-4", True)):
        (text,) = con.execute(
            "select rewrite_query(?, 'n', 'rn', qi := ['age', 'sex'], sensitive := 'ill')",
            [f"select count(*) from n where ill = {wanted}"],
        ).fetchall()[0]
        truth = con.execute(f"select count(*) from n where ill = {wanted}").fetchall()
        assert ("map_contains" in text) is looked_up and con.execute(text).fetchall() == truth
