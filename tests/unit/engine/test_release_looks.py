"""A release is looked at whole once, and after that what queries read of it; it is another one once it is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine import beside, known, release_looks
from duckdb_anon.engine.release_looks import ReleaseLooks
from duckdb_anon.rewrite.query.seen_values import SeenValues

UNKNOWN = r"distinct text\(s\) of '{}' in r are not in people"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Columns whose texts were compared with others since it was emptied, and with 'as' those told by their cells."""
    compared: list[str] = []
    others, cells_of = beside.others, ReleaseLooks._cells_of

    def listening(values: SeenValues, *rest: object, **more: object) -> str:
        compared.append(values.attribute)
        return others(values, *rest, **more)  # type: ignore[arg-type]

    def of_cells(looks: ReleaseLooks, wanted: Sequence[SeenValues]) -> object:
        compared.extend(f"as {values.attribute}" for values in wanted)
        return cells_of(looks, wanted)

    for module in (beside, known):
        monkeypatch.setattr(module, "others", listening)
    monkeypatch.setattr(ReleaseLooks, "_cells_of", of_cells)
    yield compared


@pytest.fixture
def tables(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(
        "create table people as select 20 + i % 9 as age, ['F', 'M'][1 + i % 2] as sex, 'c' || i % 5 as city, "
        "['flu', 'cold', 'gout'][1 + i % 3] as ill from range(90) r(i)"
    )
    con.execute("create table r as from mondrian('people', 3, qi := ['age', 'sex', 'city'], sensitive := 'ill')")
    return con


def ask(
    con: duckdb.DuckDBPyConnection, query: str, original: str = "people", release: str = "r", more: str = ""
) -> str:
    call = f"select rewrite_query($1, $2, $3, qi := ['age', 'sex', 'city'], sensitive := 'ill'{more})"
    return str(con.execute(call, [query, original, release]).fetchall()[0][0])


OF_SEX = "select sex, count(*) from people where age > {} group by sex"


READ = (
    (OF_SEX.format(21), ["sex"]),
    ("select count(*) from people where age > 20", []),
    ("with p as (select * from people) select count(*) from p where ill = 'flu' or SEX = 'F'", ["ill", "sex"]),
    ("select a, count(*) from people as p(x, a, b, c) group by a", ["sex"]),
    ("select count(*) from (select * from people) where city = 'c1'", ["city"]),
)
"""Queries, and the columns with texts that each reads."""


def test_after_the_first_query_the_columns_that_are_read_are_compared_where_low_and_high_are_asked(
    tables: duckdb.DuckDBPyConnection, asked: list[str]
) -> None:
    ask(tables, OF_SEX.format(20))
    assert sorted(asked) == ["city", "ill", "sex"]
    for query, read in READ:
        asked.clear()
        ask(tables, query, more=", bounds := 'sure'")
        assert sorted(one for one in asked if one != "age") == read, query


def test_without_low_and_high_the_columns_that_are_read_are_compared_once_more_and_then_told_by_their_cells(
    tables: duckdb.DuckDBPyConnection, asked: list[str]
) -> None:
    ask(tables, OF_SEX.format(20))
    compared: set[str] = set()
    for query, read in READ:
        for _ in range(2):
            asked.clear()
            ask(tables, query)
            assert sorted(asked) == sorted([f"as {one}" for one in read] + [*{*read} - compared]), query
            compared |= {*read}


def test_cells_are_compared_again_where_they_are_others_than_those_that_were_compared(
    tables: duckdb.DuckDBPyConnection, asked: list[str]
) -> None:
    ask(tables, OF_SEX.format(20))
    for change, compared, refused in (
        ("from r", True, False),
        ("from r", False, False),
        ("update r set ill = 'cold' where ill = 'flu'", True, False),
        ("from r", False, False),
        ("update r set ill = 'airways' where ill = 'gout'", True, True),
        ("from r", True, True),
        ("update r set ill = 'gout' where ill = 'airways'", False, False),
        ("update r set sex = ['F']", False, False),
        ("insert into r from r limit 1", True, False),
        ("delete from r where ill = 'gout'", True, False),
        ("update people set ill = 'influenza' where ill = 'flu'", False, False),
        ("delete from r", True, False),
        ("from r", True, False),
    ):
        tables.execute(change)
        asked.clear()
        with pytest.raises(duckdb.Error, match="1 " + UNKNOWN.format("ill")) if refused else nullcontext():
            ask(tables, "select count(*) from people where age > 20 and ill = 'flu'")
        assert asked == ["as ill"] + ["ill"] * compared, change


CHANGED = {
    "replaced": "create or replace table r as from r",
    "made anew": "create table s as from r; drop table r; alter table s rename to r",
    "a column more": "alter table r add column z integer",
    "a comment": "comment on column r.age is 'the age'",
    "the comment of the table": "comment on table r is 'a release'",
    "another original": "create or replace table people as from people",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_what_was_changed_is_looked_at_whole(tables: duckdb.DuckDBPyConnection, asked: list[str], change: str) -> None:
    ask(tables, OF_SEX.format(20))
    tables.execute(change)
    asked.clear()
    ask(tables, OF_SEX.format(21))
    assert sorted(asked) == ["city", "ill", "sex"]


@pytest.mark.parametrize("bounds", ["none", "sure"])
def test_rows_that_change_later_are_looked_at_where_they_are_read(
    tables: duckdb.DuckDBPyConnection, bounds: str
) -> None:
    more = f", bounds := '{bounds}'"
    before = ask(tables, OF_SEX.format(20), more=more)
    tables.execute("update r set ill = 'airways' where ill = 'flu'")
    assert ask(tables, OF_SEX.format(20), more=more) == before
    with pytest.raises(duckdb.InvalidInputException, match="1 " + UNKNOWN.format("ill")):
        ask(tables, "select count(*) from people where ill = 'flu'", more=more)
    tables.execute("update r set sex = ['F', 'X']")
    with pytest.raises(duckdb.InvalidInputException, match="1 " + UNKNOWN.format("sex")):
        ask(tables, OF_SEX.format(20), more=more)


def test_a_release_that_was_refused_is_looked_at_whole_again(tables: duckdb.DuckDBPyConnection) -> None:
    tables.execute("update r set ill = 'airways' where ill = 'flu'")
    for _ in range(2):
        with pytest.raises(duckdb.InvalidInputException, match="1 " + UNKNOWN.format("ill")):
            ask(tables, OF_SEX.format(20))
    tables.execute("update r set ill = 'flu' where ill = 'airways'")
    assert ask(tables, OF_SEX.format(20))


def test_views_and_files_are_looked_at_whole_for_each_query(
    tables: duckdb.DuckDBPyConnection, asked: list[str], tmp_path: object
) -> None:
    tables.execute(f"create view v as from people; copy r to '{tmp_path}/r.parquet'; create view r_v as from r")
    for original, release in (("v", "r"), ("people", f"{tmp_path}/r.parquet"), ("people", "r_v"), ("v", "(from r)")):
        for bound in (20, 21):
            asked.clear()
            ask(tables, OF_SEX.format(bound).replace("people", original), original, release)
            assert sorted(asked) == ["city", "ill", "sex"]


def test_another_database_with_tables_of_the_same_numbers_is_looked_at_whole(asked: list[str]) -> None:
    for _ in range(2):
        with duckdb_anon.connect() as con:
            con.execute("create table people as select 1 as age, 'F' as sex, 'a' as city, 'flu' as ill")
            con.execute("create table r as from people")
            asked.clear()
            ask(con, OF_SEX.format(0))
            assert sorted(asked) == ["city", "ill", "sex"]


def test_trees_that_change_are_asked_anew(con: duckdb.DuckDBPyConnection, asked: list[str]) -> None:
    con.execute("create table people as select 20 + i % 9 as age, ['flu', 'cold'][1 + i % 2] as ill from range(9) r(i)")
    con.execute("create table r as select age, 'airways' as ill from people")
    con.execute("create table tree as from (values ('flu', 'airways'), ('cold', 'airways')) as t(leaf, node)")
    call = "select rewrite_query($1, 'people', 'r', qi := ['age', 'ill'], hierarchies := {'ill': 'tree'})"
    query = ["select count(*) from people where ill = 'flu'"]
    con.execute(call, query).fetchall()
    con.execute("update tree set node = 'lungs'")
    with pytest.raises(duckdb.InvalidInputException, match=r"1 distinct text\(s\) of 'ill' in r are not in hierarchy"):
        con.execute(call, query).fetchall()
    con.execute("update tree set node = 'airways'")
    asked.clear()
    con.execute(call, ["select count(*) from people where age > 22"]).fetchall()
    assert set(asked) == {"ill"}  # whether it shows inner nodes says what its rows are


OF_ILL = "select ill, count(*) from people where age > 20 group by ill"


def test_buckets_are_looked_at_where_their_counts_are_read_and_others_than_before(
    tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    look = release_looks.bucket_of_kinds
    monkeypatch.setattr(release_looks, "bucket_of_kinds", lambda *given: (looked.append(given), look(*given))[1])
    tables.execute("create table s as from anatomy('people', 2, qi := ['age', 'sex', 'city'], sensitive := 'ill')")
    tables.execute("create view v as from s")
    for change, query, release, bounds, found in (
        ("from s", OF_SEX.format(20), "s", "none", False),
        ("from s", OF_ILL, "s", "none", True),
        ("from s", OF_ILL, "s", "none", False),
        ("from s", OF_SEX.format(20), "s", "sure", False),
        ("from s", OF_ILL, "s", "sure", True),
        ("from s", OF_ILL, "s", "none", False),
        ("update s set age = age + 1", OF_ILL, "s", "none", False),
        ("update s set bucket = bucket + 4095", OF_ILL, "s", "none", True),
        ("from s", OF_ILL, "s", "none", False),
        ("update s set ill = map {'flu': 2} where ill['flu'] = 1", OF_ILL, "s", "none", True),
        ("delete from s where bucket = (select max(bucket) from s)", OF_ILL, "s", "none", True),
        ("create or replace table s as from s", OF_ILL, "s", "none", True),
        ("from s", OF_ILL, "v", "none", True),
        ("from s", OF_ILL, "v", "none", True),
    ):
        tables.execute(change)
        looked.clear()
        ask(tables, query, release=release, more=f", bounds := '{bounds}'")
        assert len(looked) == found, (change, query, release, bounds)


@pytest.mark.parametrize(
    "change",
    (
        "bucket = bucket + 4095",
        "bucket = 1 + bucket % 7",
        "ill = map {'flu': 2} where ill['flu'] = 1",
        "ill = map_from_entries(list_reverse(map_entries(ill))) where bucket % 2 = 0",
        "ill = null where bucket = 1",
    ),
)
def test_a_release_that_changed_is_read_as_one_that_was_not_looked_at_before(
    con: duckdb.DuckDBPyConnection, change: str
) -> None:
    con.execute(
        "create table people as select 20 + hash(i) % 9 as age, ['F', 'M'][1 + i % 2] as sex, 'c' || i % 5 as city, "
        "'i' || hash(i, 1) % 3 as ill from range(900) r(i); update people set ill = 'flu' where ill = 'i0'"
    )
    con.execute("create table r as from anatomy('people', 2, qi := ['age', 'sex', 'city'], sensitive := 'ill')")
    before = ask(con, OF_ILL)
    assert "4095" in before  # by kinds of buckets
    con.execute(f"update r set {change}")
    after = ask(con, OF_ILL)
    release_looks._looked_at.clear()
    assert ask(con, OF_ILL) == after
