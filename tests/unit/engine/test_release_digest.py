"""The digest of a release changes with every cell, row and column, and with nothing else."""

from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.engine.records import release_digest as engine_digest
from duckdb_anon.engine.records.release_digest import holds_rows_of, release_digest, row_checksum

TEXTS = st.none() | st.text(alphabet="a'\",:()[]{}=\\-0 1Nul\x00é", max_size=4)
NUMBERS = st.none() | st.integers(-3, 12)
ROWS = st.lists(
    st.tuples(
        NUMBERS,
        TEXTS,
        TEXTS,
        st.none() | st.lists(TEXTS, max_size=3),
        st.none() | st.tuples(NUMBERS, NUMBERS),
        st.none() | st.dictionaries(st.text(alphabet="ab'\",", max_size=2), st.integers(1, 3), max_size=2),
        st.none() | st.floats(allow_nan=False, width=64),
    ),
    min_size=1,
    max_size=6,
)
COLUMNS = """n integer, s varchar, t varchar, l varchar[], b struct(lower integer, upper integer), m map(varchar, bigint),
    x double"""
EVERY_TYPE = """
    select i::utinyint as a, (i / 3)::decimal(9, 2) as b, ['x', 'y'][1 + i % 2]::enum('x', 'y') as c,
      ('2020-01-01 00:00:0' || i)::timestamp_s as d, ('2020-01-01 00:00:00.12' || i)::timestamp_ms as e,
      ('2020-01-01 00:00:00.12345678' || i)::timestamp_ns as f, ('2020-01-01 00:00:0' || i || '+02')::timestamptz as g,
      ('10:00:0' || i)::time as h, to_months(i::integer) as k, i::varchar::blob as o, md5(i::varchar)::uuid as p,
      [i, null, 2]::int[3] as q, ['a, b', null, 'NULL', '''', '"'] as r, map {'a': i} as s,
      {'lower': i, 'upper': 2} as t, ('{"a": ' || i || '}')::json as u, 'nan'::double as v, -'nan'::double as w,
      ['x', 'y']::enum('x', 'y')[] as x, i > 1 as y, (1e16 * i)::float as z, 'x' collate nocase as aa,
      date 'infinity' as ab, [{'a': ['x', null], 'b': {'c': i * 1.5::double}}] as ac, map {['a']: {'x': '1'}} as ad,
      'infinity'::timestamptz as ae, {'lower': ('2020-01-01 00:00:0' || i || '+02')::timestamptz} as af
    from range(4) as r(i)"""
ON_EVERY_VERSION = "1ec83edda3c6c899f97c289f1a7b2c17"


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        yield connection


def table(con: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], columns: str = COLUMNS) -> str:
    con.execute(f"create or replace table t ({columns})")
    for row in rows:
        box = None if row[4] is None else dict(zip(("lower", "upper"), row[4], strict=True))
        counts = None if row[5] is None else [list(row[5]), list(row[5].values())]
        keys, values = (None, None) if counts is None else counts
        counted = "map(?::varchar[], ?::bigint[])" if counts is not None else "if(? is null and ? is null, null, null)"
        con.execute(f"insert into t values (?, ?, ?, ?, ?, {counted}, ?)", [*row[:4], box, keys, values, row[6]])
    return release_digest(con, "t")


@given(ROWS, st.randoms())
def test_the_order_of_rows_does_not_matter(con, rows, source):
    digest, checksum = table(con, rows), row_checksum(con, "t")
    source.shuffle(rows)
    assert table(con, rows) == digest
    assert row_checksum(con, "t") == checksum


@given(ROWS, st.data())
def test_any_other_cell_or_number_of_rows_changes_it(con, rows, data):
    digest, checksum = table(con, rows), row_checksum(con, "t")
    row = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(0, 6))
    other = data.draw(ROWS)[0][column]
    changed = [*rows[:row], (*rows[row][:column], other, *rows[row][column + 1 :]), *rows[row + 1 :]]
    for more in (changed, [*rows, rows[row]], [*rows[:row], *rows[row + 1 :]]):
        same = more is changed and repr(other) == repr(rows[row][column])
        assert (table(con, more) == digest) == same
        assert holds_rows_of(con, "t", digest, checksum) == same


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_texts_do_not_run_into_each_other(con, a, b, c, d):
    one, other = (_pair(con, pair) for pair in ((a, b), (c, d)))
    assert (one == other) == ((a, b) == (c, d))


def _pair(con: duckdb.DuckDBPyConnection, pair: tuple[str | None, str | None]) -> str:
    con.execute(
        "create or replace table pairs as select ?::varchar as s, ?::varchar as t, [?, ?]::varchar[] as l",
        [*pair, *pair],
    )
    return release_digest(con, "pairs")


@pytest.mark.parametrize(
    "change",
    [
        "alter table t rename column n to k", "alter table t rename column n to N",
        "alter table t alter column n type bigint", "alter table t add column more integer",
        "alter table t drop column x", "create or replace table t as select s, n, t, l, b, m, x from t",
        "create or replace table t as from t union all from t", "delete from t",
    ],
)  # fmt: skip
def test_other_columns_change_it(con, change):
    digest, checksum = table(con, [(1, "a", None, ["x"], (1, 2), {"a": 1}, 0.5)]), row_checksum(con, "t")
    con.execute(change)
    assert release_digest(con, "t") != digest
    assert row_checksum(con, "t") != checksum


def test_it_is_the_same_in_parquet_in_any_time_zone_and_in_every_version(con, tmp_path):
    """The figure is that of DuckDB 1.5.5 and 2.0.1."""
    con.execute(f"create or replace table typed as {EVERY_TYPE}")
    digest = release_digest(con, "typed")
    for zone in ("Asia/Tokyo", "UTC"):
        con.execute(f"set timezone = '{zone}'")
        assert release_digest(con, "typed") == digest
    file = tmp_path / "typed.parquet"
    con.execute(f"copy typed to '{file}'")
    assert release_digest(con, f"'{file}'") == digest
    assert digest.startswith(ON_EVERY_VERSION)


def test_the_digest_decides_where_the_checksum_is_of_another_version(con):
    con.execute("create or replace table few as select i from range(10) as r(i)")
    digest = release_digest(con, "few")
    assert holds_rows_of(con, "few", digest, "10:1")
    assert not holds_rows_of(con, "few", digest[::-1], "10:1")
    con.execute("update few set i = 11 where i = 3")
    assert not holds_rows_of(con, "few", digest, "10:1")


def test_tables_of_several_blocks_of_rows_and_of_none(con):
    con.execute("create or replace table many as select i, 'v' || i % 7 as v from range(250000) as r(i)")
    con.execute("create or replace table turned as from many order by hash(i)")
    assert release_digest(con, "many") == release_digest(con, "turned")
    con.execute("update turned set v = 'v8' where i = 249999")
    assert release_digest(con, "many") != release_digest(con, "turned")
    con.execute("delete from many; create or replace table fewer (i bigint, v varchar)")
    assert release_digest(con, "many") == release_digest(con, "fewer")


@pytest.mark.parametrize("at_once", [1, 7, 40, 99, 100])
def test_hashes_that_are_sorted_range_by_range_have_the_same_digest(monkeypatch, at_once):
    con = duckdb.connect()
    con.execute("create table many as select i % 70 as n, 'text ' || i as s from range(100) r(i)")
    expected = release_digest(con, "many")
    monkeypatch.setattr(engine_digest, "_ROWS_AT_ONCE", at_once)
    assert release_digest(con, "many") == expected
    assert con.execute("select count(*) from duckdb_tables() where table_name <> 'many'").fetchall() == [(0,)]
