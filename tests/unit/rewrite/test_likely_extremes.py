"""MIN and MAX against every table that could be behind the cells: near the median of their extremes, never outside."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen

QUERIES = (
    "select max(x) as m from t",
    "select min(x) as m from t where x < 3",
    "select max(x) as m from t where s = 'a'",
    "select min(x + y) as m from t where s = 'a' or x > 2",
    "select max(y) as m from t where x between 0 and 2",
    "select min(y) as m from t where s = 'b' and x >= 1",
    "select max(s) as m from t where x < 2",
    "select min(x * 2 - 1) as m from t",
    "select max(x) filter (where s <> 'b') as m from t",
)


def released(source: random.Random) -> list[tuple[tuple[int, int] | None, int, list[str]]]:
    """Four rows: a box of x (or NULL), y as it is, the values s may have."""
    rows: list[tuple[tuple[int, int] | None, int, list[str]]] = []
    for _ in range(4):
        low = source.randint(-2, 3)
        box = None if source.random() < 0.1 else (low, low + source.choice((0, 1, 3)))
        rows.append((box, source.randint(0, 4), source.choice((["a"], ["b"], ["a", "b"]))))
    return rows


def worlds(rows: list[tuple[tuple[int, int] | None, int, list[str]]]) -> Iterator[list[tuple[int | None, int, str]]]:
    """Every table the rows could stand for, all as likely."""
    choices = [
        [(x, y, s) for x in ([None] if box is None else range(box[0], box[1] + 1)) for s in may] for box, y, may in rows
    ]
    for world in itertools.product(*choices):
        yield list(world)


def database(rows: list[tuple[tuple[int, int] | None, int, list[str]]]) -> duckdb.DuckDBPyConnection:
    """The release, an empty original, and all worlds one after another."""
    con = duckdb.connect()
    con.execute("create table t (x integer, y integer, s varchar)")
    con.execute("create table r (x struct(lower integer, upper integer), y integer, s varchar[])")
    boxes = [None if box is None else {"lower": box[0], "upper": box[1]} for box, _, _ in rows]
    con.executemany("insert into r values (?, ?, ?)", [[b, y, s] for b, (_, y, s) in zip(boxes, rows, strict=True)])
    con.execute("create table worlds (w integer, x integer, y integer, s varchar)")
    listed = ", ".join(
        f"({w}, {'null' if x is None else x}, {y}, '{s}')" for w, world in enumerate(worlds(rows)) for x, y, s in world
    )
    con.execute(f"insert into worlds values {listed}")
    return con


def answers(con: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, Any, Any, list[Any]]:
    """Estimate, low, high, and the query's answer in every world that has one."""
    text = rewrite(query, seen(con, "t"), seen(con, "r"), bounds="hard")
    found, low, high = (*con.execute(text).fetchall()[0], None, None)[:3]
    asked = query.replace("as m from t", "as m, w from worlds") + " group by w"
    return found, low, high, [one for one, _ in con.execute(asked).fetchall() if one is not None]


@pytest.mark.parametrize("seed", range(4))
def test_estimates_are_near_the_median_of_all_worlds_and_bounds_are_their_ends(seed: int) -> None:
    rows = released(random.Random(seed))
    con = database(rows)
    for query in QUERIES:
        found, low, high, drawn = answers(con, query)
        assert (found is None) == (not drawn), (query, rows)
        if not drawn:
            continue
        assert (low is None or low <= min(drawn)) and (high is None or max(drawn) <= high), (query, rows)
        assert (low is None or low <= found) and (high is None or found <= high), (query, rows)
        assert sum(one <= found for one in drawn) >= 0.25 * len(drawn), (query, rows, found, sorted(drawn))
        assert sum(one >= found for one in drawn) >= 0.25 * len(drawn), (query, rows, found, sorted(drawn))


MEANS = (
    "select avg(x) as m from t",
    "select avg(x) as m from t where x < 3",
    "select avg(x) as m from t where s = 'a'",
    "select avg(y) as m from t where x between 0 and 2",
    "select avg(x) as m from t where s = 'b' and x >= 1",
    "select avg(y) as m from t where s <> 'b'",
)


