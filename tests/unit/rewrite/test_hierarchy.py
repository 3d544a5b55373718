"""Hierarchy nodes: leaves below a node, labels that are values, and NULL as a leaf of its own."""

import duckdb
import pytest

import duckdb_anon
from tests.reference.seeded import seeded_release

TREE = "(values ('n1', 'north', '*'), ('n2', 'north', '*'), ('s1', 'south', '*'), ('s2', 'south', '*'))"


@pytest.fixture(scope="module")
def places():
    con = duckdb_anon.connect()
    con.execute(f"create table tree as select * from {TREE} as t(leaf, half, everything)")
    con.execute(
        "create table places as select (['n1', 'n2', 's1', 's2', null])[1 + i % 5] as place from range(50) t(i)"
    )
    con.execute("comment on column places.place is 'anon: quasi hierarchy=tree'")
    con.execute("create table halves as select case when place is null then '(null)' "
                "when place like 'n%' then 'north' else 'south' end as place from places")  # fmt: skip
    con.execute("create table tops as select '*' as place from places")
    return con


def answer(con: duckdb.DuckDBPyConnection, release: str, condition: str) -> tuple[float, ...]:
    query = f"SELECT count(*) FROM places WHERE {condition}"
    text = f"select estimate, low, high from relative_error($1, 'places', '{release}')"
    return con.execute(text, [query]).fetchall()[0]


def test_node_is_spread_over_its_leaves(places):
    assert answer(places, "halves", "place IN ('n1', 's2')") == (20, 0, 40)
    assert answer(places, "halves", "place LIKE 'n%'") == (20, 20, 20)


def test_released_null_leaf_is_null(places):
    assert answer(places, "halves", "place IS NULL") == (10, 10, 10)


def test_root_may_stand_for_null_in_bounds_but_not_in_the_estimate(places):
    assert answer(places, "tops", "place IS NULL") == (0, 0, 50)
    assert answer(places, "tops", "place IS NOT NULL") == (50, 0, 50)


def test_groups_over_a_root_have_bounds_that_contain_the_truth(places):
    query = "SELECT place, count(*) FROM places GROUP BY place"
    text = (
        "select min(low), max(high), bool_and(original between low and high) from relative_error($1, 'places', 'tops')"
    )
    assert places.execute(text, [query]).fetchall() == [(0, 50, True)]


@pytest.mark.parametrize("call", ["mondrian('t', 2)", "anatomy('t', 2)"])
@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from (select who from t group by who having count(*) > 1)",
        "select avg(n) from (select who, count(*) as n from t group by who)",
        "with g as (select who, count(*) as n from t where who < 3 group by who) select sum(n) from g",
    ],
)
def test_groups_by_a_column_that_is_not_released_are_refused_by_name(con, call, query):
    con.execute("create table t as select i % 5 as who, i % 7 as age, 'd' || i % 3 as ill from range(30) as r(i)")
    con.execute("comment on column t.age is 'anon: quasi'; comment on column t.ill is 'anon: sensitive'")
    con.execute(f"create table r as from {call}")
    for statement in ("select rewrite_query(?, 't', 'r')", "from relative_error(?, 't', 'r')"):
        with pytest.raises(duckdb.Error, match="column 'who' is not in the release r; released are "):
            con.execute(statement, [query]).fetchall()


ROLES = "qi := ['age', 'edu'], sensitive := 'ill', hierarchies := {'edu': 'tree'}"
CALLS = (
    ("rank_swap('people', 10, {})", "varchar"),
    ("microaggregate('people', 8, {})", "enum('ba', 'ma', 'hs', 'phd')"),
    ("muco('people', 0.2, {})", "varchar"),
)


@pytest.mark.parametrize(("call", "kind"), CALLS)
def test_exchanged_values_have_no_bounds_whatever_type_the_texts_have(con, call, kind):
    con.execute(
        "create table people as select (20 + hash(i, 5) % 30)::int as age, "
        f"(['ba', 'ma', 'hs', 'phd'][(1 + hash(i, 2) % 4)::int])::{kind} as edu, "
        "['flu', 'cold', 'gout'][(1 + hash(i) % 3)::int] as ill from range(120) r(i)"
    )
    con.execute(
        "create table tree as from (values ('ba', 'g0', '*'), ('ma', 'g0', '*'), ('hs', 'g1', '*'), ('phd', 'g1', '*'))"
    )
    made = call.format(f"{ROLES}, seed := {2**64}")
    con.execute(f"create table bare as from {made}")
    seeded_release(con, "described", made)
    query = "select count(*) from people where age < 30 and edu = ''ba''"
    for release in ("bare", "described"):
        for bounds in ("hard", "sure"):
            found = con.execute(
                f"select low, high, confidence, note from relative_error('{query}', 'people', '{release}', "
                f"bounds := '{bounds}', {ROLES})"
            ).fetchall()
            assert [row[:3] for row in found] == [(None, None, None)]
            assert all("may have replaced values" in row[3] for row in found)
