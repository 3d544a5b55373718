"""What a released cell tells of a condition by itself, against lists of its values."""

from fractions import Fraction

import duckdb
import pytest

from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.rewriter import rewrite

SETS: list[list[int | None] | None] = [[1], [2], [1, 2], [1, 2, 3], [None, 1], [None], None, [3, 4, None], [4]]
ENDS = {"TINYINT": 2**7, "BIGINT": 2**63}


def estimate(con: duckdb.DuckDBPyConnection, query: str, types: dict[str, tuple[str, str]], **more: bool) -> float:
    """The estimate of a query on `t` from `r`, whose columns have these types in both."""
    original = TableInfo("t", tuple((name, of) for name, (of, _) in types.items()))
    release = TableInfo("r", tuple((name, of) for name, (_, of) in types.items()), **more)
    return float(con.execute(rewrite(query, original, release)).fetchall()[0][0])


@pytest.mark.parametrize(
    ("condition", "statement"),
    [
        ("v = 1", lambda x: x == 1),
        ("v in (1, 4)", lambda x: x in (1, 4)),
        ("v not in (1, 4)", lambda x: x is not None and x not in (1, 4)),
        ("v is null or v = 2", lambda x: x is None or x == 2),
        ("v <> 2 and v <> 3 and v <> 4 and v <> 5 and v <> 6", lambda x: x is not None and x not in (2, 3, 4, 5, 6)),
        ("v = 1.5", lambda x: False),
        ("not v = 1", lambda x: x is not None and x != 1),
    ],
)
def test_the_share_of_a_set_is_that_of_its_members(condition, statement):
    con = duckdb.connect()
    con.execute("create table r (v integer[])")
    con.executemany("insert into r values (?)", [[node] for node in SETS])
    assert callable(statement)
    members = [node or [None] for node in SETS]
    share = sum(sum(map(bool, map(statement, member))) / len(member) for member in members)
    query = f"select count(*) from t where {condition}"
    assert estimate(con, query, {"v": ("INTEGER", "INTEGER[]")}) == pytest.approx(share)


@pytest.mark.parametrize("kind", ["TINYINT", "BIGINT"])
@pytest.mark.parametrize("condition", ["v > -5", "v <= -100", "v between -100 and 100"])
def test_boxes_as_wide_as_their_type_have_their_share(kind, condition):
    con = duckdb.connect()
    far = ENDS[kind]
    con.execute(f"create table r (v struct(lower {kind}, upper {kind}))")
    boxes = [(-far, far - 1), (-far, -far + 1), (far - 2, far - 1), (-far, 50), (-50, far - 1), (-100, 100), (6, 8)]
    con.executemany("insert into r values ({'lower': ?, 'upper': ?})", boxes)
    low, high = {"v > -5": (-4, far), "v <= -100": (-far, -100), "v between -100 and 100": (-100, 100)}[condition]
    share = sum(Fraction(max(min(b, high) - max(a, low) + 1, 0), b - a + 1) for a, b in boxes)
    types = {"v": (kind, f"STRUCT(lower {kind}, upper {kind})")}
    assert estimate(con, f"select count(*) from t where {condition}", types) == pytest.approx(float(share))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("at", [3, 2**53 + 1])
def test_narrow_boxes_of_large_numbers_have_their_share(at, sign):
    con = duckdb.connect()
    con.execute("create table r (g integer, v struct(lower bigint, upper bigint))")
    at *= sign
    boxes = [(at - 1, at + 2), (at, at + 2), (at - 3, at), (at - 2**62, at + 1), (at - 1, at + 2**62)]
    con.executemany("insert into r values (?, {'lower': ?, 'upper': ?})", [(g, *box) for g, box in enumerate(boxes)])
    original = TableInfo("t", (("g", "INTEGER"), ("v", "BIGINT")))
    release = TableInfo("r", (("g", "INTEGER"), ("v", "STRUCT(lower BIGINT, upper BIGINT)")))
    for condition, (low, high) in (
        (f"v >= {at}", (at, at + 2**63)),
        (f"v < {at + 1}", (at - 2**63, at)),
        (f"v between {at} and {at + 1}", (at, at + 1)),
    ):
        selected = ", ".join(f"sum(1.0e18) filter (where g = {g})" for g, _ in enumerate(boxes))
        text = rewrite(f"select {selected} from t where {condition}", original, release)
        (found,) = con.execute(text).fetchall()
        for (a, b), estimate in zip(boxes, found, strict=True):
            share = Fraction(max(min(b, high) - max(a, low) + 1, 0), b - a + 1)
            assert (estimate or 0) == pytest.approx(1e18 * float(share), rel=1e-12)


@pytest.mark.parametrize("shape", ["boxes", "randomized"])
@pytest.mark.parametrize(
    ("rows", "total"),
    [([], None), ([(1, None), (9, 5)], None), ([(1, 2), (1, None), (1, -2)], 0), ([(1, 4), (2, None), (9, 5)], 4)],
)
def test_a_sum_is_null_where_no_row_has_a_value_and_a_chance(shape, rows, total):
    con = duckdb.connect()
    con.execute("create table plain (a integer, c integer)")
    if rows:
        con.executemany("insert into plain values (?, ?)", rows)
    box, channel = "STRUCT(lower INTEGER, upper INTEGER)", "STRUCT(a STRUCT(p DOUBLE, domain INTEGER[]))"
    displayed = {"boxes": "case when a is not null then {lower: a, upper: a} end as a, c, 'k' as g",
             "randomized": f"a, c, 'k' as g, {{a: {{p: 1.0, domain: [1, 2, 9, null]}}}}::{channel} as rr"}  # fmt: skip
    con.execute(f"create table r as select {displayed[shape]} from plain")
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
    statement = any(a is not None and a < 5 for a, _ in rows)
    assert con.execute(text).fetchall() == [("k", total)] * statement


def test_a_group_whose_condition_is_null_in_all_rows_counts_none():
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
