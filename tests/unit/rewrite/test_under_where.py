"""Casts and shifts that fail for values which WHERE keeps out, and extremes at the ends of their types."""

import duckdb
import pytest

import duckdb_anon
from tests.reference.same_answers import assert_same

ROLES = "qi := ['a', 's', 'day', 'n']"
RELEASES = {
    "boxes": "select {lower: a, upper: a} as a, [s] as s, [day] as day, {lower: n, upper: n} as n, g from o",
    "sliced": "select row_number() over () as bucket, {a: a, s: s} as a_s, {day: day, n: n, g: g} as others from o",
    "randomized": "select *, (select {s: {p: 1.0::double, domain: list(distinct s)}, "
    "day: {p: 1.0::double, domain: list(distinct day)}} from o) as rr from o",
    "coarse": "select {lower: min(a) over half, upper: max(a) over half} as a, list_sort(list_distinct(list(s) over half)) as s, "
    "list_sort(list_distinct(list(day) over half)) as day, {lower: min(n) over half, upper: max(n) over half} as n, g "
    "from o window half as (partition by a // 2)",
}
QUERIES = (
    "select sum(s::int) as m from o where s <> 'n/a'",
    "select g, sum(s::int * a) as m, stddev(s::int) as d from o where s <> 'n/a' group by g",
    "select count(*) as c from o where s <> 'n/a' and s::int > 5",
    "select count(*) as c from o where not (s::int > 5) and s <> 'n/a' and g = 'x'",
    "select count(*) filter (where day::date > '2020-01-01') as c from o where day <> ''",
    "select month(day::date) as k, sum(a) as m from o where day <> '' group by 1",
    "select count(*) as c from o where n << 1 > 4 and n between 0 and 99",
)


@pytest.fixture(scope="module")
def con():
    made = duckdb_anon.connect()
    made.execute(
        "create table o as select (i % 6)::int as a, (['7', 'n/a', '12', '3'])[1 + i % 4] as s, (['x', 'y'])[1 + i % 2] as g, "
        "case when i % 5 = 0 then '' else '2020-0' || (1 + i % 3) || '-02' end as day, "
        "case when i % 7 = 0 then 9223372036854775807 else i end as n from range(60) r(i)"
    )
    for shape, text in RELEASES.items():
        made.execute(f"create table {shape} as {text}")
    return made


@pytest.mark.parametrize("shape", ["boxes", "sliced", "randomized"])
@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_the_originals(con, query, shape):
    for bounds in ("none", "sure"):
        row = con.execute(
            f"select rewrite_query($1, 'o', '{shape}', bounds := '{bounds}', {ROLES})", [query]
        ).fetchone()
        try:
            estimated = con.execute(row[0]).fetchall()
        except duckdb.InvalidInputException as error:
            assert "too many to list" in str(error), error
            continue
        statement = con.execute(query)
        width = len(statement.description)
        assert_same([node[:width] for node in estimated], statement.fetchall())


@pytest.mark.parametrize("query", QUERIES[:-1])
def test_bounds_hold_the_truth_and_the_note_tells_of_it(con, query):
    rows = con.execute(f"from relative_error($1, 'o', 'coarse', {ROLES})", [query]).fetchall()
    assert rows
    for _, _, original, _, _, low, high, confidence, _, note in rows:
        assert "cannot be cast" in note
        if confidence == 1 and original is not None:
            assert low - 1e-9 <= original <= high + 1e-9


def test_without_where_a_cast_fails_as_it_does_on_the_original(con):
    for shape in RELEASES:
        row = con.execute(f"select rewrite_query('select sum(s::int) from o', 'o', '{shape}', {ROLES})").fetchone()
        with pytest.raises(duckdb.ConversionException, match="n/a"):
            con.execute(row[0])


def test_nothing_is_relative_to_no_number(con):
    query = "select corr(a, length(g)) as c from o"
    row = con.execute(
        f"select original, estimate, relative_error from relative_error($1, 'o', 'boxes', {ROLES})", [query]
    )
    assert [str(node) for node in row.fetchall()[0]] == ["nan", "nan", "None"]
