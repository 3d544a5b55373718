"""An ENUM keeps the order of its type where a query asks for an order, though a release shows its values as texts."""

import pytest

import duckdb_anon

RELEASES = {
    "boxes": "mondrian('p', 4, qi := ['a', 'm'], keep := ['other'])",
    "buckets": "anatomy('p', 2, qi := ['a'], sensitive := 'm', keep := ['other'])",
}
# fmt: off
QUERIES = (
    "select m, count(*) from p group by m order by m",
    "select * from (select m, count(*) as n from p group by m) as v order by m limit 2",
    "select min(m), max(m) from p",
    "select max(x) from (select a, max(m) as x from p group by a)",
    "select count(*) from p where m > 'sad'",
    "select count(*) from p where other <= 'ok'::enum('sad', 'ok', 'happy') and a >= 0",
    "select count(*) from p where other > (select one from words)",
    "select count(*) from p where coalesce(m, 'sad'::mood) < 'happy'::mood",
    "select count(*) from p where (other, a) > ('ok'::mood, 1)",
    "select max(case when a < 5 then other end), min(nullif(other, 'sad')) from p",
    "select median(other), quantile_disc(other, 0.2) from p",
)
# fmt: on


@pytest.fixture(scope="module")
def con():
    made = duckdb_anon.connect()
    made.execute("create type mood as enum ('sad', 'ok', 'happy')")
    made.execute(
        "create table p as select (i // 30)::int as a, (['sad', 'ok', 'happy'])[1 + i % 3]::mood as m, "
        "(['sad', 'ok', 'happy'])[1 + i % 3]::mood as other from range(90) r(i)"
    )
    made.execute("create table words as select 'ok'::mood as one")
    for name, call in RELEASES.items():
        made.execute(f"create table {name} as from {call}")
    return made


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("query", QUERIES)
def test_values_are_in_the_order_of_their_type(con, query, release):
    roles = RELEASES[release].partition("qi")[2].removesuffix(")")
    ((text,),) = con.execute(
        f"select rewrite_query(?, 'p', '{release}', bounds := 'hard', qi{roles})", [query]
    ).fetchall()
    truth = con.execute(query).fetchall()
    estimated = con.execute(text)
    names = [name for name, *_ in estimated.description or ()]
    rows = estimated.fetchall()
    assert [row[: len(truth[0])] for row in rows] == truth
    for position, name in enumerate(names[: len(truth[0])]):
        if "(m)_low" in (ends := f"{name}_low"):
            order = {"sad": 0, "ok": 1, "happy": 2}
            low, high = names.index(ends), names.index(f"{name}_high")
            assert all(order[row[low]] <= order[row[position]] <= order[row[high]] for row in rows)
