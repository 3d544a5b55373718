"""Promises of muco with the paper's tables on random tables, re-checked in SQL by what muco_tables and the release show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import duckdb_anon

DELTAS = {"1/2": 1 / 2, "1/3": 1 / 3, "0.3": 0.3, "0.37::double": 0.37, "1/5::double": 1 / 5, "0.2::decimal(3,1)": 0.2}
ROLES = "tables := 'linear', qi := ['age', 'day', 'pay', 'sex', 'code', 'town'], sensitive := 'disease', keep := ['note'], " \
        "categorical := 'code', hierarchies := {'town': 'towns'}"  # fmt: skip
# a record's share of a published value, and the sum of its row, from the tables alone
BROKEN = """
    with tables as (from muco_tables('t', {delta}, {more} {roles})),
        rows as (select group_id, attribute, original, sum(probability) as total from tables group by all),
        masses as (
            select group_id, attribute, output, max(probability) as most, sum(probability * records) as mass
            from tables group by all
        ),
        members as (select distinct group_id, attribute, original, records from tables),
        sizes as (select group_id, attribute, sum(records) as members from members group by all)
    select
        (select count(*) from rows where abs(total - 1) > 1e-7),
        (select count(*) from masses where most > ({value} + 1e-7) * mass),
        (select count(*) from sizes where members * {value} < 1 - 1e-7),
        (select count(distinct members) from (select attribute, sum(members) as members from sizes group by all)),
        (select count(*) from tables where output not in (
            select o.original from members o where o.group_id = tables.group_id and o.attribute = tables.attribute)
            and output is not null)
"""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb_anon.connect()
    con.execute("""
        create table towns as
        select 'town ' || i as town, 'county ' || i // 2 as county, 'state' as state from range(6) r(i)
    """)
    yield con
    con.close()


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Rows, NULL share and domain sizes of a random table, and the setting muco runs in."""
    return {
        "rows": draw(st.integers(20, 90)),
        "seed": draw(st.integers(0, 10**6)),
        "ages": draw(st.sampled_from([1, 2, 7, 60])),
        "nulls": draw(st.sampled_from([0, 4, 10])),
        "delta": draw(st.sampled_from(sorted(DELTAS))),
        "cut": draw(st.sampled_from(["loss", "median"])),
        "width": draw(st.sampled_from(["range", "distinct", "spread"])),
        "subdivide": draw(st.sampled_from(["none", "assign"])),
        "balance": draw(st.sampled_from([0, 0.25, 0.75, 1])),
        "unchanged": draw(st.sampled_from(["exchange", "redraw"])),
        "min_changed": draw(st.sampled_from([0, 1, 2, 3])),
    }


def build(con: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    h, null = f"hash(i, {case['seed']}, {{}})::hugeint", f"i % 10 < {case['nulls'] // 2}"
    con.execute(f"""
        create or replace table t as select
            case when {null} then null else ({h.format(0)} % {case["ages"]})::integer end as age,
            date '2020-02-27' + ({h.format(1)} % 9)::integer as day,
            (({h.format(2)} % 500) / 4)::decimal(9, 2) as pay,
            (['f', 'm'])[1 + ({h.format(3)} % 2)::integer]::enum('m', 'f', 'x') as sex,
            ({h.format(4)} % 4)::integer * 100 as code,
            case when {null} then null else 'town ' || {h.format(5)} % 6 end as town,
            'd' || i % 6 as disease, i * 1.5 as note, i as place
        from range({case["rows"]}) r(i)
    """)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=tables())
def test_promises_hold_on_random_tables(database: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    con = database
    build(con, case)
    grouping = (
        "".join(f"{k} := '{case[k]}', " for k in ("cut", "width", "subdivide")) + f"balance := {case['balance']},"
    )
    broken = con.execute(
        BROKEN.format(delta=case["delta"], value=DELTAS[case["delta"]], more=grouping, roles=ROLES)
    ).fetchone()
    # no bad row, no record above delta, no small group, every attribute covers all records, outputs of the group
    assert broken == (0, 0, 0, 1, 0)
    con.execute(f"""
        create or replace table r as from muco('t', {case["delta"]}, {grouping} min_changed := {case["min_changed"]},
            unchanged := '{case["unchanged"]}', row_id := true, {ROLES})
    """)
    differs = " + ".join(
        f"(r.{q} is distinct from t.{q})::integer" for q in ("age", "day", "pay", "sex", "code", "town")
    )
    least, rows, touched = con.execute(f"""
        select min({differs}), count(*), count(*) filter (r.disease <> t.disease or r.note <> t.note)
        from r join t on r.row_id = t.place
    """).fetchone() or (0, 0, 0)
    assert least >= case["min_changed"]
    assert (rows, touched) == (case["rows"], 0)
