"""A table and its columns may be called as the steps of a rewritten query, or as nothing SQL writes without quotes."""

from __future__ import annotations

import duckdb
import pytest

from duckdb_anon.engine.sql_quoting import ident, literal

NAMES = ("Ä B", "eligible", "by_value", "weight", "released_rows", "shares", "a.b", 'a"b', "select")
QUERIES = (
    "select {x} as k, count(*) as n from {o} where a between 22 and 31 group by {x}",
    "with values_of_a as (select {x} as k, count(*) as c from {o} group by {x}) select k, sum(c) as n from values_of_a group by k",
    "select r.g as h, sum(case when {x} = 1 then 1 else 0 end) as n, avg(a) filter (where {x} < 3) as m from {o} as r group by r.g",
)
CALLS = {"mondrian": "2", "anatomy": "2", "rr_distort": "p := 0.8"}


@pytest.mark.parametrize("method", CALLS)
def test_estimates_are_those_of_the_same_table_with_plain_names(con: duckdb.DuckDBPyConnection, method: str) -> None:
    plain = _told(con, method, "plain", "original", "released")
    for name in NAMES:
        assert _told(con, method, name, name, f"{name}_") == plain, name


def _told(con: duckdb.DuckDBPyConnection, method: str, column: str, table: str, release: str) -> list[list[str]]:
    """Estimates from a release of a table with these names."""
    con.execute(
        f"create or replace table {ident(table)} as select (20 + (i * 7) % 20)::integer as a, "
        f"(['F', 'M'])[1 + i % 2] as g, (1 + i % 4)::bigint as {ident(column)}, 'd' || i // 2 % 4 as s "
        "from (select i::integer as i from range(24) as t(i))"
    )
    roles = f"qi := ['a', 'g', {literal(column)}], sensitive := 's'"
    given = f"{literal(ident(table))}, {CALLS[method]}, {roles}, seed := 5"
    con.execute(f"create or replace table {ident(release)} as from {method}({given})")
    found = []
    for query in QUERIES:
        asked = literal(query.format(x=ident(column), o=ident(table)))
        call = f"estimate({asked}, {literal(ident(release))}, {literal(ident(table))}, {roles}, bounds := 'none')"
        rows = con.execute(f"from {call}").fetchall()
        found.append(sorted(str([round(one, 9) if isinstance(one, float) else one for one in row]) for row in rows))
    return found
