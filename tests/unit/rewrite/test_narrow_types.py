"""Numbers that fill their type: what an estimate reckons with them must not be too much for it."""

from typing import Any

import duckdb
import pytest


def answers(
    con: duckdb.DuckDBPyConnection, kind: str, values: str, queries: list[str], bounds: str = "none"
) -> list[tuple[Any, Any]]:
    """Answers of an original with column `a` of some type, and of a release of it whose boxes are single values."""
    con.execute(
        f"create table people as select unnest([{values}])::{kind} as a, unnest(range(1, 7))::{kind} as b, "
        "unnest(range(6)) / 4 as c, unnest(['x', 'y', 'x', 'x', 'y', 'x']) as s"
    )
    con.execute("create table r as select {lower: a, upper: a} as a, {lower: b, upper: b} as b, c, s from people")
    call = "select rewrite_query($1, 'people', 'r', qi := ['a', 'b'], bounds := $2)"
    texts = [con.execute(call, [query, bounds]).fetchall()[0][0] for query in queries]
    return [(con.execute(q).fetchall(), con.execute(t).fetchall()) for q, t in zip(queries, texts, strict=True)]


@pytest.mark.parametrize(
    ("kind", "values", "value", "bounded"),
    [
        ("INTEGER", "16777217, 16777219, 16777221, 1, 2, 3", "a::float", False),
        ("DOUBLE", "16777217, 0.1, 33554433, 1, 2, 3", "a::float", False),
        ("FLOAT", "0.1, 0.2, 0.3, 1, 2, 3", "a * a", False),
        ("DECIMAL(12,2)", "0.1, 0.2, 0.3, 1, 2, 3", "a * a - a", False),
        ("SMALLINT", "5, -2, 0, 1, 2, 3", "a * a - a", True),
    ],
)
def test_sums_that_sql_rounds_are_not_called_certain(con, kind, values, value, bounded):
    [((truth,), (found,))] = answers(con, kind, values, [f"select sum({value}) from people"], "sure")
    assert float(found[0]) == pytest.approx(float(truth[0]), rel=1e-6)
    assert len(found) == (4 if bounded else 1)
    if bounded:
        assert found[1] <= float(truth[0]) + 1e-9
        assert found[2] >= float(truth[0]) - 1e-9


@pytest.mark.parametrize(
    ("value", "where"), [("-2 * a * a + 5", ""), ("(a - 10) * (a - 20)", "where a between 2 and 30")]
)
def test_squares_of_boxes_are_the_mean_over_the_box(con, where, value):
    """Against boxes cut into many small ones; bounds against what the values of a box can be."""
    con.execute("create table people as select 1 as a, 'x' as s")
    con.execute(
        "create table r as select case when i <> 7 then {lower: (i * i % 23)::int, upper: (i * i % 23 + i * 5)::int} "
        "end as a, 'x' as s from range(12) t(i)"
    )
    con.execute(
        "create table fine as select unnest(case when a is null then [null] "
        "else generate_series(a.lower, a.upper) "
        "end) as a, row_number() over () as row from r"
    )
    expected, low, high = con.execute(
        f"select sum(mean), sum(least), sum(most) from (select sum(x) filter (where selected) / count(*) as mean, "
        f"case when bool_and(selected) then min(x) else least(0, min(x) filter (where selected)) end as least, "
        f"case when bool_and(selected) then max(x) else greatest(0, max(x) filter (where selected)) end as most from "
        f"(select row, {value} as x, coalesce({where.removeprefix('where ') or 'true'}, false) as selected from fine) "
        "group by row)"
    ).fetchall()[0]
    query = f"select sum({value}) as x from people {where}"
    text = con.execute("select rewrite_query($1, 'people', 'r', qi := ['a'], bounds := 'sure')", [query]).fetchall()
    found = con.execute(text[0][0]).fetchall()[0]
    assert found[0] == pytest.approx(expected, abs=0.5)
    assert found[1] <= low and found[2] >= high
