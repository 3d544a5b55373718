"""anon_hierarchy: tables that methods take, whatever is in the column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

SOURCES = {
    "dates": ("select date '1999-12-28' + (i * 41)::integer as v from range(200) t(i)", ""),
    "timestamps": ("select timestamp '2019-12-31 23:00:00' + interval (i) hour as v from range(50) t(i)", "levels := ['day', 'year']"),
    "dates in texts": ("select (date '2020-01-01' + i::integer)::varchar as v from range(70) t(i)", "kind := 'date'"),
    "integers": ("select (i * i) % 997 - 300 as v from range(300) t(i)", "bins := 7"),
    "decimals": ("select (i / 7)::decimal(9, 3) as v from range(80) t(i)", "bins := 5"),
    "doubles": ("select 1e-7 * i as v from range(80) t(i)", ""),
    "one number": ("select 5 as v", ""),
    "quantiles": ("select i * i as v from range(100) t(i)", "kind := 'quantile', bins := 6"),
    "breaks": ("select i as v from range(100) t(i)", "breaks := [18, 40, 65]"),
    "coded ends": ("select i as v from range(100) t(i)", "bottom := 16, top := 90"),
    "codes": ("select printf('%05d', i * 7919 % 99999) as v from range(200) t(i)", "kind := 'code'"),
    "codes of all lengths": ("select (i * 37)::varchar as v from range(300) t(i)", "kind := 'code', levels := [3, 1]"),
    "rare texts": ("select 'g' || floor(sqrt(i)) as v from range(200) t(i)", "rare := 9"),
    "a mapping": ("select unnest(['a', 'b', 'c']) as v", "mapping := {'a': 'vowel', 'b': 'consonant'}"),
    "with NULL": ("select nullif(i, 3) as v from range(40) t(i)", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_a_hierarchy_is_taken_by_a_method(con: duckdb.DuckDBPyConnection, name: str) -> None:
    source, options = SOURCES[name]
    con.execute(f"create table t as {source}")
    con.execute(f"create table tree as from anon_hierarchy('t', 'v'{', ' if options else ''}{options})")
    rows = con.execute("from tree").fetchall()
    assert len({row[0] for row in rows}) == len(rows) == con.execute("select count(distinct v) from t").fetchall()[0][0]
    assert {row[-1] for row in rows} == {"*"}
    released = con.execute(
        "from mondrian('t', k := 1, qi := ['v'], hierarchies := {'v': 'tree'}, seed := 1)"
    ).fetchall()
    assert len(released) == con.execute("select count(*) from t").fetchall()[0][0]


@pytest.mark.parametrize("name", SOURCES)
def test_levels_only_join_what_is_below_them(con: duckdb.DuckDBPyConnection, name: str) -> None:
    source, options = SOURCES[name]
    con.execute(f"create table t as {source}")
    rows = con.execute(f"from anon_hierarchy('t', 'v'{', ' if options else ''}{options})").fetchall()
    for level in range(1, len(rows[0]) - 1):
        above: dict[Any, set[Any]] = {}
        for row in rows:
            above.setdefault(row[level], set()).add(row[level + 1])
        assert all(len(parents) == 1 for parents in above.values())


def one(con: duckdb.DuckDBPyConnection, value: str, options: str) -> tuple[Any, ...]:
    call = f"anon_hierarchy('(select i as v from range(100) t(i))', 'v', {options})"
    return con.execute(f"from {call} where level0 = {value}").fetchall()[0]


def test_intervals_hold_their_values_and_ends_are_open(con: duckdb.DuckDBPyConnection) -> None:
    assert one(con, "17", "breaks := [18, 40, 65]") == (17, "< 18", "< 40", "*")
    assert one(con, "18", "breaks := [18, 40, 65]") == (18, "[18, 40)", "< 40", "*")
    assert one(con, "99", "breaks := [18, 40, 65]") == (99, ">= 65", ">= 40", "*")
    assert one(con, "3", "bottom := 16, top := 90")[1] == "< 16"
    assert one(con, "95", "bottom := 16, top := 90")[1] == ">= 90"
    labels = str(
        con.execute(
            "from anon_hierarchy('(select 13 + i as v from range(75) t(i))', 'v') select * exclude level0"
        ).fetchall()
    )
    assert "13" not in labels
    assert "87" not in labels


def test_dates_climb_to_decades(con: duckdb.DuckDBPyConnection) -> None:
    call = "anon_hierarchy('(select date ''1987-05-17'' as v)', 'v')"
    assert con.execute(f"select * exclude level0 from {call}").fetchall() == [
        ("1987-05", "1987-Q2", "1987", "1985..1989", "1980..1989", "*")
    ]


def test_a_short_code_keeps_a_node_of_its_own(con: duckdb.DuckDBPyConnection) -> None:
    call = "anon_hierarchy('(select unnest([''12'', ''123'', ''13'']) as v)', 'v', kind := 'code', levels := [2, 1])"
    assert con.execute(f"from {call}").fetchall() == [
        ("12", "12*", "1**", "*"), ("123", "12*", "1**", "*"), ("13", "13*", "1**", "*"),
    ]  # fmt: skip


def test_a_file_of_arx_is_read_as_it_is(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "sex.csv"
    path.write_text("male;*\nfemale;*\n", encoding="utf-8")
    assert con.execute(f"from anon_hierarchy('{path}', kind := 'arx')").fetchall() == [("male", "*"), ("female", "*")]
    con.execute(f"create table tree as from anon_hierarchy('{path}', kind := 'arx')")
    con.execute("create table t as select unnest(['male', 'female', 'male']) as sex")
    assert len(con.execute("from mondrian('t', k := 3, qi := ['sex'], hierarchies := {'sex': 'tree'})").fetchall()) == 3


@pytest.mark.parametrize("options, message", [
    ("'v', levels := ['yaer'], kind := 'date'", "levels has 'yaer'.*did you mean 'year'"),
    ("'v', levels := ['year', 'month'], kind := 'date'", "from fine to coarse: month, year"),
    ("'v', levels := ['x'], kind := 'code'", "numbers of characters to keep"),
    ("'v', breaks := [3, 1]", "no list of rising numbers"),
    ("'w'", "there is no column 'w'"),
    ("kind := 'number'", "column_name is missing"),
    ("'v', kind := 'arx'", "reads a CSV file that ARX wrote"),
    ("'g', kind := 'number'", "is VARCHAR; kind := 'number' takes numbers"),
    ("'g', kind := 'date'", "a value is no date"),
    ("'g', mapping := {}", "mapping"),
])  # fmt: skip
def test_what_makes_no_hierarchy_is_refused(con: duckdb.DuckDBPyConnection, options: str, message: str) -> None:
    con.execute("create table t as select i as v, 'g' || i as g from range(9) t(i)")
    with pytest.raises(duckdb.Error, match=f"anon_hierarchy: .*{message}"):
        con.execute(f"from anon_hierarchy('t', {options})").fetchall()
