"""muco with the paper's random output tables, as a SQL function: what is touched, what is not, and what every setting promises."""

from __future__ import annotations

from math import ceil

import duckdb
import numpy as np
import pytest

from duckdb_anon.methods.muco_lp import DEFAULTS, groups_of
from duckdb_anon.model.coded_table import CodedTable
from tests.reference.cover_lp import distances, merged_cost, nominal, ordered
from tests.reference.muco import attained_delta, carriers, mean_change, row_sums

LINEAR = "tables := 'linear'"
PAPER = "cut := 'median', width := 'spread', subdivide := 'assign', balance := 0, unchanged := 'redraw'"
QI = ("born", "pay", "kind", "ward")
ROLES = f"{LINEAR}, qi := ['born', 'pay', 'kind', 'ward'], sensitive := 'disease', hierarchies := {{'ward': 'wards'}}"
DELTAS = [
    ("1/5", 1 / 5), ("1/6", 1 / 6), ("0.3", 0.3), ("0.37::double", 0.37), ("0.25::decimal(4, 2)", 0.25),
    ("0.1666666667", 1 / 6), ("1.0", 1.0),
]  # fmt: skip


@pytest.fixture
def patients(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Dates with NULLs, decimals, an enum, a hierarchy, and a column that passes through."""
    con.execute("""
        create table patients as
        select case when i % 13 = 0 then null else date '1990-01-01' + (i * 7 % 41)::integer end as born,
            (i * 11 % 23)::decimal(9, 2) + 0.25 as pay,
            (['x', 'y', 'z'])[1 + i * 5 % 3]::enum('z', 'y', 'x', 'never') as kind,
            'w' || i * 3 % 8 as ward,
            'd' || i % 7 as disease,
            'case ' || i as note
        from range(300) t(i);
        create table wards as
        select 'w' || i as ward, case when i < 3 then 'east' else 'west' end as wing, 'all' as top from range(8) t(i);
    """)
    return con


def tables_of(
    con: duckdb.DuckDBPyConnection, delta: str, more: str = ""
) -> list[tuple[int, str, str, str, float, int]]:
    return con.execute(f"from muco_tables('patients', {delta}, {ROLES}{more})").fetchall()


@pytest.mark.parametrize(("text", "delta"), DELTAS)
@pytest.mark.parametrize("more", ["", ", balance := 0", ", balance := 1", ", cut := 'median', subdivide := 'assign'"])
def test_tables_satisfy_delta_whatever_it_is_written_as(
    patients: duckdb.DuckDBPyConnection, text: str, delta: float, more: str
) -> None:
    entries = tables_of(patients, text, more)
    assert {entry[1] for entry in entries} == set(QI)
    assert all(0 < entry[4] <= 1 + 1e-9 for entry in entries)
    assert all(total == pytest.approx(1, abs=1e-7) for total in row_sums(entries).values())
    assert attained_delta(entries) <= delta + 1e-7
    assert min(carriers(entries).values()) >= ceil(1 / delta - 1e-9)


def test_tables_hold_every_record_once(patients: duckdb.DuckDBPyConnection) -> None:
    wrong = patients.execute(f"""
        with classes as (
            select distinct group_id, attribute, original, records from muco_tables('patients', 0.2, {ROLES})
        )
        select attribute, sum(records) from classes group by attribute having sum(records) <> 300
    """).fetchall()
    assert wrong == []


@pytest.mark.parametrize("setting", ["", ", " + PAPER])
@pytest.mark.parametrize("min_changed", [0, 1, 1.5, 2, 4])
def test_rows_differ_on_at_least_min_changed_quasi_identifiers(
    patients: duckdb.DuckDBPyConnection, setting: str, min_changed: float
) -> None:
    differs = " + ".join(f"(r.{name} is distinct from p.{name})::integer" for name in QI)
    changed = patients.execute(f"""
        select {differs} from muco('patients', 0.2, min_changed := {min_changed}, row_id := true, {ROLES}{setting}) r
        join (select *, row_number() over () - 1 as row_id from patients) p using (row_id)
    """).fetchall()
    assert len(changed) == 300
    assert min(n for (n,) in changed) >= int(min_changed)
    if min_changed % 1:
        # half of the rows, drawn at random, differ on one more
        assert sum(n > min_changed for (n,) in changed) >= 100


def test_other_columns_and_the_number_of_rows_are_untouched(patients: duckdb.DuckDBPyConnection) -> None:
    patients.execute(f"create table release as from muco('patients', 1/6, keep := ['note'], {ROLES})")
    pairs = "select disease, note from {} order by all"
    assert patients.execute(pairs.format("release")).fetchall() == patients.execute(pairs.format("patients")).fetchall()
    # an enum is released as text: its type would tell the values that nobody has
    types = "select column_name, if(data_type like 'ENUM(%', 'VARCHAR', data_type) from duckdb_columns() where table_name = '{}' order by column_name"
    assert patients.execute(types.format("release")).fetchall() == patients.execute(types.format("patients")).fetchall()


def test_published_values_are_values_of_the_table(patients: duckdb.DuckDBPyConnection) -> None:
    patients.execute(f"create table release as from muco('patients', 1/6, {ROLES})")
    for name in QI:
        assert patients.execute(f"select {name} from release except select {name} from patients").fetchall() == []


@pytest.mark.parametrize("setting", ["", ", " + PAPER])
def test_seeds_repeat(patients: duckdb.DuckDBPyConnection, setting: str) -> None:
    def release(seed: int) -> list[tuple[object, ...]]:
        return patients.execute(f"from muco('patients', 0.2, seed := {seed}, {ROLES}{setting})").fetchall()

    assert release(3) == release(3)
    assert release(3) != release(4)


def test_information_loss_is_the_mean_change(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select range * 7 % 31 as a, range * 5 % 11 as b, range % 9 as s from range(200)")
    con.execute(
        "create table r as from muco('t', 0.2, tables := 'linear', qi := ['a', 'b'], sensitive := 's', row_id := true)"
    )
    loss = con.execute(
        "select iloss from information_loss('t', 'r', qi := ['a', 'b']) where attribute = '(all)'"
    ).fetchone()
    both = con.execute("select t.a, t.b, r.a, r.b from r join (select *, row_number() over () - 1 as row_id from t) t "
                       "using (row_id)").fetchall()  # fmt: skip
    assert loss is not None
    assert loss[0] == pytest.approx(mean_change([row[:2] for row in both], [row[2:] for row in both]))


def test_categorical_numbers_cost_the_same_whatever_they_are_replaced_by(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select (range % 6) * (range % 6) as a, range % 9 as s from range(90)")
    call = "muco_tables('t', 1/9, tables := 'linear', qi := 'a', sensitive := 's', balance := 0{})"
    nominal_cost, ordered_cost = (
        con.execute(
            f"select sum(records * probability * (original <> output)::integer) from {call.format(more)}"
        ).fetchone()
        for more in (", categorical := 'a'", "")
    )
    assert nominal_cost is not None and ordered_cost is not None
    assert nominal_cost[0] <= ordered_cost[0] + 1e-9


def test_groups_are_diverse() -> None:
    rng = np.random.default_rng(4)
    secrets = nominal(rng.integers(0, 12, 600).tolist(), "s")
    table = CodedTable(600, (ordered(rng.integers(0, 50, 600)), nominal(rng.integers(0, 6, 600).tolist())), (secrets,))
    for more in ({}, {"cut": "median"}, {"cut": "median", "width": "spread", "subdivide": "assign"}):
        groups = groups_of(table, {**DEFAULTS, "delta": 1 / 5, "l": 5.5, **more})
        counts = np.zeros((groups.max() + 1, 12), dtype=np.int64)
        np.add.at(counts, (groups, secrets.codes), 1)
        sizes = counts.sum(axis=1)
        assert sizes.sum() == 600
        assert (sizes[sizes > 0] >= 5.5 * counts.max(axis=1)[sizes > 0]).all()


@pytest.mark.parametrize("delta", [1 / 5, 0.37])
def test_without_balance_no_table_is_cheaper(con: duckdb.DuckDBPyConnection, delta: float) -> None:
    con.execute("create table t as select range * 7 % 31 as a, range * 5 % 11 as b, range % 9 as s from range(200)")
    entries = con.execute(
        "select group_id, original::integer as v, records, sum(probability * abs(output::integer - original::integer)) "
        f"from muco_tables('t', {delta}, tables := 'linear', qi := ['a', 'b'], sensitive := 's', balance := 0) where attribute = 'a' "
        "group by all order by all"
    ).fetchall()
    for group in {entry[0] for entry in entries}:
        mine = [entry for entry in entries if entry[0] == group]
        attribute = ordered([entry[1] for entry in mine])
        least = merged_cost(distances(attribute), np.array([entry[2] for entry in mine]), delta)
        assert sum(entry[2] * entry[3] for entry in mine) == pytest.approx(least, abs=1e-6 * 31)
