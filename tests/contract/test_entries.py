"""What every entry states, checked on all of them: an entry that a new file declares is tested here at once."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.docs_pages import example_connection, function_page, index
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.function_specs import REQUIRED, SECTIONS, Method, PureSql
from duckdb_anon.model.release_formats import read
from duckdb_anon.model.release_formats.formats import FORMATS
from duckdb_anon.registry import ENTRIES, METHODS
from tests.reference.entry_calls import arguments, is_scalar, require_extra, tables_of

PROJECT = Path(__file__).resolve().parents[2]
IDS = [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_entry_says_what_it_does_and_where_it_comes_from(entry):
    assert 10 < len(entry.summary) < 140
    assert not entry.summary.endswith(".")
    assert entry.paper or entry.name.startswith("anon_")
    assert entry.section in SECTIONS
    assert f"{entry.name}(" in entry.example
    assert sum(other.example == entry.example for other in ENTRIES) == 1


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_calls_of_an_entry_name_its_own_parameters_whose_defaults_pass_their_own_checks(entry):
    names = [p.name for p in parameters_of(entry)]
    assert len(set(names)) == len(names)
    assert all(set(arguments(text)) <= set(names) for text in (entry.smallest, *entry.trials))
    required = {p.name for p in entry.parameters if p.default is REQUIRED} - set(tables_of(entry))
    assert required <= set(arguments(entry.smallest))
    for parameter in parameters_of(entry):
        assert parameter.doc
        if parameter.default is not REQUIRED and parameter.default is not None:
            assert parameter.check(entry.name, parameter.default) == parameter.default


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_formats_and_functions_that_an_entry_names_exist_and_those_offered_in_place_of_it_count_persons(entry):
    formats = entry.formats if isinstance(entry, Method) else getattr(entry, "answers", ())
    assert formats == ("*",) or set(formats) <= {shape.name for shape in FORMATS}
    assert {other.unit for other in ENTRIES if other.name in entry.instead} <= {"person"}
    assert set(entry.instead) <= set(IDS)


@pytest.fixture(scope="module")
def documented():
    """The tables that the examples read, and what the methods' examples make."""
    return example_connection()


def _kinds_of_join(node: dict[str, Any]) -> set[str]:
    """Kinds of the joins in a plan; nothing of what is sorted after it was joined."""
    if node["name"].strip() == "ORDER_BY":
        return set()
    kinds = {str(node.get("extra_info", {}).get("Join Type", ""))}
    return kinds.union(*map(_kinds_of_join, node.get("children", [])))


@pytest.mark.parametrize("entry", METHODS, ids=[m.name for m in METHODS])
def test_rows_are_not_handed_over_in_the_order_of_what_is_joined_to_them(documented, entry):
    told = documented.execute(f"explain (format json) {entry.example[entry.example.index(' AS ') + 4 :]}").fetchall()
    joins: set[str] = set().union(*map(_kinds_of_join, json.loads(told[0][1])))
    assert not joins & {"RIGHT", "OUTER"}


@pytest.mark.parametrize("entry", METHODS, ids=lambda m: m.name)
def test_a_release_has_the_formats_its_method_names(documented, entry):
    columns = {n: t for n, t, *_ in documented.execute(f"describe {entry.example.split()[2]}").fetchall()}
    labelled = "visits" if "person" in entry.needs else "people"
    roles = documented.execute(f"""select column_name, comment from duckdb_columns()
        where table_name = '{labelled}' and comment is not null""").fetchall()
    found = read(
        columns, None, table="release", function=entry.name, labelled=[name for name, _ in roles],
        sensitive=[name for name, comment in roles if "sensitive" in comment],
        trees={name: "tree" for name, comment in roles if "hierarchy" in comment},
    )  # fmt: skip
    assert set(found.shapes) - {"linked"} <= set(entry.formats)
    assert entry.formats[0] in found.shapes


