"""95% intervals: the exact variance on small buckets, and how often they hold the truth under the method's randomness."""

import duckdb
import numpy as np
import pytest

from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import seen

pytestmark = pytest.mark.campaign

ROWS, RUNS = 2000, 150
RELEASE = {"sliced": "select bucket, {age: age, cost: cost} as a, {sex: sex} as b, {disease: disease} as c from base"}


def database() -> duckdb.DuckDBPyConnection:
    """`base`: people in buckets of 10."""
    con = duckdb.connect()
    con.execute(f"""
        create table base as select i // 10 as bucket, (20 + hash(i, 1) % 60)::integer as age,
          ['f', 'm'][1 + (hash(i, 2) % 2)::integer] as sex, (10 + hash(i, 3) % 180)::integer as cost,
          ['flu', 'flu', 'cold', 'acne', 'gout'][1 + (hash(i, 4) % 5)::integer] as disease
        from range({ROWS}) as t(i)
    """)
    return con


def intervals(con: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[object, ...], tuple[float, float]]:
    """Key to low and high of a query's one measure m, from the table `release`."""
    return ends(con, rewrite(query, seen(con, "people"), seen(con, "release"), bounds="likely"))


def ends(con: duckdb.DuckDBPyConnection, text: str) -> dict[tuple[object, ...], tuple[float, float]]:
    """Key to low and high of a rewritten query's one measure m."""
    cursor = con.execute(text)
    names = [d[0] for d in cursor.description]
    key, low, high = names.index("m"), names.index("m_low"), names.index("m_high")
    return {row[:key]: (row[low], row[high]) for row in cursor.fetchall()}


def answers(con: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[object, ...], float]:
    """Key to the query's one measure on `people`."""
    return {row[:-1]: row[-1] for row in con.execute(query).fetchall()}


SAMPLED = (
    "SELECT count(*) AS m FROM people WHERE sex = 'f' AND disease = 'flu'",
    "SELECT sex, sum(cost) AS m FROM people WHERE disease <> 'acne' GROUP BY sex",
    "SELECT disease, avg(cost) AS m FROM people WHERE sex = 'm' GROUP BY disease",
    "SELECT sex, disease, count(*) AS m FROM people GROUP BY ROLLUP (sex, disease)",
)


def test_intervals_hold_the_truth_in_95_of_100_samples():
    con, rng, inside = database(), np.random.default_rng(3), []
    con.execute("create table people as select * exclude (bucket) from base")
    truths = {query: answers(con, query) for query in SAMPLED}
    texts: dict[str, str] = {}
    for _ in range(RUNS // 2):
        con.register("_kept", {"kept": rng.random(ROWS) < 0.4})
        con.execute(
            "create or replace table release as select age, sex, cost, disease, 0.4::double as sampling_rate "
            "from base positional join _kept where kept"
        )
        for query in SAMPLED:
            if query not in texts:
                texts[query] = rewrite(query, seen(con, "people"), seen(con, "release"), bounds="likely")
            for key, (low, high) in ends(con, texts[query]).items():
                inside.append(low <= truths[query][key] <= high)
    assert len(inside) >= 2 * RUNS
    assert 0.93 < np.mean(inside) < 0.97


def test_an_average_over_sampled_boxes_has_no_interval():
    con = database()
    con.execute("create table people as select * exclude (bucket) from base")
    con.execute(
        "create table release as select {lower: age, upper: age + 1} as age, cost, 0.5::double as sampling_rate from people"
    )
    text = rewrite(
        "SELECT avg(cost) FROM people WHERE age < 40", seen(con, "people"), seen(con, "release"), bounds="likely"
    )
    assert "_low" not in text


def test_what_speaks_of_one_column_of_buckets_is_known_exactly():
    con = duckdb.connect()
    con.execute("create table people as select i % 7 as age, i * i % 9 as cost from range(40) as t(i)")
    con.execute(
        "create table release as select i // 8 as bucket, i % 7 as age, m.cost from range(40) as t(i) join (select b, "
        "map_from_entries(list({k: c, v: n})) as cost from (select i // 8 as b, i * i % 9 as c, count(*) as n "
        "from range(40) as t(i) group by all) group by b) as m on m.b = i // 8"
    )
    for measure in ("count(*)", "sum(cost)", "avg(cost)"):
        query = f"SELECT {measure} AS m FROM people WHERE cost > 2"
        ((low, high),) = intervals(con, query).values()
        assert low == high == answers(con, query)[()]


def test_an_answer_that_only_fake_rows_can_change_has_no_interval():
    con = database()
    con.execute("create table people as select * exclude (bucket) from base")
    con.execute(f"create table release as {RELEASE['sliced']}")
    for query in (
        "SELECT count(*) AS m FROM people WHERE sex = 'f'",
        "SELECT sex, count(*) AS m FROM people GROUP BY sex",
    ):
        text = rewrite(query, seen(con, "people"), seen(con, "release"), bounds="likely")
        assert "m_low" not in text or all(ends == (None, None) for ends in intervals(con, query).values())
