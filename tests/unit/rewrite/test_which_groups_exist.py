"""Functions of which groups exist, and quantiles, against every table a release may stand for."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import duckdb
import pytest

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
    for statement in ("select rewrite_query(?, 't', 'r')", "from relative_error(?, 't', 'r')"):
        with pytest.raises(duckdb.Error, match="column 'who' is not in the release r; released are "):
            con.execute(statement, [query]).fetchall()