@pytest.mark.parametrize("entry", METHODS, ids=lambda m: m.name)
def test_a_release_put_together_from_parts_is_checked_in_sql_and_a_private_one_has_a_budget_and_no_row(entry):
    # no SELECT could count what holds of rows that were made up and of noisy counts
    unchecked = "counts" in entry.formats or "fake" in {p.name for p in entry.parameters}
    assert bool(entry.finished) == (entry.parts is not None and not unchecked)
    if entry.differentially_private:
        assert "epsilon" in {p.name for p in entry.parameters}


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e not in METHODS], ids=lambda e: e.name)
def test_example_runs_and_gives_rows(documented, entry, tmp_path, monkeypatch):
    require_extra(entry)
    monkeypatch.chdir(tmp_path)  # a report is a file
    assert documented.execute(entry.example).fetchall()


@pytest.mark.parametrize("entry", METHODS, ids=[m.name for m in METHODS])
def test_methods_example_makes_its_release(documented, entry):
    made = entry.example.split()[2]
    assert documented.execute(f"select count(*) > 0 from {made}").fetchone() == (True,)


def test_help_has_all_that_an_entry_states(documented):
    rows = documented.execute('select "function", summary, example, about from anon_functions()').fetchall()
    parameters = documented.execute('select "function", parameter, meaning from anon_parameters()').fetchall()
    for entry in ENTRIES:
        ((summary, example, about),) = [row[1:] for row in rows if row[0] == entry.name]
        assert (summary, example) == (entry.summary, entry.example)
        assert [row[1:] for row in parameters if row[0] == entry.name] == [
            (p.name, p.doc) for p in parameters_of(entry)
        ]
        assert isinstance(entry, PureSql) == (about is None)
        if isinstance(entry, Method):
            assert len(about) > 200 and "Cost" in about
    muco = documented.execute("select parameter, meaning from anon_parameters('muco')").fetchall()
    assert muco == [row[1:] for row in parameters if row[0] == "muco"]


@pytest.mark.parametrize("entry", [e for e in ENTRIES if tables_of(e)], ids=lambda e: e.name)
def test_a_missing_table_is_a_clear_error_and_nothing_is_written(con, entry):
    given = ", ".join(f"{name} := 'nowhere'" for name in tables_of(entry))
    call = f"{'select' if is_scalar(entry) else 'from'} {entry.name}({given})"
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"create table made as {call}").fetchall()
    message = str(caught.value)
    assert entry.name in message and "internal error" not in message and "Traceback" not in message
    assert set(re.findall(r"(\w+) :=", message.split("LINE 1")[0])) <= {p.name for p in parameters_of(entry)}
    assert con.execute("show tables").fetchall() == []


def test_index_of_functions_links_to_the_page_of_every_entry():
    found = re.findall(r"\[`(\w+)`\]\((\w+)\.md\)", index(ENTRIES))
    assert sorted(found) == sorted((entry.name, entry.name) for entry in ENTRIES)


@pytest.mark.parametrize("name", ["muco", "k_anonymity", "anon_functions"])
def test_page_of_a_function_has_its_parameters_and_the_output_of_its_example(documented, name):
    (entry,) = (one for one in ENTRIES if one.name == name)
    text = function_page(entry, documented)
    assert all(f"| `{parameter.name}` |" in text for parameter in parameters_of(entry))
    output = text.split("## Example")[1].split("```\n\n")[1]
    assert len([line for line in output.splitlines() if line.startswith("| ")]) >= 2


def test_readme_examples_run():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    con = duckdb_anon.connect()
    blocks = re.findall(r"```sql\n(.*?)```", readme, flags=re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        con.execute(block).fetchall()
    before, after = (
        con.execute(f"select identity from disclosure('people', {r})").fetchone()
        for r in ("'(SELECT *, rowid AS row_id FROM people)'", "'checked'")
    )
    assert after[0] < before[0] / 5
