"""Columns that a measure does not read do not matter to it: STRUCT, MAP, VARIANT, UNION, INTERVAL and list columns."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.function_specs import Entry, Method, Task
from duckdb_anon.registry import ENTRIES
from tests.reference.entry_calls import Tables, is_scalar, reads_original, reads_release

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

METHODS = {"mondrian": "5", "anatomy": "2", "slicing": "1.2"}
NESTED = {
    "st": "{'a': 0, 'zz': 1}", "other": "{'g': 'q'}", "mp": "map {'a': pid}", "li": "[1, 2]", "ls": "[{'s': 'd1'}]",
    "va": "1::variant", "iv": "interval 3 day", "un": "union_value(num := 1)",
}  # fmt: skip
PLAIN, ALL = ["pay"], ["pay", *NESTED]
OF_THE_RELEASE = {"impute", "anatomy_qit", "anatomy_st", "describe_release"}
"""What they return are the release's own rows and columns, the nested ones among them."""
MEASURES = [
    entry
    for entry in ENTRIES
    if (reads_release(entry) or reads_original(entry))
    and not isinstance(entry, (Method, Task))
    and not is_scalar(entry)
    and entry.name not in OF_THE_RELEASE
    and "person" not in getattr(entry, "needs", ())
]


@pytest.fixture(scope="module")
def con():
    made = duckdb_anon.connect()
    made.execute("""create table people as select i as pid, i * 7 % 30 as a, ['m', 'f'][1 + i % 2] as g, 'd' || i * i % 6 as s,
        i * 3 % 100 as pay from range(120) t(i)""")
    nested = ", ".join(f"{sql} as {name}" for name, sql in NESTED.items())
    made.execute(f"create table extra as select *, {nested} from people")
    for table in ("people", "extra"):
        for column, role in (("a", "quasi"), ("g", "quasi"), ("s", "sensitive")):
            made.execute(f"comment on column {table}.{column} is 'anon: {role}'")
    for method, parameter in METHODS.items():
        made.execute(f"create table {method}_plain as from {method}('people', {parameter}, keep := {PLAIN}, seed := 1)")
        made.execute(f"create table {method}_kept as from {method}('extra', {parameter}, keep := {ALL}, seed := 1)")
    yield made
    made.close()


def answer(con: duckdb.DuckDBPyConnection, entry: Entry, original: str, release: str, kept: list[str]) -> object:
    tables = Tables(original, release, number="a", text="g", sensitive="s", qi=("a", "g"), keep=tuple(kept))
    try:
        found = con.execute(f"from {tables.call(entry, seed=1)}")
        # record_risk shows every column of the table
        places = [i for i, (name, *_) in enumerate(found.description or []) if name not in NESTED]
        rows = [tuple(row[i] for i in places) for row in found.fetchall()]
    except duckdb.Error as error:
        assert "internal error" not in str(error)
        return "refused"
    return sorted(repr(row).replace("extra", "people").replace("_kept", "_plain") for row in rows)


@pytest.mark.parametrize("entry", MEASURES, ids=lambda entry: entry.name)
def test_nested_columns_change_no_measure(con, entry):
    for method in METHODS if reads_release(entry) else ["mondrian"]:
        expected = answer(con, entry, "people", f"{method}_plain", PLAIN)
        for original, kept in (("extra", ALL), ("people", PLAIN)):
            assert answer(con, entry, original, f"{method}_kept", kept) == expected, (method, original, kept)


def test_a_struct_with_a_field_of_another_columns_name_shadows_nothing():
    con = duckdb_anon.connect()
    con.execute("create table t as select range as zip, range % 2 as sex, {'zip': 0} as address from range(100)")
    assert con.execute("select count(*) from special_uniques('t', qi := ['zip', 'sex'])").fetchone() == (100,)
