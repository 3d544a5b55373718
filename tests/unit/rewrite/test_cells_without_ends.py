"""Cells without ends, beside those with: how they are spread, how they are listed, and what is said of those that cannot be."""

import duckdb
import pytest

from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen


@pytest.fixture(scope="module")
def con():
    connection = duckdb.connect()
    connection.execute("create table people (age integer)")
    connection.execute("""
        create table release as select * from (values ({lower: 20, upper: 25}), ({lower: 24, upper: 29}),
          ({lower: null, upper: null}), ({lower: null, upper: null}), (null)) as t(age)
    """)
    return connection


SHARED = (
    ("age >= 24", lambda age: age >= 24),
    ("age BETWEEN 23 AND 26", lambda age: 23 <= age <= 26),
    ("age = 25", lambda age: age == 25),
    ("age BETWEEN 40 AND 50", lambda age: 40 <= age <= 50),
    ("age % 7 = 3", lambda age: age % 7 == 3),
)


@pytest.mark.parametrize(("condition", "holds"), SHARED)
def test_a_cell_without_ends_is_spread_over_all_ends_and_null(con, condition, holds):  # type: ignore[no-untyped-def]
    total = 0.0
    for (age,) in con.execute("select age from release").fetchall():
        if age is not None:
            ends = (age["lower"], age["upper"]) if age["lower"] is not None else (20, 29)
            values = range(ends[0], ends[1] + 1)
            total += sum(map(holds, values)) / (len(values) + (age["lower"] is None))
    text = rewrite(f"SELECT count(*) AS n FROM people WHERE {condition}", seen(con, "people"), seen(con, "release"))
    assert con.execute(text).fetchone() == (pytest.approx(total),)


ALL_ENDS = (24.5, 10)
"""The middle of the ends of all boxes, and how many values they hold."""


@pytest.fixture(scope="module")
def grouped():
    """Groups of rows without ends alone, of NULLs alone, of both, of boxes alone, and of all."""
    connection = duckdb.connect()
    connection.execute("create table people (age integer, tag varchar, cost integer)")
    connection.execute("create table tags as from (values ('a', 'x'), ('b', 'x'), ('d', 'y')) t(name, kind)")
    connection.execute("""
        create table release as select case age when 0 then null when 1 then {lower: null, upper: null}
            else {lower: age, upper: age + 5} end::struct(lower integer, upper integer) as age, [tag] as tag, cost
        from (values (1, 'a', 1), (1, 'a', 2), (0, 'b', 3), (0, 'b', 4), (1, 'c', 5), (0, 'c', 6), (20, 'd', 7),
          (24, 'd', 8), (20, 'e', 9), (1, 'e', 10), (0, 'e', 11)) as t(age, tag, cost)
    """)
    return connection


def test_joined_groups_and_products_of_shares_add_up_rows_without_ends(grouped):
    middle, size = ALL_ENDS
    people, release, tags = (seen(grouped, name) for name in ("people", "release", "tags"))
    query = "SELECT kind, sum(age) AS m FROM people JOIN tags ON tag = name GROUP BY kind"
    found = dict(grouped.execute(rewrite(query, people, release, [tags])).fetchall())
    assert found == pytest.approx({"x": 2 * middle * size / (size + 1), "y": 22.5 + 26.5})
    query = "SELECT tag, sum(age * cost) AS m, sum(cost) FILTER (WHERE age IS NOT NULL) AS n FROM people GROUP BY tag"
    rows = {tag: (m, n) for tag, m, n in grouped.execute(rewrite(query, people, release)).fetchall()}
    chance = size / (size + 1)
    assert rows["a"] == pytest.approx((3 * middle * chance, 3 * chance)) and rows["b"] == (None, None)
    assert rows["e"] == pytest.approx((9 * 22.5 + 10 * middle * chance, 9 + 10 * chance))


@pytest.mark.parametrize(
    ("remaining", "fails"), [("age is null", False), ("age.lower is null", True), ("false", False)]
)
def test_rows_without_ends_need_a_box_with_ends_only_where_there_are_any(remaining, fails):
    con = duckdb.connect()
    con.execute("create table people (age integer, tag varchar)")
    cells = "(null), ({lower: null::integer, upper: null::integer}), ({lower: 1, upper: 2})"
    con.execute(f"create table release as select age, ['a'] as tag from (values {cells}) t(age) where {remaining}")
    query = "SELECT tag, avg(age) AS m, count(age) AS n FROM people GROUP BY tag"
    text = rewrite(query, seen(con, "people"), seen(con, "release"))
    if fails:
        with pytest.raises(duckdb.Error, match="no interval of age has ends"):
            con.execute(text).fetchall()
    else:
        assert con.execute(text).fetchall() == ([("a", None, 0)] if remaining == "age is null" else [])


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        ("{lower: null, upper: null}", "no interval of age has ends"),
        ("{lower: 0, upper: 1000000}", "have over 1000000"),
    ],
)
def test_boxes_whose_values_cannot_be_listed_are_named(cells, wrong):
    con = duckdb.connect()
    con.execute("create table people (age integer)")
    con.execute(f"create table release as select {cells}::struct(lower integer, upper integer) as age from range(3)")
    text = rewrite("SELECT age, count(*) FROM people GROUP BY age", seen(con, "people"), seen(con, "release"))
    with pytest.raises(duckdb.Error, match=wrong):
        con.execute(text).fetchall()
