"""A seed makes a release that depends neither on the threads nor on the connection."""

import pytest

import duckdb_anon

TABLE = """create table people as select (hash(i) % 60)::integer as age, (hash(i, 1) % 9)::varchar as town,
    nullif(hash(i, 2) % 12, 0)::integer as hours, 'job ' || hash(i, 3) % 20 as job, (hash(i, 4) % 500)::integer as wage
    from range(140000) t(i)"""  # so many that kernels work on parts of it in parallel
TREE = (
    "create table jobs as select 'job ' || i as level0, 'jobs ' || i // 5 as level1, '*' as level2 from range(20) t(i)"
)
KEYS = "qi := ['age', 'town', 'hours', 'job'], sensitive := 'wage', seed := 3"


@pytest.mark.parametrize(
    "call",
    [
        f"mondrian('people', 10, {KEYS})",
        f"mondrian('people', 10, l := 5, {KEYS}, hierarchies := {{'job': 'jobs'}})",
        f"muco('people', 0.2, {KEYS})",
        f"muco('people', 0.1, l := 5, {KEYS}, hierarchies := {{'job': 'jobs'}})",
        f"anatomy('people', 5, {KEYS})",
        f"rr_distort('people', p := 0.8, {KEYS})",
    ],
)
def test_rows_are_the_same_on_every_number_of_threads_and_connection(call):
    found = set()
    for threads in (1, 2, 2):
        with duckdb_anon.connect(threads=threads) as con:
            con.execute(TABLE)
            con.execute(TREE)
            con.execute(f"create table released as from {call}")
            found |= set(con.execute("select count(*), sum(hash(released)::hugeint) from released").fetchall())
    assert len(found) == 1 and found.pop()[0] >= 140000
