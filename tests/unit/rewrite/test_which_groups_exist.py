"""Functions of which groups exist, and quantiles, against every table a release may stand for."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import duckdb
import pytest

from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen

GROUPED = "(SELECT a, b, count(*) AS n, sum(a) AS s FROM t GROUP BY a, b)"
QUERIES = (
    "SELECT count(DISTINCT a) AS m FROM t",
    "SELECT count(DISTINCT a) FILTER (WHERE b = 'x') AS m FROM t WHERE a > 1",
    "SELECT k, count(DISTINCT b) AS m FROM t GROUP BY k",
    f"SELECT count(*) AS m FROM {GROUPED} AS g",
    f"SELECT count(*) AS m FROM {GROUPED} AS g WHERE n = 1",
    f"SELECT count(*) AS m FROM {GROUPED} AS g WHERE n >= 2 AND a < 3",
    f"SELECT count(*) AS m FROM {GROUPED} AS g WHERE NOT n BETWEEN 2 AND 3 OR s > 3",
    "SELECT count(*) AS m FROM (SELECT a FROM t GROUP BY a HAVING count(*) <> 2) AS g",
    "SELECT count(*) AS m FROM (SELECT DISTINCT a, b FROM t) AS g",
    "SELECT count(*) AS m FROM (SELECT a, count(*) AS n FROM t GROUP BY a LIMIT 2) AS g",
    f"SELECT max(n) AS m FROM {GROUPED} AS g",
    f"SELECT min(n) AS m FROM {GROUPED} AS g",
    f"SELECT avg(n) AS m FROM {GROUPED} AS g",
    f"SELECT max(s) AS m FROM {GROUPED} AS g WHERE n > 1",
    f"SELECT min(s) AS m FROM {GROUPED} AS g WHERE b = 'x'",
    f"SELECT avg(s) AS m FROM {GROUPED} AS g",
    f"SELECT sum(n) AS m FROM {GROUPED} AS g WHERE n > 1",
    f"SELECT b, count(*) AS m FROM {GROUPED} AS g GROUP BY b",
    f"SELECT count(*) FILTER (WHERE n >= 2) AS m FROM {GROUPED} AS g",
    f"SELECT b, count(*) FILTER (WHERE n = 1 OR a > 2) AS m FROM {GROUPED} AS g GROUP BY b",
    f"SELECT sum(n) FILTER (WHERE b = 'x') AS m FROM {GROUPED} AS g WHERE n > 1",
    f"SELECT avg(s) FILTER (WHERE n > 1) AS m FROM {GROUPED} AS g",
    f"SELECT max(n) FILTER (WHERE a < 3) AS m FROM {GROUPED} AS g",
    f"SELECT b, min(s) FILTER (WHERE n > 1) AS m FROM {GROUPED} AS g WHERE a > 1 GROUP BY b",
    "SELECT median(a) AS m FROM t",
    "SELECT quantile_disc(a, 0.25) AS m FROM t WHERE b = 'x'",
    "SELECT quantile_cont(a, 0.9) AS m FROM t WHERE a > 1",
    "SELECT k, median(a) AS m FROM t GROUP BY k",
    "SELECT b, median(a) AS m FROM t GROUP BY b",
    "SELECT k, percentile_cont(0.3) WITHIN GROUP (ORDER BY a DESC) AS m FROM t WHERE b <> 'y' GROUP BY k",
)


def releases(rng: random.Random, rows: int) -> tuple[list[tuple[int, int]], list[tuple[str, ...]], list[int]]:
    boxes = [tuple(sorted((rng.randint(1, 3), rng.randint(1, 3)))) for _ in range(rows)]
    sets = [rng.choice([("x",), ("y",), ("x", "y")]) for _ in range(rows)]
    return boxes, sets, [rng.randint(0, 1) for _ in range(rows)]  # type: ignore[return-value]


def worlds(
    boxes: list[tuple[int, int]], sets: list[tuple[str, ...]]
) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    ages = [range(low, high + 1) for low, high in boxes]
    yield from itertools.product(itertools.product(*ages), itertools.product(*sets))


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.campaign if seed in (3, 4) else ()) for seed in range(6)]
)
def test_hard_bounds_hold_in_every_table_the_release_may_stand_for(seed: int) -> None:
    rng = random.Random(seed)
    boxes, sets, ks = releases(rng, 4)
    con = duckdb.connect()
    con.execute("create table t (a integer, b varchar, k integer)")
    con.execute("create table r (a struct(lower integer, upper integer), b varchar[], k integer)")
    for (low, high), members, k in zip(boxes, sets, ks, strict=True):
        con.execute("insert into r values ($1, $2, $3)", [{"lower": low, "upper": high}, list(members), k])
    con.execute("create table every (world integer, a integer, b varchar, k integer)")
    many = list(worlds(boxes, sets))
    con.executemany(
        "insert into every values ($1, $2, $3, $4)",
        [[w, a, b, k] for w, (left, right) in enumerate(many) for a, b, k in zip(left, right, ks, strict=True)],
    )
    told = {}
    for query in QUERIES:
        cursor = con.execute(rewrite(query, seen(con, "t"), seen(con, "r"), bounds="hard"))
        names = [column[0] for column in cursor.description]
        assert {"m_low", "m_high"} <= set(names), query
        told[query] = {row[: names.index("m")]: row[names.index("m_low") :] for row in cursor.fetchall()}
    ends = [end for rows in told.values() for both in rows.values() for end in both]
    assert sum(end is None for end in ends) < 0.2 * len(ends)
    for world in range(len(many)):
        con.execute(f"create or replace table t as select * exclude (world) from every where world = {world}")
        for query in QUERIES:
            for *key, truth in con.execute(query).fetchall():
                low, high = told[query][tuple(key)]
                above = truth is None or low is None or low - 1e-9 <= truth
                below = truth is None or high is None or truth <= high + 1e-9  # an end that is NULL is open
                assert above and below, (query, key, low, truth, high)


def test_a_point_release_tells_every_function_of_groups_exactly() -> None:
    con = duckdb.connect()
    con.execute(
        "create table t as select (hash(i) % 4)::integer as a, ['x', 'y'][1 + i % 2] as b, i % 3 as k from range(40) s(i)"
    )
    con.execute("create table r as select {lower: a, upper: a} as a, [b] as b, k from t")
    for query in QUERIES:
        text = rewrite(query, seen(con, "t"), seen(con, "r"), bounds="hard")
        found = con.execute(text)
        width = [column[0] for column in found.description].index("m") + 1
        estimated = sorted((*row[: width - 1], float(row[width - 1])) for row in found.fetchall())
        truth = sorted((*row[:-1], float(row[-1])) for row in con.execute(query).fetchall())
        assert [row[:-1] for row in estimated] == [row[:-1] for row in truth], query
        assert [row[-1] for row in estimated] == pytest.approx([row[-1] for row in truth]), query


def test_a_set_is_asked_for_the_value_of_the_row_around_the_query() -> None:
    con = duckdb.connect()
    con.execute("create table people as select * from (values ('n1'), ('n1'), ('n2'), ('s1')) as t(region)")
    con.execute(
        "create table boxes as select * from (values (['n1', 'n2']), (['n1']), (['n2']), (['s1'])) as t(region)"
    )
    con.execute("create table regions as select * from (values ('n1'), ('n2'), ('e1')) as t(name)")
    query = "SELECT r.name FROM regions r WHERE EXISTS (SELECT 1 FROM people p WHERE p.region = r.name) ORDER BY 1"
    text = rewrite(query, seen(con, "people"), seen(con, "boxes"), [seen(con, "regions")])
    assert con.execute(text).fetchall() == [("n1",), ("n2",)]


def test_rows_that_were_left_out_may_be_groups_of_their_own(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create table t as select i % 40 as a, case when i = 7 then 'rare' else 'c' || i % 3 end as c, i % 5 as s "
        "from range(120) r(i)"
    )
    roles = "qi := ['a', 'c'], sensitive := 's'"
    con.execute(f"create table r as from incognito('t', 4, max_suppression := 0.2, {roles}, seed := 1)")
    assert con.execute("select count(*) from r where suppressed > 0").fetchall()[0][0]
    for query in ("count(distinct c) from t", "count(*) from (select c, count(*) from t group by c)"):
        text = f"select original, low, high from relative_error('select {query}', 't', 'r', {roles})"
        ((truth, low, high),) = con.execute(text).fetchall()
        assert low <= truth == 4 and high is None


def test_the_largest_values_are_not_taken_for_the_largest(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select i % 9 as a, i % 5 as s from range(60) r(i)")
    con.execute("create table r as from mondrian('t', 4, qi := ['a'], sensitive := 's')")
    with pytest.raises(duckdb.Error, match=r"max\(a, 3\) cannot be estimated"):
        con.execute("from relative_error('select max(a, 3) from t', 't', 'r')")


def test_what_duckdb_gives_about_is_not_told_for_certain(con: duckdb.DuckDBPyConnection) -> None:
    """A sketch tells the numbers of the original, so bounds of the exact ones need not hold them."""
    con.execute("create table t as select i as a, i // 4 as b, 'x' as s from range(1000) r(i)")
    con.execute("create table r as select {lower: a - a % 2, upper: a - a % 2 + 1} as a, b, s from t")
    for asked in ("approx_count_distinct(a)", "approx_quantile(a, 0.3)", "approx_count_distinct(b)"):
        query = f"select s, {asked} as m from t where a > 10 group by s"
        text = f"from relative_error('{query}', 't', 'r')"
        rows = con.execute(f"select original, estimate, confidence {text}").fetchall()
        assert all(confidence is None for *_, confidence in rows)
        assert all(estimate == pytest.approx(original, rel=0.5) for original, estimate, _ in rows)


@pytest.mark.parametrize("call", ["mondrian('t', 2)", "anatomy('t', 2)"])
@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from (select who from t group by who having count(*) > 1)",
        "select avg(n) from (select who, count(*) as n from t group by who)",
        "with g as (select who, count(*) as n from t where who < 3 group by who) select sum(n) from g",
    ],
)
def test_groups_by_a_column_that_is_not_released_are_refused_by_name(
    con: duckdb.DuckDBPyConnection, call: str, query: str
):
    """The texts named a column that the release does not have."""
    con.execute("create table t as select i % 5 as who, i % 7 as age, 'd' || i % 3 as ill from range(30) as r(i)")
    con.execute("comment on column t.age is 'anon: quasi'; comment on column t.ill is 'anon: sensitive'")
    con.execute(f"create table r as from {call}")
    for asked in ("select rewrite_query(?, 't', 'r')", "from relative_error(?, 't', 'r')"):
        with pytest.raises(duckdb.Error, match="column 'who' is not in the release r; released are "):
            con.execute(asked, [query]).fetchall()
