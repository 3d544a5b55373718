"""Queries on slices: the estimate is the query's mean over all pairings inside buckets, and rows never meet rows.

The oracle is a table with one row for each way to put a row of its bucket together from one row's own columns and one
cell of each slice, weighted by one over the number of those ways.
"""

import random

import duckdb
import pytest

import duckdb_anon

SCALE = "sum(sum(w)) over () / sum(case when sum(w) >= 0.5 then sum(w) end) over ()"
"""Groups of fewer than half a record are left out, and the others add up to all records."""
# a query over people, and the same over `pairings`, whose weights add up to 1 for each row
PAIRS = (
    ("count(*) from people where age > 12 and ill = 'flu'", "sum(w) from pairings where age > 12 and ill = 'flu'"),
    ("count(*), sum(cost) from people where cost > 2 and age < 18 and edu = 1",
     "sum(w), sum(w * cost) from pairings where cost > 2 and age < 18 and edu = 1"),
    ("avg(age), count(edu) from people where ill is null or sex = 'F'",
     "sum(w * age) / sum(w) filter (where age is not null), sum(w) filter (where edu is not null) "
     "from pairings where ill is null or sex = 'F'"),
    ("ill, count(*), sum(edu) from people where age < 18 group by ill",
     "ill, sum(w), sum(w * edu) from pairings where age < 18 group by ill"),
    ("ill, sex, count(*) from people where age < 18 and edu > 0 group by ill, sex",
     f"ill, sex, sum(w) * {SCALE} from pairings where age < 18 and edu > 0 group by ill, sex qualify sum(w) >= 0.5"),
    ("ill, sex, count(cost), avg(cost) from people where age < 18 group by ill, sex",
     f"ill, sex, sum(w) filter (where cost is not null) * {SCALE}, sum(w * cost) / sum(w) filter (where cost is not null) "
     "from pairings where age < 18 group by ill, sex qualify sum(w) >= 0.5"),
    ("ill, edu, count(*) filter (where sex = 'M') from people where edu is not null group by ill, edu",
     "ill, edu, coalesce(sum(w) filter (where sex = 'M'), 0) from pairings where edu is not null group by ill, edu"),
    ("sum(case when ill = 'flu' then age else edu end) from people",
     "sum(w * case when ill = 'flu' then age else edu end) from pairings"),
    ("sum(age * edu), sum(age * cost) from people where sex is not null",
     "sum(w * age * edu), sum(w * age * cost) from pairings where sex is not null"),
    ("sex, age > 10 as old, count(*) from people where ill in ('flu', 'none') group by all having count(*) > 1.5",
     "sex, age > 10 as old, sum(w) from pairings where ill in ('flu', 'none') group by all having sum(w) > 1.5"),
    ("label, count(*), sum(edu) from people join marks using (ill) where sex = 'M' group by label",
     "label, sum(w), sum(w * edu) from pairings join marks using (ill) where sex = 'M' group by label"),
    ("edu, count(*) from people where age > (select 9) group by edu union all select 7, count(*) from people where edu = 1",
     "edu, sum(w) from pairings where age > (select 9) group by edu union all select 7, sum(w) from pairings where edu = 1"),
    ("sum(cost), sum(edu) from people where age < (select avg(age) from people) and ill in (select ill from marks)",
     "sum(w * cost), sum(w * edu) from pairings where age < (select sum(w * age) / sum(w) filter (where age is not null) "
     "from pairings) and ill in (select ill from marks)"),
    ("max(age), min(age) from people where sex = 'F'", "max(age), min(age) from pairings where sex = 'F'"),
)  # fmt: skip


