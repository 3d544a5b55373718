"""What a released cell tells of a condition by itself, against lists of its values."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pytest

from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.rewriter import rewrite

SETS: list[list[int | None] | None] = [[1], [2], [1, 2], [1, 2, 3], [None, 1], [None], None, [3, 4, None], [4]]
ENDS = {"TINYINT": 2**7, "SMALLINT": 2**15, "INTEGER": 2**31, "BIGINT": 2**63}


def estimate(con: duckdb.DuckDBPyConnection, query: str, types: dict[str, tuple[str, str]], **more: bool) -> float:
    """The estimate of a query on `t` from `r`, whose columns have these types in both."""
    original = TableInfo("t", tuple((name, of) for name, (of, _) in types.items()))
    release = TableInfo("r", tuple((name, of) for name, (_, of) in types.items()), **more)
    return float(con.execute(rewrite(query, original, release)).fetchall()[0][0])


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("v = 1", lambda x: x == 1),
        ("1 = v", lambda x: x == 1),
        ("v in (1, 4)", lambda x: x in (1, 4)),
        ("v not in (1, 4)", lambda x: x is not None and x not in (1, 4)),
        ("v is null", lambda x: x is None),
        ("v is null or v = 2", lambda x: x is None or x == 2),
        ("v <> 2 and v <> 3 and v <> 4 and v <> 5 and v <> 6", lambda x: x is not None and x not in (2, 3, 4, 5, 6)),
        ("v = 1.5", lambda x: False),
        ("not v = 1", lambda x: x is not None and x != 1),
    ],
)
def test_the_share_of_a_set_is_that_of_its_members(condition: str, asked: object) -> None:
    con = duckdb.connect()
    con.execute("create table r (v integer[])")
    con.executemany("insert into r values (?)", [[one] for one in SETS])
    assert callable(asked)
    members = [one or [None] for one in SETS]
    share = sum(sum(map(bool, map(asked, one))) / len(one) for one in members)
    query = f"select count(*) from t where {condition}"
    assert estimate(con, query, {"v": ("INTEGER", "INTEGER[]")}) == pytest.approx(share)


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("condition", ["v < 30", "v > -5", "v >= 7", "v <= -100", "v between -100 and 100", "v > 90"])
def test_boxes_as_wide_as_their_type_have_their_share(kind: str, condition: str) -> None:
    con = duckdb.connect()
    far = ENDS[kind]
    con.execute(f"create table r (v struct(lower {kind}, upper {kind}))")
    boxes = [(-far, far - 1), (-far, -far + 1), (far - 2, far - 1), (-far, 50), (-50, far - 1), (-100, 100), (6, 8)]
    con.executemany("insert into r values ({'lower': ?, 'upper': ?})", boxes)
    low, high = {
        "v < 30": (-far, 29),
        "v > -5": (-4, far),
        "v >= 7": (7, far),
        "v <= -100": (-far, -100),
        "v between -100 and 100": (-100, 100),
        "v > 90": (91, far),
    }[condition]
    share = sum(Fraction(max(min(b, high) - max(a, low) + 1, 0), b - a + 1) for a, b in boxes)
    types = {"v": (kind, f"STRUCT(lower {kind}, upper {kind})")}
    assert estimate(con, f"select count(*) from t where {condition}", types) == pytest.approx(float(share))


@pytest.mark.parametrize("kind", ["TINYINT", "INTEGER", "BIGINT"])
@pytest.mark.parametrize("least", [-2, -1, 0, 1])
def test_boxes_at_the_least_value_of_their_type_have_their_share(kind: str, least: int) -> None:
    con = duckdb.connect()
    con.execute(f"create table r (v struct(lower {kind}, upper {kind}))")
    low = -ENDS[kind]
    boxes = [(low, low), (low, low + 1), (low + 1, low + 4), (low, 7)]
    con.executemany("insert into r values ({'lower': ?, 'upper': ?})", boxes)
    types = {"v": (kind, f"STRUCT(lower {kind}, upper {kind})")}
    for condition, asked in (
        (f"v between {low + 1 + least} and 5", (low + 1 + least, 5)),
        (f"v <= {low + 2}", (low, low + 2)),
    ):
        share = sum(Fraction(max(min(b, asked[1]) - max(a, asked[0]) + 1, 0), b - a + 1) for a, b in boxes)
        assert estimate(con, f"select count(*) from t where {condition}", types) == pytest.approx(float(share))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("at", [3, 2**52 - 1, 2**52, 2**53 + 1, 2**60])
def test_narrow_boxes_of_large_numbers_have_their_share(at: int, sign: int) -> None:
    con = duckdb.connect()
    con.execute("create table r (v struct(lower bigint, upper bigint))")
    at *= sign
    boxes = [(at - 1, at + 2), (at, at + 2), (at - 3, at), (at - 2**62, at + 1), (at - 1, at + 2**62)]
    con.executemany("insert into r values ({'lower': ?, 'upper': ?})", boxes)
    types = {"v": ("BIGINT", "STRUCT(lower BIGINT, upper BIGINT)")}
    for condition, (low, high) in (
        (f"v >= {at}", (at, at + 2**63)),
        (f"v < {at + 1}", (at - 2**63, at)),
        (f"v between {at} and {at + 1}", (at, at + 1)),
    ):
        for a, b in boxes:
            con.execute("create or replace table r as select {'lower': ?::bigint, 'upper': ?::bigint} as v", [a, b])
            share = Fraction(max(min(b, high) - max(a, low) + 1, 0), b - a + 1)
            found = estimate(con, f"select sum(1.0e18) from t where {condition}", types)
            assert found == pytest.approx(1e18 * float(share), rel=1e-12)


@pytest.mark.parametrize(
    ("query", "amount", "asked"),
    [
        ("select count(*) from t where a < 3 and b = 1", lambda a, b, c: 1, lambda a, b: a is not None and a < 3 and b == 1),
        ("select count(*) from t where a is null or b <> 1", lambda a, b, c: 1, lambda a, b: a is None or b != 1),
        ("select count(a) from t where c > 3", lambda a, b, c: c is not None and c > 3, lambda a, b: a is not None),
        ("select sum(a) from t where b = 1 and a > 1", lambda a, b, c: a or 0, lambda a, b: b == 1 and (a or 0) > 1),
        ("select 2 * count(*) - count(*) filter (where a = 2 and not b = 1) from t",
         lambda a, b, c: 1 if a == 2 and b != 1 else 2, lambda a, b: True),
        ("select sum(c) from t where a is null or b <> 1", lambda a, b, c: c or 0, lambda a, b: a is None or b != 1),
        ("select sum(c) from t where a = 2 and b = 1", lambda a, b, c: c or 0, lambda a, b: a == 2 and b == 1),
        ("select sum(c) from t where b = 0 and c <> 3", lambda a, b, c: (c or 0) * (c != 3), lambda a, b: b == 0),
        ("select sum(c) filter (where c <> 3) from t where b = 0", lambda a, b, c: (c or 0) * (c != 3), lambda a, b: b == 0),
        ("select sum(c) + count(*) from t where b = 0 and a < 3", lambda a, b, c: 1 + (c or 0),
         lambda a, b: b == 0 and a is not None and a < 3),
        ("select sum(a + c) from t where b = 0", lambda a, b, c: (a or 0) + c if a is not None and c is not None else 0,
         lambda a, b: b == 0),
        ("select sum(b) from t where a in (0, 2) and c > 3", lambda a, b, c: b * (c is not None and c > 3),
         lambda a, b: a in (0, 2)),
    ],
)  # fmt: skip
def test_rows_added_up_by_combination_weigh_what_each_weighs(query: str, amount: object, asked: object) -> None:
    assert callable(amount) and callable(asked)
    rng = np.random.default_rng(5)
    domains: list[list[int | None]] = [[0, 1, 2, 3, None], [0, 1]]
    rows = [
        (domains[0][i], domains[1][j], None if k == 9 else int(k))
        for i, j, k in zip(rng.integers(0, 5, 400), rng.integers(0, 2, 400), rng.integers(0, 10, 400), strict=True)
    ]
    con = duckdb.connect()
    con.execute("create table r (a integer, b integer, c integer)")
    con.executemany("insert into r values (?, ?, ?)", rows)
    con.execute(
        "alter table r add column rr struct(a struct(p double, domain integer[]), b struct(p double, domain integer[]));"
        "update r set rr = {a: {p: 0.8, domain: [0, 1, 2, 3, null]}, b: {p: 0.6, domain: [0, 1]}}"
    )

    def entry(p: float, size: int, same: bool) -> float:
        other = (p - 1) / (p * size - 1)
        return other + (1 - size * other) * same

    expected = sum(
        entry(0.8, 5, x == a) * entry(0.6, 2, y == b) * amount(x, y, c)
        for a, b, c in rows
        for x in domains[0]
        for y in domains[1]
        if asked(x, y)
    )
    channel = "STRUCT(p DOUBLE, domain INTEGER[])"
    types = {name: ("INTEGER", "INTEGER") for name in "abc"} | {"rr": ("", f"STRUCT(a {channel}, b {channel})")}
    original = TableInfo("t", tuple((name, "INTEGER") for name in "abc"))
    release = TableInfo("r", tuple((name, of) for name, (_, of) in types.items()))
    text = rewrite(query, original, release)
    # a condition on one column is counted, but where c is summed the column tells groups apart
    assert ("count_if" in text) is not any(summed in query for summed in ("sum(c)", "sum(a + c)")), text
    assert ("GROUP BY ALL" in text) is ("sum(" in query), text
    assert con.execute(text).fetchall()[0][0] == pytest.approx(expected)


@pytest.mark.parametrize("shape", ["boxes", "randomized"])
@pytest.mark.parametrize(
    ("rows", "total"),
    [
        ([], None),
        ([(1, None), (9, 5)], None),
        ([(1, None), (1, 0), (9, 5)], 0),
        ([(1, 2), (1, None), (1, -2)], 0),
        ([(None, 3), (9, 5)], None),
        ([(1, 4), (2, None), (9, 5)], 4),
    ],
)
def test_a_sum_is_null_where_no_row_has_a_value_and_a_chance(
    shape: str, rows: list[tuple[int | None, int | None]], total: int | None
) -> None:
    con = duckdb.connect()
    con.execute("create table plain (a integer, c integer)")
    if rows:
        con.executemany("insert into plain values (?, ?)", rows)
    box, channel = "STRUCT(lower INTEGER, upper INTEGER)", "STRUCT(a STRUCT(p DOUBLE, domain INTEGER[]))"
    shown = {"boxes": "case when a is not null then {lower: a, upper: a} end as a, c, 'k' as g",
             "randomized": f"a, c, 'k' as g, {{a: {{p: 1.0, domain: [1, 2, 9, null]}}}}::{channel} as rr"}  # fmt: skip
    con.execute(f"create table r as select {shown[shape]} from plain")
    types = {"boxes": (("a", box), ("c", "INTEGER"), ("g", "VARCHAR")),
             "randomized": (("a", "INTEGER"), ("c", "INTEGER"), ("g", "VARCHAR"), ("rr", channel))}  # fmt: skip
    original, release = (
        TableInfo("t", (("a", "INTEGER"), ("c", "INTEGER"), ("g", "VARCHAR"))),
        TableInfo("r", types[shape]),
    )
    for wanted in ("sum(c)", "sum(c), count(*)", "sum(c) filter (where c < 5)"):
        text = rewrite(f"select {wanted} from t where a < 5", original, release)
        row = con.execute(text).fetchone()
        assert row is not None and row[0] == total, text
    text = rewrite("select g, sum(c) as s from t where a < 5 group by g", original, release)
    asked = any(a is not None and a < 5 for a, _ in rows)
    assert con.execute(text).fetchall() == [("k", total)] * asked


def test_a_group_whose_condition_is_null_in_all_rows_counts_none() -> None:
    con = duckdb.connect()
    channel = "struct(p double, domain integer[])"
    con.execute(f"create table r (a integer, b integer, rr struct(a {channel}, b {channel}))")
    con.execute(
        "insert into r select i % 2, case when i % 2 = 1 then i % 3 end, "
        "{a: {p: 1.0, domain: [0, 1]}, b: {p: 1.0, domain: [0, 1, 2, null]}} from range(60) t(i)"
    )
    types = {"a": ("INTEGER", "INTEGER"), "b": ("INTEGER", "INTEGER"), "rr": ("", f"STRUCT(a {channel}, b {channel})")}
    original = TableInfo("t", (("a", "INTEGER"), ("b", "INTEGER")))
    release = TableInfo("r", tuple((name, of) for name, (_, of) in types.items()))
    query = (
        "select a, count(*) filter (where b = 1) as ones, count(*) filter (where a = 0 or b = 1) as n from t group by a"
    )
    found = con.execute(f"{rewrite(query, original, release)} order by a").fetchall()
    assert found == [(0, 0, 30), (1, 10, 10)]
