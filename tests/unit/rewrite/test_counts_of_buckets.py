"""Closed forms over the counts of buckets: each row is spread over the values of its bucket."""

import duckdb
import pytest

import duckdb_anon

CALL = "'released', original := 't', sensitive := 's', engine := 'closed'"


def con_of(size: int, missing: int) -> duckdb.DuckDBPyConnection:
    """Buckets of so many records, each with values of its own and one that all have; some records have none."""
    con = duckdb_anon.connect()
    con.execute(f"""
        create table t as select range // {size} as bucket, range % 3 as a, hash(range) % 7 as x,
        case when range % {size} < {missing} then null when range % 2 = 0 then 1 else range // {size} + 2 end::bigint as s
        from range({40 * size})""")
    con.execute("""
        create table released as select bucket, a, x, counts as s from t join (
          select bucket, map(list(s), list(n)) as counts
          from (select bucket, s, count(*) as n from t where s is not null group by all) group by all) using (bucket)""")
    con.execute("alter table t drop bucket")
    return con


@pytest.mark.parametrize("size", [3, 10, 49])
@pytest.mark.parametrize("missing", [0, 2])
def test_all_records_of_a_bucket_are_whole(size, missing):
    con = con_of(size, missing)
    query = "select s, count(*) as n, sum(x) as x from t group by s"
    found = con.execute(f"select s, estimate from estimate('{query}', {CALL}) where measure = 'n'").fetchall()
    assert sorted(found, key=str) == sorted(
        con.execute("select s, count(*)::double from t group by s").fetchall(), key=str
    )


def test_conditions_on_other_columns_take_shares_of_their_rows():
    con = con_of(10, 2)
    con.execute("alter table released alter x type integer")
    for condition in ("a = 1", "a = 1 and s = 1", "a = 1 or s is null", "s is null", "x > 3 and s < 20"):
        query = f"select count(*) as n, avg(x) as x from t where {condition}"
        found = dict(con.execute(f"select measure, estimate from estimate('{query}', {CALL})").fetchall())
        by_hand = f"""
            with spread as (
              select a, x, unnest(list_append(map_keys(s), null)) as s,
                unnest(list_append(map_values(s), 10 - list_sum(map_values(s)))) / 10 as w
              from released)
            select sum(w), sum(w * x) / sum(w) from spread where {condition}"""
        assert tuple(found[name] for name in ("n", "x")) == pytest.approx(con.execute(by_hand).fetchone()), condition