@pytest.mark.parametrize("seed", range(4, 8))
def test_bounds_of_means_hold_in_all_worlds_and_some_world_has_them_where_its_rows_are_certain(seed: int) -> None:
    con = database(released(random.Random(seed)))
    for query in MEANS:
        _, low, high, drawn = answers(con, query)
        if not drawn:
            continue
        assert low is None or low <= min(drawn) + 1e-9, query
        assert high is None or max(drawn) <= high + 1e-9, query
        if "where" not in query:
            assert (low, high) == (pytest.approx(min(drawn)), pytest.approx(max(drawn)))


@pytest.mark.parametrize("k", [1, 2, 5, 30, 1000])
@pytest.mark.parametrize("end", ["min", "max"])
def test_rows_of_one_box_have_the_median_of_their_extreme(k: int, end: str) -> None:
    con = duckdb.connect()
    con.execute("create table t (x double)")
    con.execute(f"create table r as select {{lower: 10.0::double, upper: 20.0::double}} as x from range({k})")
    (found,) = con.execute(rewrite(f"select {end}(x) from t", seen(con, "t"), seen(con, "r"))).fetchall()[0]
    reach = 10 * 0.5 ** (1 / k)
    assert found == pytest.approx(10 + reach if end == "max" else 20 - reach, abs=0.12 / k)


MOMENTS = {
    "date": ("date '2020-01-01'", "date '2020-01-31'"),
    "timestamp": ("timestamp '2020-01-01'", "timestamp '2020-01-31'"),
    "timestamptz": ("timestamptz '2020-01-01 00:00:00+00'", "timestamptz '2020-01-31 00:00:00+00'"),
    "decimal(9,2)": ("1.25", "7.75"),
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_estimates_and_ends_have_the_types_of_their_columns(kind: str) -> None:
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    con.execute(f"create table t (x {kind}, g integer)")
    low, high = MOMENTS[kind]
    con.execute(
        f"create table r as select {{lower: {low}::{kind}, upper: {high}::{kind}}} as x, (i % 2)::integer as g from range(6) t(i)"
    )
    text = rewrite(
        "select g, min(x) as a, max(x) as b from t group by g", seen(con, "t"), seen(con, "r"), bounds="hard"
    )
    con.execute(f"create table found as {text}")
    kinds: dict[Any, Any] = dict(con.execute("select column_name, column_type from (describe found)").fetchall())
    assert kinds["a"] == kinds["b"] == con.execute(f"select typeof(null::{kind})").fetchall()[0][0]
    inside = "a_low <= a and a < b and b <= b_high"
    assert con.execute(f"select count(*) from found where {inside}").fetchall() == [(2,)]


def test_times_of_day_and_means_of_moments_are_refused_by_name(con: duckdb.DuckDBPyConnection) -> None:
    for kind, function in (("time", "min"), ("date", "avg"), ("timestamp", "avg")):
        con.execute(f"create or replace table t (x {kind})")
        con.execute(f"create or replace table r (x struct(lower {kind}, upper {kind}))")
        with pytest.raises(duckdb.Error, match=rf"{function}\(x\) of intervals of {kind.upper()} cannot be estimated"):
            con.execute("select rewrite_query(?, 't', 'r')", [f"select {function}(x) from t"]).fetchall()


def test_an_extreme_is_nearer_than_the_outer_end(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create table t as select (exp(sqrt(-2 * ln((hash(i) % 9973 + 1) / 9975)) * cos(6.283 * (hash(-i) % 9967) / 9967))"
        " * 1000)::integer as wage, i % 40 as age, i % 9 as s from range(4000) r(i)"
    )
    con.execute("create table r as from mondrian('t', 10, qi := ['wage', 'age'], sensitive := 's', seed := 1)")
    likely, outer = [], []
    for age in range(2, 38, 3):
        for function, end in (("min", "low"), ("max", "high")):
            query = f"select {function}(wage) from t where age between {age - 2} and {age + 2}"
            found = f"select original, estimate, {end} from relative_error(?, 't', 'r', bounds := 'hard')"
            truth, estimate, bound = con.execute(found, [query]).fetchall()[0]
            likely.append(abs(math.log(max(estimate, 1) / truth)))
            outer.append(abs(math.log(max(bound, 1) / truth)))
    assert sum(likely) < 0.75 * sum(outer), (sum(likely), sum(outer))
