"""What every registry entry promises, checked on all of them."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.function_specs import REQUIRED, Entry, Method, PureSql, Report
from duckdb_anon.registry import ENTRIES, METHODS
from tests.reference.ordinary_calls import CALLS, MEASURES, OF_PERSONS
from tests.reference.smallest_calls import smallest_call

PROJECT = Path(__file__).resolve().parents[2]
IDS = [entry.name for entry in ENTRIES]


def test_names_are_unique() -> None:
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_entry_says_what_it_does_and_where_it_comes_from(entry: Entry) -> None:
    assert 10 < len(entry.summary) < 140
    assert not entry.summary.endswith(".")
    assert entry.name == "anon_functions" or entry.paper or entry.name.startswith("anon_")


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_every_parameter_is_described_and_its_default_passes_its_own_check(entry: Entry) -> None:
    names = [p.name for p in parameters_of(entry)]
    assert len(set(names)) == len(names)
    for parameter in parameters_of(entry):
        assert parameter.doc
        if parameter.default is not REQUIRED and parameter.default is not None:
            assert parameter.check(entry.name, parameter.default) == parameter.default


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """The tables the examples read: README's people, visits with a hierarchy, and what the methods' examples make."""
    con = duckdb_anon.connect()
    con.execute("create table people as from anon_sample('census', 600, seed := 1)")
    for column in ("age", "gender", "education", "hours_per_week"):
        con.execute(f"comment on column people.{column} is 'anon: quasi'")
    con.execute("comment on column people.salary is 'anon: sensitive'")
    con.execute(
        "create table visits as select pid, 20 + hash(pid) % 40 as age, 'd' || hash(pid, i) % 12 as disease "
        "from range(300) a(pid), range(3) b(i) where i <= pid % 3"
    )
    con.execute("create table diseases as select distinct disease as leaf, 'x' || right(disease, 1), 'all' from visits")
    con.execute("create table ages as select age as leaf, age // 10 * 10 || 's', 'any age' from range(20, 61) t(age)")
    con.execute("comment on column visits.pid is 'anon: person'")
    con.execute("comment on column visits.age is 'anon: quasi hierarchy=ages'")
    con.execute("comment on column visits.disease is 'anon: sensitive hierarchy=diseases'")
    for entry in METHODS:
        con.execute(entry.example)
    return con


def _kinds_of_join(node: dict[str, Any]) -> set[str]:
    """Kinds of the joins in a plan; nothing of what is sorted after it was joined."""
    if node["name"].strip() == "ORDER_BY":
        return set()
    kinds = {str(node.get("extra_info", {}).get("Join Type", ""))}
    return kinds.union(*map(_kinds_of_join, node.get("children", [])))


@pytest.mark.parametrize("entry", METHODS, ids=[m.name for m in METHODS])
def test_rows_are_not_handed_over_in_the_order_of_what_is_joined_to_them(
    documented: duckdb.DuckDBPyConnection, entry: Method
) -> None:
    told = documented.execute(f"explain (format json) {entry.example[entry.example.index(' AS ') + 4 :]}").fetchall()
    joins: set[str] = set().union(*map(_kinds_of_join, json.loads(told[0][1])))
    assert not joins & {"RIGHT", "OUTER"}


def test_releases_put_together_of_parts_are_checked_in_sql() -> None:
    """But for rows that were made up, and counts with noise: nothing that a SELECT could count holds of these."""
    assert {m.name for m in METHODS if m.parts and not m.finished} == {"merging", "laplace_on_groups"}
    assert not [m.name for m in METHODS if m.finished and not m.parts]


def test_every_method_and_measure_is_tried_with_the_names_of_carriers() -> None:
    """By `test_ordinary_names`, which is a campaign."""
    assert set(CALLS) == {m.name for m in METHODS if "person" not in m.needs}
    taking = {e.name for e in ENTRIES if isinstance(e, Report) and e.reads == "tables" and len(e.tables) > 1}
    taking |= {e.name for e in ENTRIES if isinstance(e, PureSql)}
    assert taking - OF_PERSONS <= {call.split("(")[0] for call in MEASURES}


def test_every_example_calls_its_function_and_is_no_other_ones() -> None:
    assert all(f"{entry.name}(" in entry.example for entry in ENTRIES)
    assert len({entry.example for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e not in METHODS], ids=lambda e: e.name)
def test_example_runs_and_gives_rows(
    documented: duckdb.DuckDBPyConnection, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entry.name == "anon_report":
        pytest.importorskip("altair", reason="the report extra is not installed")
        pytest.importorskip("vl_convert", reason="the report extra is not installed")
    if entry.name in ("classification_accuracy", "propensity"):
        pytest.importorskip("sklearn", reason="the ml extra is not installed")
    monkeypatch.chdir(tmp_path)  # a report is a file
    assert documented.execute(entry.example).fetchall()


@pytest.mark.parametrize("entry", METHODS, ids=[m.name for m in METHODS])
def test_methods_example_makes_its_release(documented: duckdb.DuckDBPyConnection, entry: Method) -> None:
    made = entry.example.split()[2]
    assert documented.execute(f"select count(*) > 0 from {made}").fetchone() == (True,)


def test_functions_are_listed_with_all_that_is_known_of_them(documented: duckdb.DuckDBPyConnection) -> None:
    rows = documented.execute(
        'select "function", count(*), count(distinct about), any_value(about), any_value(example) '
        "from anon_functions() group by all"
    ).fetchall()
    assert {row[0]: row[1] for row in rows} == {e.name: max(1, len(parameters_of(e))) for e in ENTRIES}
    for name, _, texts, about, example in rows:
        entry = next(e for e in ENTRIES if e.name == name)
        assert example == entry.example
        assert texts == (0 if isinstance(entry, PureSql) else 1)
        assert about is None or about.partition("\n")[0] != (functools.__doc__ or "").partition("\n")[0]
        if isinstance(entry, Method):
            assert len(about) > 200 and "Cost" in about


def table_parameters(entry: Entry) -> set[str]:
    return {"tbl"} if isinstance(entry, Method) or not hasattr(entry, "tables") else set(entry.tables)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if table_parameters(e)], ids=lambda e: e.name)
def test_a_missing_table_is_a_clear_error_and_nothing_is_written(con: duckdb.DuckDBPyConnection, entry: Entry) -> None:
    tables = table_parameters(entry)
    given = ", ".join(f"{p.name} := 'nowhere'" for p in parameters_of(entry) if p.name in tables)
    scalar = getattr(entry, "scalar", False)
    call = f"select {entry.name}({given})" if scalar else f"from {entry.name}({given})"
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"create table made as {call}").fetchall()
    message = str(caught.value)
    assert entry.name in message
    assert "internal error" not in message
    assert "Traceback" not in message
    advised = set(re.findall(r"(\w+) :=", message.split("LINE 1")[0]))
    assert advised <= {p.name for p in parameters_of(entry)}
    assert con.execute("show tables").fetchall() == []


@pytest.mark.parametrize("entry", METHODS, ids=[m.name for m in METHODS])
def test_unlabelled_columns_never_leave(con: duckdb.DuckDBPyConnection, entry: Method) -> None:
    con.execute(
        "create table people as select range // 3 as pid, 20 + hash(range // 3) % 40 as age, (range // 3) % 2 as sex, "
        "'d' || hash(range, 1) % 12 as disease, 'secret' || range as unlabelled from range(600)"
    )
    con.execute("create table tree as select distinct disease as leaf, 'all' as root from people")
    roles = "qi := ['age', 'sex'], sensitive := 'disease'"
    if "person" in entry.needs:
        roles += ", person := 'pid', hierarchies := {'disease': 'tree'}"
    con.execute(f"create table release as from {entry.name}({smallest_call(entry, 'people')}, {roles}, seed := 1)")
    text = " ".join(str(row) for row in con.execute("from release").fetchall())
    assert "secret" not in text
    assert "unlabelled" not in str(con.execute("describe release").fetchall())


def test_page_of_functions_lists_every_one_with_its_summary_methods_first() -> None:
    page = (PROJECT / "duckdb_anon" / "FUNCTIONS.md").read_text(encoding="utf-8")
    _, methods, measures, *_ = re.split(r"^\| function \| what it does \|\n\|---\|---\|\n", page, flags=re.MULTILINE)
    for table, entries in ((methods, METHODS), (measures, ENTRIES[len(METHODS) :])):
        rows = re.match(r"(?:\|.*\n)*", table)
        assert rows is not None
        assert rows.group().splitlines() == [f"| `{entry.name}` | {entry.summary} |" for entry in entries]


def test_readme_examples_run() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    con = duckdb_anon.connect()
    blocks = re.findall(r"```sql\n(.*?)```", readme, flags=re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        con.execute(block).fetchall()
    before, after = (
        con.execute(f"select identity from disclosure('people', {r})").fetchone()
        for r in ("'(SELECT *, rowid AS row_id FROM people)'", "'checked'")
    )
    assert before is not None
    assert after is not None
    assert after[0] < before[0] / 5
