"""Texts with a hierarchy of which a release shows values alone: they may be others' values, so nothing is certain."""

from __future__ import annotations

import duckdb
import pytest

from tests.reference.seeded import seeded_release

ROLES = "qi := ['age', 'edu'], sensitive := 'ill', hierarchies := {'edu': 'tree'}"
CALLS = (
    ("rank_swap('people', 10, {})", "varchar"),
    ("microaggregate('people', 8, {})", "enum('ba', 'ma', 'hs', 'phd')"),
    ("muco('people', 0.2, {})", "varchar"),
)


@pytest.mark.parametrize(("call", "kind"), CALLS)
def test_exchanged_values_have_no_bounds_whatever_type_the_texts_have(
    con: duckdb.DuckDBPyConnection, call: str, kind: str
) -> None:
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
