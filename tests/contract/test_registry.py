"""What every registry entry promises, checked on all of them."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.plan import parameters_of
from duckdb_anon.registry import ENTRIES, METHODS
from duckdb_anon.spec import REQUIRED, Entry, Method

PROJECT = Path(__file__).resolve().parents[2]
SMALLEST_CALL = {
    "muco": "0.2",
    "mondrian": "k := 2",
    "incognito": "k := 2, l := 1",
    "anatomy": "2",
    "one_to_m_generalize": "2, 2",
    "rmr": "2",
    "rr_distort": "p := 0.8",
    "slicing": "2",
    "merging": "2",
    "composition": "2",
    "probabilistic": "2",
    "hybrid": "2",
    "diffgen": "5.0, domain := 'observed'",
    "laplace_on_groups": "2, 1.0",
}
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


def table_parameters(entry: Entry) -> set[str]:
    return {"tbl"} if isinstance(entry, Method) or not hasattr(entry, "tables") else set(entry.tables)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if table_parameters(e)], ids=lambda e: e.name)
def test_a_missing_table_is_a_clear_error_and_nothing_is_written(entry: Entry) -> None:
    con = duckdb_anon.connect()
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
    assert con.execute("show tables").fetchall() == []


@pytest.mark.parametrize("entry", METHODS, ids=[m.name for m in METHODS])
def test_unlabelled_columns_never_leave(entry: Method) -> None:
    con = duckdb_anon.connect()
    con.execute(
        "create table people as select range // 3 as pid, 20 + hash(range // 3) % 40 as age, (range // 3) % 2 as sex, "
        "'d' || hash(range, 1) % 12 as disease, 'secret' || range as unlabelled from range(600)"
    )
    con.execute("create table tree as select distinct disease as leaf, 'all' as root from people")
    roles = "qi := ['age', 'sex'], sensitive := 'disease'"
    if "person" in entry.needs:
        roles += ", person := 'pid', hierarchies := {'disease': 'tree'}"
    con.execute(f"create table release as from {entry.name}('people', {SMALLEST_CALL[entry.name]}, {roles}, seed := 1)")
    text = " ".join(str(row) for row in con.execute("from release").fetchall())
    assert "secret" not in text
    assert "unlabelled" not in str(con.execute("describe release").fetchall())


def test_readme_lists_every_function() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", readme, flags=re.MULTILINE))
    assert listed == set(IDS)


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
