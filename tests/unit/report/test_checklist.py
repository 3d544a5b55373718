"""The checklist of guidelines: what is computed, stated and open, and the statements that answer it."""

import datetime
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import duckdb_anon
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.checklist import FIGURES, Figure, answers, own_checklist, statement_lines
from duckdb_anon.report.figures import risk_sentence
from duckdb_anon.report.measure import against
from duckdb_anon.report.release_context import HoldersContext, context_of, read_context
from duckdb_anon.report.weak_labels import release_warnings, weak_labels

FIGURES_OF_ALL = {name: Figure(f"figure of {name}", "a function") for name in FIGURES}


def of(rows, section, point):
    (row,) = [row for row in rows if row["section"] == section and row["point"].startswith(point)]
    return row


def test_points_are_computed_stated_or_open_and_open_ones_come_first():
    rows = answers(own_checklist(), FIGURES_OF_ALL, {}, {"motive": "none is known", "attempt": 0.2})
    states = [row["state"] for row in rows]
    assert states == sorted(states, key=lambda state: state != "open") and {*states} == {"open", "stated", "computed"}
    tested = of(rows, "8.2.3", "adversarial")
    assert (tested["state"], tested["answer"], tested["source"]) == ("computed", "figure of attacks", "a function")
    motive = of(rows, "6.2.3", "motive")
    assert (motive["state"], motive["answer"], motive["missing"]) == (
        "stated",
        "motive: none is known attempt: 0.2",
        "",
    )
    assert motive["source"] == "the data holder"
    again = of(rows, "8.3.4", "re-evaluation")
    assert again["state"] == "open" and again["missing"].startswith("expires: ") and " growth: " in again["missing"]


def test_a_figure_that_could_not_be_measured_leaves_its_points_open_with_the_reason():
    some = {name: figure for name, figure in FIGURES_OF_ALL.items() if name != "risk"}
    row = of(answers(own_checklist(), some, {"risk": "no row_id"}, {}), "6.3, step 5", "risk")
    assert (row["state"], row["missing"]) == ("open", "risk is not computed: no row_id.")


def test_pseudonyms_are_asked_for_only_where_a_release_has_some():
    none = {name: figure for name, figure in FIGURES_OF_ALL.items() if name not in ("pseudonyms", "key_length")}
    assert of(answers(own_checklist(), none, {}, {}), "pseudonymisation domain", "domain")["state"] == "computed"
    assert of(answers(own_checklist(), FIGURES_OF_ALL, {}, {}), "pseudonymisation domain", "domain")["state"] == "open"


def test_a_day_of_assessment_that_has_passed_opens_its_point():
    for day, state in (("2020-01-31", "open"), ("2999-12-31", "stated")):
        statements = {"expires": datetime.date.fromisoformat(day), "growth": 0.2}
        row = of(answers(own_checklist(), FIGURES_OF_ALL, {}, statements), "8.3.4", "re-evaluation")
        assert row["state"] == state and (day in row["missing"]) == (state == "open")


def test_the_stated_probability_of_an_attempt_times_the_measured_risk_is_compared_with_the_limit():
    row = dict.fromkeys(("identity", "identity_low", "attribute", "baseline", "advantage", "note")) | {
        "identity_high": 0.2
    }
    stated = HoldersContext({"attempt": 0.25, "threshold": 0.09})
    assert against(row, HoldersContext())["meets_threshold"] is False
    assert against(row, stated)["meets_threshold"] is True
    assert "0.25 (as stated) times 20%" in risk_sentence(stated, 0.2) and "5%, which is within" in risk_sentence(
        stated, 0.2
    )
    assert "1 (none is stated) times 20%" in risk_sentence(HoldersContext(), 0.2)


def test_the_keys_that_a_plan_asks_for_are_those_that_are_read(tmp_path):
    lines = [line.removeprefix("# ") for line in statement_lines()]
    assert lines[0].startswith("[statements]") and all(" = " in line and "  # " in line for line in lines[1:])
    given = tomllib.loads("\n".join(lines))["statements"]
    assert given.keys() == own_checklist().questions.keys()
    context = context_of(given, "run", Path("plan.toml"))
    assert (context.attempt, context.threshold, context.statements["growth"]) == (1.0, 0.09, 0.2)
    assert "purpose" not in context.statements  # an empty text states nothing
    plan = tmp_path / "plan.toml"
    plan.write_text('tables = {}\n[statements]\npurpose = "research"\naccept.people.pay = "a public scale"')
    read = read_context(str(plan))
    assert read.statements == {"purpose": "research"} and read.accepted("PEOPLE", "Pay") == "a public scale"


@pytest.mark.parametrize("text, named", [
    ("expires = '2027'", "expires = '2027' is not a day"), ("attempt = 0", "attempt = 0 is not a number"),
    ("accept = 'all'", "accept.TABLE.COLUMN"), ("purpos = 'x'", "did you mean 'purpose'"),
    ("checklist = 'nowhere.toml'", "No such file"),
])  # fmt: skip
def test_statements_that_cannot_be_right_are_refused(text, named):
    with pytest.raises(AnonError, match=named):
        context_of(tomllib.loads(text), "run", Path("plan.toml"))


def test_a_holder_may_bring_a_checklist_of_their_own(tmp_path):
    (tmp_path / "own.toml").write_text(
        '[statements]\nboard = "Which board?"\n[[guidelines]]\nname = "Our rules"\n'
        'points = [{section = "1", ask = "review", computed = ["risk"], stated = ["board"]}]\n'
    )
    (tmp_path / "c.toml").write_text('checklist = "own.toml"\nboard = "the ethics board"')
    context = read_context(str(tmp_path / "c.toml"))
    (row,) = answers(context.checklist, FIGURES_OF_ALL, {}, context.statements)
    assert (row["guideline"], row["state"], row["answer"]) == (
        "Our rules",
        "stated",
        "figure of risk board: the ethics board",
    )
    (tmp_path / "own.toml").write_text((tmp_path / "own.toml").read_text().replace('"risk"', '"rsk"'))
    (tmp_path / "d.toml").write_text('checklist = "own.toml"')
    with pytest.raises(AnonError, match="unknown 'rsk'"):
        read_context(str(tmp_path / "d.toml"))


@pytest.mark.skipif(
    not (find_spec("stdnum") and find_spec("phonenumbers")), reason="the profile extra is not installed"
)
def test_a_label_weaker_than_the_proposed_one_is_a_warning_until_its_reason_is_stated():
    con = duckdb_anon.connect()
    con.execute(
        "create table people as select 20 + i % 50 as age, i % 2 as sex, 'Ann ' || i as name from range(200) t(i)"
    )
    for column, role in {"age": "insensitive", "sex": "quasi", "name": "sensitive"}.items():
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    found = weak_labels(con, {"people": "people"}, HoldersContext())
    assert found.keys() == {("people", "age"), ("people", "name")}
    assert "insensitive, which is weaker than the proposed quasi" in found["people", "age"]
    comment = duckdb_anon.release(con, "r", "mondrian('people', 3)")
    assert release_warnings(con, comment) == list(found.values())
    accepted = HoldersContext(accept={"People": {"AGE": "ages are published", "name": "made up"}})
    assert weak_labels(con, {"people": "people"}, accepted) == {}
    con.close()
