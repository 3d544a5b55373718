"""Promises of muco on random tables of all kinds of columns, re-checked in SQL, and the insider on real ones."""

from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import All, FrequencyDiversity, KAnonymity
from duckdb_anon.kernels.permutation.marginal_calibration import repaired
from duckdb_anon.kernels.permutation.permute_within_groups import permuted
from duckdb_anon.methods import muco
from duckdb_anon.model.coded_table import CodedTable
from tests.reference.cover_lp import nominal, ordered
from tests.reference.insider import binned, found_by_insider, smallest_groups

ROLES = "qi := ['age', 'day', 'pay', 'sex', 'code', 'town'], sensitive := ['disease', 'ward'], keep := ['note'], " \
        "categorical := 'code', hierarchies := {'town': 'towns'}"  # fmt: skip
LINEAR = "tables := 'linear', " + ROLES.replace("['disease', 'ward']", "'disease'")
COLUMNS = ("age", "day", "pay", "sex", "code", "town")
DELTAS = {"1/2": 1 / 2, "1/3": 1 / 3, "0.3": 0.3, "0.37::double": 0.37, "1/5::double": 1 / 5, "0.2::decimal(3,1)": 0.2}
# a record's share of a published value, and the sum of its row, from the tables alone
BROKEN = """
    with tables as (from muco_tables('t', {delta}, {roles})),
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
def database():
    con = duckdb_anon.connect()
    con.execute("""
        create table towns as
        select 'town ' || i as town, 'county ' || i // 2 as county, 'state' as state from range(6) r(i)
    """)
    yield con
    con.close()


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
            'd' || i % 6 as disease, i % 5 as ward, i * 1.5 as note, i as place
        from range({case["rows"]}) r(i)
    """)


@st.composite
def tables_of_the_paper(draw: st.DrawFn) -> dict[str, Any]:
    """Rows, NULL share and domain sizes of a random table, and the setting muco runs in."""
    return {
        "rows": draw(st.integers(20, 90)), "seed": draw(st.integers(0, 10**6)),
        "ages": draw(st.sampled_from([1, 2, 7, 60])), "nulls": draw(st.sampled_from([0, 4, 10])),
        "delta": draw(st.sampled_from(sorted(DELTAS))),
        "min_changed": draw(st.sampled_from([0, 1, 2, 3])),
    }  # fmt: skip


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=tables_of_the_paper())
def test_promises_of_the_papers_tables_hold_on_random_tables(database, case):
    con = database
    build(con, case)
    broken = con.execute(BROKEN.format(delta=case["delta"], value=DELTAS[case["delta"]], roles=LINEAR)).fetchone()
    # no bad row, no record above delta, no small group, every attribute covers all records, outputs of the group
    assert broken == (0, 0, 0, 1, 0)
    con.execute(f"""
        create or replace table r as from muco('t', {case["delta"]}, min_changed := {case["min_changed"]}, row_id := true, {LINEAR})
    """)
    differs = " + ".join(f"(r.{q} is distinct from t.{q})::integer" for q in COLUMNS)
    least, rows, touched = con.execute(f"""
        select min({differs}), count(*), count(*) filter (r.disease <> t.disease or r.note <> t.note)
        from r join t on r.row_id = t.place
    """).fetchone() or (0, 0, 0)
    assert least >= case["min_changed"]
    assert (rows, touched) == (case["rows"], 0)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), least=st.sampled_from([1.0, 2.0, 2.4]), repair=st.booleans())
def test_histograms_of_every_group_are_exact(seed, k, least, repair):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(30, 200))
    qi = [
        ordered(rng.integers(0, 40, rows)),
        nominal(rng.integers(0, 5, rows).tolist()),
        ordered(rng.integers(0, 3, rows)),
    ]
    secret = nominal((np.arange(rows) % 4).tolist(), "s")
    group = partition(qi, secret.codes, All((KAnonymity(k), FrequencyDiversity(least))), cut="sse")
    source = permuted(group, 3, rng)
    if repair:
        source = repaired(qi, [secret], group, source, rng)
    for attribute, taken in zip(qi, source, strict=True):
        before = Counter(zip(group.tolist(), attribute.codes.tolist(), strict=True))
        assert before == Counter(zip(group.tolist(), attribute.codes[taken].tolist(), strict=True))


def census_columns(shared: Any) -> tuple[list[Any], Any]:
    table = duckdb.connect().read_csv(str(shared / "census.csv")).df().sample(12_000, random_state=1)
    kinds = {"RELATE": nominal, "SEX": nominal, "AGE": ordered, "MARST": nominal, "RACE": nominal, "EDUC": nominal,
             "UHRSWORK": ordered}  # fmt: skip
    return [kind(table[name].tolist()) for name, kind in kinds.items()], ordered(table["INCWAGE"].tolist())


def adult_columns(shared: Any) -> tuple[list[Any], Any]:
    table = duckdb.connect().read_csv(str(shared / "adult.csv")).df().sample(4_000, random_state=1).fillna("")
    kinds = {"age": ordered, "workclass": nominal, "education": nominal, "marital_status": nominal, "race": nominal,
             "sex": nominal, "native_country": nominal}  # fmt: skip
    return [kind(table[name].tolist()) for name, kind in kinds.items()], nominal(table["occupation"].tolist())


@pytest.mark.parametrize(("columns", "repair"), [(adult_columns, True), (census_columns, False)])
def test_an_insider_with_a_model_stays_at_delta_in_the_smallest_groups(shared_data, columns, repair):
    rng = np.random.default_rng(1)
    qi, secret = columns(shared_data)
    qi, secret = [replace(a, name=f"q{q}") for q, a in enumerate(qi)], replace(secret, name="secret")
    given = {"delta": 0.1, "tables": "uniform", "repair": repair}
    params = muco.refine({parameter.name: None for parameter in muco.METHOD.parameters} | given)

    def call(attributes: list[Any]) -> list[np.ndarray]:
        cells = muco.release(CodedTable(len(secret.codes), tuple(attributes), (secret,)), params, rng)
        return [cells[a.name].codes for a in attributes]

    group = muco.groups_of(CodedTable(len(secret.codes), tuple(qi), (secret,)), params)
    released = call(qi)
    again = call([replace(a, codes=codes) for a, codes in zip(qi, released, strict=True)])
    own = secret.kind == "nominal"
    found = found_by_insider(
        [a.codes for a in qi], released, again, [a.kind == "nominal" for a in qi], group, binned(secret.codes, own)
    )
    few = smallest_groups(group)
    for chances in found.values():
        assert chances[few].mean() <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / few.sum())
        assert chances.mean() <= 0.1
    # the model is worth something: without it she has one over the group
    if not repair:
        fair = float((1 / np.bincount(group)[group]).mean())
        assert abs(found["moves, assigned"].mean() - fair) < 4 * np.sqrt(fair / len(group))
        assert found["sensitive, likeliest"].mean() > fair + 4 * np.sqrt(fair / len(group))