@pytest.fixture(scope="module")
def con():
    drawn = random.Random(5)

    def some(values: list[object], missing: float = 0.1) -> object:
        return None if drawn.random() < missing else drawn.choice(values)

    made = duckdb_anon.connect()
    made.execute("create table people (age integer, sex varchar, edu integer, ill varchar, cost integer)")
    for _ in range(60):
        row = [some(list(range(20))), some(["F", "M"]), some([0, 1, 2]), some(["flu", "cold", "acne"]), some([1, 2, 9])]
        made.execute("insert into people values ($1, $2, $3, $4, $5)", row)
    made.execute(
        "create table marks as select unnest(['flu', 'cold', 'acne']) as ill, unnest(['a', 'b', 'a']) as label"
    )
    sliced = "{age: age, sex: sex} as age_sex, {edu: edu} as edu, {ill: ill} as ill, cost"
    made.execute(f"create table r as select (row_number() over () // 4)::bigint as bucket, {sliced} from people")
    made.execute(
        "insert into r select null, * exclude (bucket) from r where bucket = 3; delete from r where bucket = 3"
    )
    counts = (
        "map_from_entries(list({k: k, v: n})) from (select bucket, ill.ill as k, count(*) as n from r group by all)"
    )
    made.execute(
        "create table counted as select r.bucket, age_sex, edu, c.ill, cost from r join (select bucket, "
        f"{counts} where k is not null group by bucket) as c(bucket, ill) on r.bucket is not distinct from c.bucket"
    )
    made.execute(
        "create table pairings as select a.age_sex.age as age, a.age_sex.sex as sex, e.edu.edu as edu, i.ill.ill as ill, c.cost, "
        "1 / ((select count(*) from r as n where n.bucket is not distinct from c.bucket) ** 3) as w from r as c "
        "join r as a on a.bucket is not distinct from c.bucket join r as e on e.bucket is not distinct from c.bucket "
        "join r as i on i.bucket is not distinct from c.bucket"
    )
    yield made
    made.close()


def text_of(con: duckdb.DuckDBPyConnection, query: str, release: str = "r") -> str:
    call = f"select rewrite_query($1, 'people', '{release}', qi := ['age', 'sex', 'edu'], sensitive := 'ill', spread := 'uniform')"
    return str(con.execute(call, [query]).fetchall()[0][0])


@pytest.mark.parametrize("release", ["r", "counted"])
@pytest.mark.parametrize(("query", "over_pairings"), PAIRS)
def test_estimates_are_the_mean_over_all_pairings(con, query, over_pairings, release):
    """Of slices alone, and of slices beside the counts of one column."""
    estimated = con.execute(text_of(con, f"select {query}", release)).fetchall()
    truth = con.execute(f"select {over_pairings}").fetchall()
    assert len(estimated) == len(truth) > 0
    for row, true in zip(sorted(estimated, key=str), sorted(truth, key=str), strict=True):
        for mine, expected in zip(row, true, strict=True):
            rounded = isinstance(mine, int) and isinstance(expected, float)  # counts come back as whole numbers
            assert mine == (pytest.approx(expected, abs=0.5 + 1e-9) if rounded else pytest.approx(expected)), (
                row,
                true,
            )


def test_what_one_slice_tells_asks_no_bucket(con):
    for query in (
        "select count(*) from people where age > 5 or sex = 'F'",
        "select sex, avg(age) from people group by 1",
    ):
        text = text_of(con, query)
        assert "bucket" not in text, text
        assert con.execute(text).fetchall() == con.execute(query).fetchall()


def test_generalized_fields_that_are_not_asked_do_not_matter(con):
    con.execute(
        "create or replace table generalized as select bucket, {age: age_sex.age, sex: ['F', 'M']} as age_sex, edu, "
        "{ill: ill.ill, cost: {lower: 0, upper: 9}} as ill from r"
    )
    for query in (
        "select ill, sum(age) from people where ill = 'flu' and age > 3 group by ill order by all",
        "select ill, edu, count(*) from people where ill in ('flu', 'acne') group by ill, edu order by all",
    ):
        mine, expected = (con.execute(text_of(con, query, release)).fetchall() for release in ("generalized", "r"))
        assert len(mine) == len(expected) > 0
        assert all(node == pytest.approx(other) for node, other in zip(mine, expected, strict=True)), query
    listed = "select sex, count(*) from people where cost > 1 and age > 1 group by sex order by all"
    assert [row[0] for row in con.execute(text_of(con, listed, "generalized")).fetchall()] == ["F", "M"]


@pytest.mark.parametrize("never", ["false", "1 = 2", "cost > 9", "age > 99", "ill = 'none'", "age > 99 and cost > 9"])
def test_where_no_row_satisfies_there_is_no_group(con, never):
    for keys in ("ill", "ill, edu", "ill, cost"):
        query = f"select {keys}, sum(cost), count(*) from people where {never} and sex = 'F' group by {keys}"
        assert con.execute(text_of(con, query)).fetchall() == [], (keys, never)
    query = f"select sum(cost), count(*), sum(edu) from people where {never} and sex = 'F'"
    assert con.execute(text_of(con, query)).fetchall() == [(None, 0, None)]
