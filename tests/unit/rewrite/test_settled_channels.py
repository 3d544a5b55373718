"""Numbers that only channels tell stand in a text without low and high; answers are those of the text that reads them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen

ROLES = "qi := ['age', 'sex', 'kids'], sensitive := 'ill', keep := ['pay', 'day']"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_anon.connect() as one:
        one.execute(
            "create table people as select (20 + i * 7 % 41)::integer as age, if(i % 3 = 0, 'F', 'M') as sex, "
            "(i * 5 % 4 > 1)::boolean as kids, (hash(i) % 5)::decimal(9, 2) / 4 as ill, (i % 90) * 1.5 as pay, "
            "date '2020-01-01' + (i % 60)::int as day from range(3000) r(i)"
        )
        for name, call in RELEASES.items():
            one.execute(f"create table {name} as from {call}")
        yield one


RELEASES = {
    "r": f"rr_distort('people', p := .7, scope := 'both', {ROLES}, seed := 1)",
    "r_exact": f"rr_distort('people', p := 1, scope := 'both', {ROLES}, seed := 1)",
    "r_of_days": "rr_distort('people', p := .6, scope := 'both', qi := ['age', 'day'], sensitive := 'sex', seed := 1)",
}
SETTLED = [
    "select count(*) from people where age > 40",
    "select count(*), sum(age) from people where age > 40 and ill < 1",
    "select sum(age * pay), avg(pay) from people where age between 30 and 50",
    "select count(*) from people where kids and not (age in (21, 22) or age is null)",
    "select pay > 60 as rich, avg(ill), count(*) from people where age * 2 - 1 > 60 group by 1 order by 1",
    "select sum(case when age < 30 then ill else -age end) from people where pay < 100",
]
SEVERAL = [
    "select count(*) from people where age > 40 union all select count(*) from people where ill = 1",
    "select (select count(*) from people where age < 30) as young, count(*) from people where age > 50",
]
"""Each reads the channels for itself."""
OF_DAYS = "select count(*) from people where age > 30 and day > date '2020-02-01'"
MIXED = "select count(*) from people where age > 40 and sex = 'F'"
READ = {
    "one of two is a text": MIXED,
    "texts that are made of it": "select count(*) from people where case when age > 40 then 'a' else 'B' end = 'A'",
    "a text, which a collation may compare": "select count(*) from people where sex = 'F'",
    "a setting changes what / does": "select count(*) from people where age / 2 > 20",
    "the time": "select count(*) from people where age > year(current_date) - 1990",
    "another table": "select count(*) from people where age > (select min(age) from people as one where pay < 0)",
    "a variable": "select count(*) from people where age > getvariable('limit')",
    "values are told one by one": "select age, count(*) from people group by age",
}


def text(con: duckdb.DuckDBPyConnection, query: str, release: str = "r", bounds: str = "none") -> str:
    call = f"select rewrite_query($1, 'people', $2, bounds := $3, {ROLES})"
    return str(con.execute(call, [query, release, bounds]).fetchall()[0][0])


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    found = con.execute(sql).fetchall()
    return [tuple(round(one, 6) if isinstance(one, float) else one for one in row) for row in found]


@pytest.mark.parametrize("release", ["r", "r_exact"])
@pytest.mark.parametrize("query", [*SETTLED, *SEVERAL])
def test_a_text_with_numbers_answers_as_one_that_reads_the_channels(
    con: duckdb.DuckDBPyConnection, query: str, release: str
) -> None:
    settled = text(con, query, release)
    read = rewrite(query, seen(con, "people"), seen(con, release), whole=True)
    assert ("are not those that were read" in settled) == (query not in SEVERAL) == (".domain" not in settled)
    assert ".domain" in read
    assert rows(con, settled) == rows(con, read)


def test_days_compare_the_same_everywhere(con: duckdb.DuckDBPyConnection) -> None:
    call = "select rewrite_query($1, 'people', 'r_of_days', qi := ['age', 'day'], sensitive := 'sex')"
    ((settled,),) = con.execute(call, [OF_DAYS]).fetchall()
    read = rewrite(OF_DAYS, seen(con, "people"), seen(con, "r_of_days"), whole=True)
    assert ".age.domain" in read
    assert rows(con, settled) == rows(con, read)


@pytest.mark.parametrize("query", READ.values(), ids=READ)
def test_what_may_change_is_read_when_the_query_runs(con: duckdb.DuckDBPyConnection, query: str) -> None:
    try:
        written = text(con, query)
    except duckdb.InvalidInputException as error:
        assert "rewrite_query: " in str(error)  # refused by name, and so by a text that reads channels
        return
    assert ".domain" in written


@pytest.mark.parametrize("bounds", ["sure", "likely"])
def test_a_text_with_low_and_high_reads_the_channels(con: duckdb.DuckDBPyConnection, bounds: str) -> None:
    assert ".domain" in text(con, SETTLED[0], bounds=bounds)


def test_a_part_of_a_release_is_an_error_as_before(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table part as from r where rr is null")
    written = text(con, SETTLED[0], "part")
    with pytest.raises(duckdb.InvalidInputException, match="no row here tells how rows were randomized"):
        con.execute(written)
    con.execute("create or replace table part as from r limit 0")
    assert rows(con, text(con, SETTLED[0], "part")) == [(0,)]


def test_a_text_that_is_kept_is_of_the_channels_that_were_read(con: duckdb.DuckDBPyConnection) -> None:
    """Of those of a transaction, of a temporary table, and of another release of that name: never a mixture."""
    con.execute("create or replace table kept as from r")
    written = text(con, SETTLED[1], "kept")
    expected = rows(con, written)
    changes = {
        "other draws of them": ("create or replace table kept as select * from r order by random()", False),
        "others": (f"create or replace table kept as from {RELEASES['r'].replace('.7', '.3')}", True),
        "of a temporary table": (f"create temp table kept as from {RELEASES['r'].replace('.7', '.3')}", True),
        "none": ("delete from kept where rr is not null", True),
    }
    for change, fails in changes.values():
        con.execute("begin").execute(change)
        if fails:
            with pytest.raises(duckdb.InvalidInputException, match="rewrite_query: the channels of kept are not those"):
                con.execute(written)
        else:
            assert rows(con, written) == expected
        con.execute("rollback")
        assert rows(con, written) == expected


def test_a_channel_that_tells_nothing_is_left_to_the_query(con: duckdb.DuckDBPyConnection) -> None:
    """Its entries have no finite value: every value is drawn alike whatever the true one is."""
    con.execute(
        "create or replace table blind as select * replace (case when rr is not null then struct_update(rr, age := "
        "{'p': 1 / array_length(rr.age.domain), 'domain': rr.age.domain}) end as rr) from r"
    )
    settled = text(con, SETTLED[0], "blind")
    read = rewrite(SETTLED[0], seen(con, "people"), seen(con, "blind"), whole=True)
    assert ".domain" in settled and settled.splitlines()[:-2] == read.splitlines()[:-2]


def test_releases_of_any_kind_of_name_are_read(con: duckdb.DuckDBPyConnection, tmp_path: object) -> None:
    con.execute(f"create or replace view seen as from r; copy r to '{tmp_path}/r.parquet'")
    con.execute('create schema if not exists "my own"; create or replace table "my own"."the ""r" as from r')
    expected = rows(con, text(con, SETTLED[1]))
    for release in ("seen", f"{tmp_path}/r.parquet", '"my own"."the ""r"', "(select * from r)"):
        written = text(con, SETTLED[1], release)
        assert ".domain" not in written and "are not those that were read" in written
        assert rows(con, written) == expected
