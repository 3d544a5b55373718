"""Cells of new values: every ordered DuckDB type, there and back, and what is reckoned on its scale."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon import sql_functions
from duckdb_anon.model.coded_table import Attribute, CodedTable
from duckdb_anon.model.function_specs import ColumnPlan, Method, Params, Roles
from duckdb_anon.model.number_scale import Scale
from duckdb_anon.model.released_columns import ROWS, Cells, Source, Value

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

ENDS = {
    "TINYINT": ("-128", "127"), "SMALLINT": ("-32768", "32767"), "INTEGER": ("-2147483648", "2147483647"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"), "UTINYINT": ("0", "255"), "USMALLINT": ("0", "65535"),
    "UINTEGER": ("0", "4294967295"), "UBIGINT": ("9223372036854775809", "18446744073709551615"),
    "HUGEINT": ("-99999999999999999999999999999999999999", "-99999999999999999999999999999999999000"),
    "FLOAT": ("-3.4028235e38", "3.4028235e38"), "DOUBLE": ("-1.7976931348623157e308", "1.7976931348623157e308"),
    "DECIMAL(4,1)": ("-999.9", "999.9"), "DECIMAL(9,2)": ("-9999999.99", "9999999.99"),
    "DECIMAL(18,12)": ("-999999.999999999999", "999999.999999999999"),
    "DECIMAL(38,0)": ("99999999999999999999999999999999999000", "99999999999999999999999999999999999999"),
    "DECIMAL(38,38)": ("-0.00000000000000000009", "0.00000000000000000009"),
    "DATE": ("5877642-06-25 (BC)", "5881580-07-10"), "TIME": ("00:00:00", "24:00:00"),
    "TIME_NS": ("00:00:00", "24:00:00"), "TIMESTAMP": ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806"),
    "TIMESTAMP_S": ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54"),
    "TIMESTAMP_MS": ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775"),
    "TIMESTAMP_NS": ("1677-09-22 00:00:00", "2262-04-11 23:47:16.854775806"),
    "TIMESTAMPTZ": ("290309-12-22 (BC) 00:00:00+00", "294247-01-10 04:00:54.775806+00"),
    "TIMESTAMPTZ_NS": ("1677-09-22 00:00:00+00", "2262-04-11 23:47:16.854775806+00"),
}  # fmt: skip
INSIDE = {
    "DATE": ["0001-01-01", "0001-12-31 (BC)", "9999-12-31", "10000-01-01", "1970-01-01", "2024-02-29", "infinity"],
    "TIME": ["23:59:59.999999", "12:00:00", "00:00:00.000001"], "TIME_NS": ["23:59:59.999999999", "12:00:00"],
    "TIMESTAMP": ["0044-03-15 (BC) 01:02:03.5", "1969-12-31 23:59:59.999999", "10000-01-01", "-infinity"],
    "TIMESTAMP_S": ["1970-01-01", "0001-12-31 (BC) 23:59:59"],
    "TIMESTAMP_MS": ["1969-12-31 23:59:59.999", "12024-01-01 00:00:00.001"],
    "TIMESTAMP_NS": ["1969-12-31 23:59:59.999999999", "2020-01-01 00:00:00.000000001"],
    "TIMESTAMPTZ": ["0044-03-15 (BC) 01:02:03.5+00", "2024-03-31 01:30:00+00", "2024-03-31 02:30:00+02"],
    "FLOAT": ["0.1", "1e-45", "nan", "inf"], "DOUBLE": ["0.1", "5e-324", "-inf"],
}  # fmt: skip
Numbers = Callable[[Attribute, Scale], np.ndarray[Any, Any]]
Released = Callable[[duckdb.DuckDBPyConnection, str, Numbers], str]


def releasing(patch: pytest.MonkeyPatch) -> Released:
    """Release column x of a table with the numbers of each code in its place; special values become NULL."""

    def run(con: duckdb.DuckDBPyConnection, table: str, numbers: Numbers) -> str:
        def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
            return (ColumnPlan("n", Source), *(ColumnPlan(info.name, Value) for info in roles.qi))

        def release(coded: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
            attribute = coded.qi[0]
            index = np.where(attribute.codes < attribute.special_from, attribute.codes, -1).astype(np.int64)
            made = numbers(attribute, attribute.scale_for("new_values"))
            return {attribute.name: Value(attribute.name, made, index), ROWS: Source(np.arange(coded.rows))}

        said = dict.fromkeys(("summary", "paper", "example"), "")
        entry = Method(name="new_values", **said, parameters=(), formats=("rows",), layout=layout, release=release)
        patch.setitem(sql_functions._BY_NAME, entry.name, entry)
        con.execute(sql_functions._macro(entry))
        con.execute(f"create or replace table r as from new_values('{table}', qi := ['x'], keep := ['n'])")
        return con.execute("select any_value(typeof(x)) from r").fetchone()[0]  # type: ignore[index]

    return run


@pytest.fixture
def released(monkeypatch):
    return releasing(monkeypatch)


@pytest.mark.parametrize("duckdb_type", ENDS)
def test_every_value_of_every_ordered_type_comes_back(duckdb_type, released):
    con = duckdb_anon.connect()
    con.execute("set timezone = 'Asia/Kolkata'")
    # columns of a temporary table are not visible while the call is planned
    seen = "temp table" if list(ENDS).index(duckdb_type) % 2 else "table"
    texts = [*ENDS[duckdb_type], *INSIDE.get(duckdb_type, []), None]
    con.execute(f"create {seen} t (n integer, x {duckdb_type})")
    con.executemany("insert into t values (?, ?)", list(enumerate(texts)))
    kind = released(con, "t", lambda attribute, scale: scale.numbers)
    assert kind == con.execute("select any_value(typeof(x)) from t").fetchone()[0]
    finite = "isfinite(x)" if duckdb_type in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "FLOAT", "DOUBLE") else "true"
    expected = f"select n, case when {finite} then x end as x from t"
    assert con.execute(f"({expected} except from r) union all (from r except {expected})").fetchall() == []
    con.close()


@pytest.mark.parametrize("duckdb_type", ENDS)
def test_numbers_beyond_a_type_become_its_ends(duckdb_type, released):
    con = duckdb_anon.connect()
    con.execute(f"create table t (n integer, x {duckdb_type})")
    con.executemany("insert into t values (?, ?)", list(enumerate(ENDS[duckdb_type])))
    ends = np.array([-np.inf, np.inf]) if duckdb_type in ("FLOAT", "DOUBLE") else np.array([-(2.0**63), 2.0**63])
    released(con, "t", lambda attribute, scale: np.clip(ends, -1.79e308, 1.79e308))
    if duckdb_type.startswith(("DOUBLE", "HUGE", "UBIG")) or "(38," in duckdb_type:
        # what an int64 of steps from the smallest value reaches lies inside the type
        assert con.execute("select min(x) < max(x) from r").fetchone() == (True,)
    else:
        same = "select min(r.x) = min(t.x) and max(r.x) = max(t.x) from r, t"
        assert con.execute(same).fetchone() == (True,), con.execute("from r").fetchall()
    con.close()


@settings(max_examples=25)
@given(
    st.lists(st.decimals(-(10**6), 10**6, places=3), min_size=1, max_size=30),
    st.sampled_from(["DECIMAL(12,3)", "DECIMAL(38,3)", "DECIMAL(18,9)", "INTEGER", "DOUBLE"]),
)
def test_a_mean_is_the_exact_mean_rounded_to_the_type(values, duckdb_type):
    with pytest.MonkeyPatch.context() as patch, duckdb_anon.connect() as con:
        con.execute(f"create table t (n integer, x {duckdb_type})")
        con.executemany("insert into t values (?, ?)", list(enumerate(values)))

        def mean(attribute: Attribute, scale: Scale) -> np.ndarray[Any, Any]:
            return np.full(attribute.domain, scale.numbers[attribute.codes].mean())

        releasing(patch)(con, "t", mean)
        stored = [Decimal(row[0]) for row in con.execute("select x::varchar from t").fetchall()]
        (answer,) = {Decimal(row[0]) for row in con.execute("select x::varchar from r").fetchall()}
        step = {"DECIMAL(12,3)": "0.001", "DECIMAL(38,3)": "0.001", "DECIMAL(18,9)": "0.000000001", "INTEGER": "1"}
        exact = sum(stored) / len(stored)
        slack = Decimal(step.get(duckdb_type, "0.000000001")) * Decimal("0.501")
        assert abs(answer - exact) <= slack


def test_a_date_moved_by_days_is_that_date(released):
    con = duckdb_anon.connect()
    con.execute("create table t as select range as n, date '2019-12-20' + range::int as x from range(30)")
    assert released(con, "t", lambda attribute, scale: scale.numbers + 0.4 + 70) == "DATE"
    assert con.execute("select count(*) from t join r using (n) where r.x = t.x + 70").fetchone() == (30,)
    con.close()


def test_values_too_far_apart_for_exact_numbers_are_refused_by_name(released):
    con = duckdb_anon.connect()
    con.execute("create table t as select range as n, ('9'||repeat('0', 37 * range))::decimal(38,0) as x from range(2)")
    with pytest.raises(duckdb.Error, match=r"new_values: the values of .x. have no exact numbers"):
        released(con, "t", lambda attribute, scale: scale.numbers)
    assert con.execute("select count(*) from duckdb_tables() where table_name = 'r'").fetchone() == (0,)


def test_names_have_no_scale(released):
    con = duckdb_anon.connect()
    con.execute("create table t as select range as n, range::varchar as x from range(3)")
    with pytest.raises(duckdb.Error, match="column 'x' is categorical"):
        released(con, "t", lambda attribute, scale: scale.numbers)


def test_whole_numbers_are_not_rounded_through_floats():
    numbers = np.array([2**62 + 1, -(2**63), 2**63 - 1, 2**53 + 1])
    scale = Scale("integer", numbers, low=-(2**63), high=2**63 - 1)
    assert scale.fitted(numbers).tolist() == numbers.tolist()
    assert scale.fitted(np.array([1e300, -1e300, 2.0**62])).tolist() == [2**63 - 1, -(2**63), 2**62]
    with pytest.raises(ValueError, match="not finite"):
        scale.fitted(np.array([np.nan]))
