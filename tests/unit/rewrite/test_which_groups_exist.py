"""Groups of the original by a column that the release does not have."""

from __future__ import annotations

import duckdb
import pytest


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
) -> None:
    con.execute("create table t as select i % 5 as who, i % 7 as age, 'd' || i % 3 as ill from range(30) as r(i)")
    con.execute("comment on column t.age is 'anon: quasi'; comment on column t.ill is 'anon: sensitive'")
    con.execute(f"create table r as from {call}")
    for statement in ("select rewrite_query(?, 't', 'r')", "from relative_error(?, 't', 'r')"):
        with pytest.raises(duckdb.Error, match="column 'who' is not in the release r; released are "):
            con.execute(statement, [query]).fetchall()
