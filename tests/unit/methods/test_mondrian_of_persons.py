"""mondrian on tables in which persons have several rows, re-proved by SQL on the release joined to its persons."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

_LEAST = """
with linked as (
    select (r.month_of_birth, r.year_of_birth, r.years_of_education)::varchar as class, v.person_id as pid, r.income as s
    from boxes r join (select *, row_number() over () - 1 as row_id from visits) v using (row_id)
), whose as (select class, count(distinct pid) as persons from linked group by class),
having_ as (select class, s, count(distinct pid) as n from linked group by class, s)
select min(persons), min(persons / n) from whose join having_ using (class)
"""


def test_visits_keep_k_and_l_of_persons(con: duckdb.DuckDBPyConnection, shared_data: Path) -> None:
    con.execute(f"create table visits as select * replace (income // 20000 as income) from "
                f"(from read_csv('{shared_data / 'visits.csv'}', all_varchar := false) limit 20000)")  # fmt: skip
    con.execute("comment on column visits.person_id is 'anon: person'")
    roles = "qi := ['month_of_birth', 'year_of_birth', 'years_of_education'], sensitive := 'income'"
    con.execute(f"create table boxes as from mondrian('visits', k := 5, l := 1.2, {roles}, row_id := true)")
    persons, diversity = con.execute(_LEAST).fetchall()[0]
    assert persons >= 5 and diversity >= 1.2 - 1e-9
    assert con.execute("select count(*) from boxes").fetchall() == [(20000,)]


@pytest.mark.parametrize("diversity", ["frequency", "distinct", "entropy"])
def test_one_person_with_many_values_is_no_class(con: duckdb.DuckDBPyConnection, diversity: str) -> None:
    con.execute("create table visits as select i // 5 as pid, i // 5 as age, i % 5 as s from range(500) t(i)")
    call = "mondrian('visits', qi := ['age'], sensitive := 's', person := 'pid', row_id := true"
    # every value is had by everybody, so its share among persons is 1 whatever the classes are
    level = {"frequency": 1, "distinct": 5, "entropy": 5}[diversity]
    con.execute(f"create table boxes as from {call}, k := 5, l := {level}, diversity := '{diversity}')")
    least = con.execute(
        "select min(n) from (select count(distinct pid) as n from boxes join (select pid, row_number() over () - 1 as "
        "row_id from visits) using (row_id) group by boxes.age)"
    ).fetchall()
    assert least[0][0] >= 5
    with pytest.raises(duckdb.Error, match="give k or l"):
        con.execute(f"from {call}, t := 0.2)").fetchall()
