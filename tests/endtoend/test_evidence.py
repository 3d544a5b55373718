"""The evidence page for a board, in three editions, with the facts as JSON."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import html5lib
import pytest

import duckdb_anon
from duckdb_anon.cli import main
from duckdb_anon.engine.records.release_digest import release_digest
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.anon_report import write_edition
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.measure import against, measure, row_hash
from duckdb_anon.report.redaction import Edition
from duckdb_anon.report.release_context import HoldersContext, read_context

pytestmark = pytest.mark.campaign

pytest.importorskip("altair", reason="the report extra is not installed")
pytest.importorskip("vl_convert", reason="the report extra is not installed")
CONTEXT = """
title = "Census <2026>"
purpose = "Labour market research"
recipients = "University of X, under contract"
threshold = 0.2
sampling_fraction = 0.05
population = "people"
queries = ["select gender, avg(salary) from people where age < 40 group by gender"]
impossible = ["salary < 0"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("evidence")
    con = duckdb_anon.connect(str(made / "c.duckdb"))
    con.execute("create table people as from anon_sample('census', 400, seed := 7)")
    for column, role in {"age": "quasi", "gender": "quasi", "education": "quasi", "salary": "sensitive"}.items():
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    con.execute("comment on table people is 'the holder''s own words'")
    duckdb_anon.release(con, "boxes", "mondrian('people', k := 10, sensitive_edges := 1)", independent=True)
    (made / "c.toml").write_text(CONTEXT, encoding="utf-8")
    plan = Plan("people", ("boxes",), targets=100, queries=20)
    found = measure(con, plan, read_context(str(made / "c.toml")), lambda line: None)
    con.close()
    editions: tuple[Edition, ...] = ("internal", "external", "short")
    for edition in editions:
        write_edition(found, str(made / f"{edition}.html"), edition)
    return made


def facts(folder: Path, edition: str) -> Any:
    return json.loads((folder / f"{edition}.json").read_text(encoding="utf-8"))


def body(folder: Path, edition: str) -> str:
    text = (folder / f"{edition}.html").read_text(encoding="utf-8")
    return re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_a_release_without_row_id_is_measured_through_one_made_again_by_its_call(folder):
    release = facts(folder, "internal")["releases"][0]
    assert release["check_release"].startswith(
        "made again by mondrian('people', k := 10, sensitive_edges := 1, row_id := true)"
    )
    before, after = facts(folder, "internal")["original"]["risk"][0], release["risk"][0]
    assert 0 < after["identity"] < before["identity"] <= 1
    assert after["meets_threshold"] == (after["identity_high"] <= 0.2)
    assert {(row["column"], row["value"]) for row in release["subgroups"]} >= {("gender", "female"), ("gender", "male")}
    assert all(0 < row["identity"] <= 1 for row in release["subgroups"])
    assert {row["criterion"] for row in release["wp29"]}
    con = duckdb_anon.connect(str(folder / "c.duckdb"), read_only=True)
    assert {row[0] for row in con.execute("show tables").fetchall()} == {"people", "boxes"}
    assert not con.execute("select 1 from duckdb_databases() where database_name like 'anon_checks%'").fetchall()
    con.close()


def test_a_release_with_an_unknown_call_may_fail_the_limit_and_cannot_pass_it(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "c.duckdb"))
    con.execute("create table people as from anon_sample('census', 400, seed := 7)")
    for column, role in {"age": "quasi", "gender": "quasi", "education": "quasi", "salary": "sensitive"}.items():
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    con.execute("create table undescribed as from muco('people', 0.05, seed := 1, row_id := true)")
    duckdb_anon.release(con, "described", "muco('people', 0.05)", independent=True)
    con.close()
    (tmp_path / "c.toml").write_text("threshold = 0.9", encoding="utf-8")
    given = ["--original", "people", "--release", "undescribed", "--release", "described", "--targets", "60"]
    options = ["--queries", "5", "--context", str(tmp_path / "c.toml"), "-o", str(tmp_path / "e.html")]
    assert main(["report", str(tmp_path / "c.duckdb"), *given, *options]) == 0
    first, second = facts(tmp_path, "e")["releases"]
    assert first["risk"][0]["meets_threshold"] is None
    assert second["risk"][0]["meets_threshold"] is True
    strict = HoldersContext({"threshold": 0.0001})
    assert against({**first["risk"][0]}, strict, all_tried=False)["meets_threshold"] is False
    assert "Pass it as call" in first["not_measured"]["within the limit"]
    assert "within the limit" not in second["not_measured"]


def test_the_context_is_on_the_page_and_cannot_become_markup(folder):
    for edition in ("internal", "external"):
        text = body(folder, edition)
        assert "Labour market research" in text
        assert "Census &lt;2026&gt;" in text
        assert "nobody has answered them yet" in text
        assert 'name="viewport"' in text
        assert "prefers-color-scheme: dark" in text
        assert "@media print" in text


def test_the_internal_edition_holds_every_part(folder):
    release, text = facts(folder, "internal")["releases"][0], body(folder, "internal")
    for part in (
        "risk",
        "wp29",
        "population",
        "classes",
        "subgroups",
        "guarantee",
        "safe_harbor",
        "suppression",
        "utility",
        "queries",
    ):
        assert release[part], part
    assert [(row["condition"], row["original"], row["low"]) for row in release["impossible"]] == [("salary < 0", 0, 0)]
    figures = {row["figure"]: row["value"] for row in release["population"]}
    assert figures["k_map: k"] >= 10
    original = {row["figure"] for row in facts(folder, "internal")["original"]["population"]}
    assert {"share_of_population", "sample_uniques"} <= original
    assert "What these guarantees do not cover" in text
    assert {row["measure"] for row in release["utility"]} >= {"k_marginal, 2 columns (of 1000)"}


def test_columns_that_leave_unchanged_stand_first_and_count_those_whom_they_identify(folder):
    con = duckdb_anon.connect(str(folder / "c.duckdb"), read_only=True)
    alone = "select count(*) from (select salary from people group by salary having count(*) = 1)"
    ((expected,),) = con.execute(alone).fetchall()
    con.close()
    (row,) = facts(folder, "internal")["unchanged"]
    assert (row["column"], row["unique values"], row["individuals identified"]) == ("salary", expected, expected)
    assert expected > 0
    text = body(folder, "internal")
    assert text.index("<h2>Columns that leave unchanged</h2>") < text.index("<h2>Conclusion</h2>")
    assert [(row["column"], "unique values" in row) for row in facts(folder, "short")["unchanged"]] == [
        ("salary", False)
    ]


def test_what_is_signed_is_the_file_of_facts_next_to_the_page(folder):
    for edition in ("internal", "external", "short"):
        assert hashlib.sha256((folder / f"{edition}.json").read_bytes()).hexdigest() in body(folder, edition)


def test_every_edition_answers_the_checklist_alike_and_outside_without_counts_of_the_original(folder):
    inside, outside = (facts(folder, edition)["checklist"] for edition in ("internal", "external"))
    assert [(row["point"], row["state"]) for row in inside] == [(row["point"], row["state"]) for row in outside]
    answer = {row["point"]: row["answer"] for row in outside}
    assert answer["distinguishability by each column and by all"] == "The figure is in the internal edition."
    assert "of 400 records" not in body(folder, "external") and "of 400 records" in body(folder, "internal")
    assert answer["threshold"] == "threshold: 0.2"


@pytest.mark.parametrize("edition", ["external", "short"])
def test_other_editions_tell_no_value_or_count_of_the_original(folder, edition):
    inside, outside = facts(folder, "internal"), facts(folder, edition)
    release = outside["releases"][0]
    assert not {"suppression", "queries", "impossible"} & set(release)
    assert not {"rows", "sha256", "risk"} & set(outside["original"])
    assert {row["value"] for row in release["subgroups"]} == {"(the group at most risk)"}
    assert inside["original"]["sha256"] not in body(folder, edition)
    text = (folder / f"{edition}.html").read_text(encoding="utf-8")
    page = re.sub(r"<script>(?!const CHARTS).*?</script>", "", text, flags=re.DOTALL)
    assert "avg(salary)" not in page
    assert '"original"' not in page.split("const CHARTS")[1]  # no chart of counts in the original
    assert "are unique on the quasi-identifiers" not in page and "The original has" not in page


def test_the_short_edition_has_conclusion_risk_and_signatures_without_utility(folder):
    short, external = body(folder, "short"), body(folder, "external")
    for part in ("Conclusion", "The decision", "Signature", "Prosecutor, journalist and marketer risk", "Singling out"):
        assert part in short
    for part in ("<h2>Utility</h2>", "HIPAA Safe Harbor"):
        assert part in external and part not in short
    (risk,) = facts(folder, "short")["releases"][0]["classes"]
    assert risk["prosecutor"] == 0.1 and risk["sample_uniques"] == 0
    assert re.search(r"re-identifies [\d.]+% of the records \(95% interval [\d.]+% to [\d.]+%\)", short)
    assert "the limit of 20%" in short


def test_safe_harbor_tells_generalized_columns_from_unchanged_ones(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "b.duckdb"))
    con.execute("""create table people as select date '1920-01-01' + (hash(i) % 30000)::integer as date_of_birth,
        'LS' || (10 + i % 4) as district, i % 3 as illness from range(200) t(i)""")
    con.execute("create table tree as select distinct district as leaf, 'LS**' as part, '*' as all_of from people")
    roles = {"date_of_birth": "quasi", "district": "quasi hierarchy=tree", "illness": "sensitive"}
    for column, role in roles.items():
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    duckdb_anon.release(con, "boxes", "mondrian('people', k := 70)")
    con.execute("create table undescribed as from mondrian('people', k := 70)")
    con.execute("create table kept as select date_of_birth, district, illness from people where illness = 1")
    con.close()
    given = ["--original", "people", "--release", "boxes", "--release", "undescribed", "--release", "kept"]
    more = ["--targets", "20", "--queries", "5", "-o", str(tmp_path / "b.html")]
    assert main(["report", str(tmp_path / "b.duckdb"), *given, *more]) == 0
    states = []
    for release in facts(tmp_path, "b")["releases"]:
        items = {row["identifier"]: row for row in release["safe_harbor"]}
        ages, places = items["C ages over 89"], items["B geographic subdivisions smaller than a state"]
        assert (ages["columns"], places["columns"]) == ("date_of_birth", "district")
        states.append((ages["state"], places["state"]))
        assert release["classes"][0]["small_cells"] == (0 if release["name"] != "kept" else 67)
    changed, unchanged = "released in changed form", "released unchanged"
    assert states == [(changed, changed), (changed, changed), (unchanged, unchanged)]


def test_the_external_edition_holds_no_original_value(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "p.duckdb"))
    con.execute("""create table people as select 'Nm' || (70001 + 13 * i) as name, 20011 + 7 * (i % 90) as income,
        ('Zk' || (51 + i % 7))::enum('Zk51', 'Zk52', 'Zk53', 'Zk54', 'Zk55', 'Zk56', 'Zk57') as town,
        case when i = 5 then 'Qrare' else 'Qw' || (31 + i % 3) end as trade, 'Xh' || (81 + i % 4) as hidden,
        'Sv' || (61 + i % 5) as illness from range(300) t(i)""")
    for column, role in {
        "name": "identifier", "income": "quasi", "town": "quasi", "trade": "quasi", "illness": "sensitive"
    }.items():  # fmt: skip
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    duckdb_anon.release(con, "boxes", "mondrian('people', k := 10)", key="name", independent=True)
    duckdb_anon.release(con, "buckets", "anatomy('people', 3)", key="name", independent=True)
    original_values = {str(value) for row in con.execute("from people").fetchall() for value in row}
    con.close()
    (tmp_path / "c.toml").write_text(
        "sampling_fraction = 0.1\nqueries = [\"select count(*) from people where trade = 'Qrare'\"]\n"
        "impossible = [\"trade = 'Qrare' and town = 'Zk51'\", \"town = 'Zk5'\"]\n"
    )
    given = ["--original", "people", "--release", "boxes", "--release", "buckets", "--targets", "50", "--queries", "10"]
    goal = tmp_path / "x.html"
    more = ["--context", str(tmp_path / "c.toml"), "--edition", "external", "-o", str(goal)]
    assert main(["report", str(tmp_path / "p.duckdb"), *given, *more]) == 0
    page = re.sub(r"<script>(?!const CHARTS).*?</script>", "", goal.read_text(encoding="utf-8"), flags=re.DOTALL)
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    words = set(re.findall(r"\w+", page + goal.with_suffix(".json").read_text(encoding="utf-8")))
    assert "The 2 releases of the original in the register together re-identify" in page
    assert len(original_values) > 400 and {"Qrare", "Xh81", "20011"} <= original_values
    assert not original_values & words


def test_hashes_do_not_depend_on_the_order_of_the_rows(folder):
    con = duckdb_anon.connect(str(folder / "c.duckdb"), read_only=True)
    con.execute("create temp table turned as from people order by hash(rowid)")
    assert row_hash(con, "people") == row_hash(con, "temp.turned") == facts(folder, "internal")["original"]["sha256"]
    con.execute("update temp.turned set age = age + 1 where rowid = 0")
    assert row_hash(con, "people") != row_hash(con, "temp.turned")
    con.close()


@pytest.mark.parametrize("text, message", [
    ("purpos = 'x'", "unknown 'purpos'.*did you mean 'purpose'"),
    ("threshold = 2", "threshold = 2 is not a number in"),
    ("queries = 'select 1'", "queries must be a list of texts"),
    ("a = [", "is not a valid TOML file"),
])  # fmt: skip
def test_a_context_that_cannot_be_right_is_refused(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text, encoding="utf-8")
    with pytest.raises(AnonError, match=message):
        read_context(str(tmp_path / "c.toml"))
    with pytest.raises(AnonError, match="No such file"):
        read_context(str(tmp_path / "nowhere.toml"))


def test_the_page_on_a_database_agrees_with_what_was_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    con = duckdb_anon.connect("shop.duckdb")
    con.execute("""create table people as select i as id, 'Zoe <' || i || '>' as name, 20 + i % 30 as age, i % 11 as
        debt from range(160) t(i)""")
    con.execute("""create table visits as select i % 170 as pid, i % 4 as ward, 'note ' || i as note, i % 9 as fee
        from range(300) t(i)""")
    con.close()
    Path("plan.toml").write_text(
        """
        tables = {people = "shop.duckdb:people", visits = "shop.duckdb:visits"}
        labels.people = {name = "identifier", age = "quasi", debt = "sensitive"}
        labels.visits = {ward = "quasi categorical", note = "identifier"}
        treatments.visits = {note = "redact", fee = "round(to := 5)"}
        [database]
        individuals = "people"
        key = "id"
        k = 4
        l = 2
        output = "out.duckdb"
        evidence = "page.html"
        keys = {visits.pid = "people.id"}
        """
    )
    assert main(["run", "plan.toml"]) == 0, capsys.readouterr().err
    con = duckdb_anon.connect("out.duckdb", read_only=True)
    found = json.loads(Path("page.json").read_text(encoding="utf-8"))
    rows = {row["table"]: row for row in found["tables"]}
    released = con.execute("select count(*), count(distinct pid) from visits").fetchone()
    assert (rows["visits"]["released"], rows["visits"]["individuals"]) == released
    lost = sum(row["rows"] for row in found["lost"] if row["table"] == "visits")
    assert lost == rows["visits"]["rows"] - rows["visits"]["released"] > 0
    treatments = {(row["table"], row["column"]): row["treatment"] for row in found["columns"]}
    assert treatments["people", "name"] == treatments["visits", "note"] == "dropped"
    assert treatments["visits", "fee"] == "round(to := 5)" and treatments["visits", "ward"] == "generalized"
    assert {column for table, column in treatments if treatments[table, column] != "dropped" and table == "visits"} == {
        column for column, *_ in con.execute("describe visits").fetchall()
    }
    least = con.execute("select min(n) from (select count(*) as n from people group by age)").fetchone()
    assert all(row["holds"] is not False for row in found["guarantees"])
    assert 4 <= found["smallest"] <= least[0]
    assert 0 < min(row["counted"] for row in found["guarantees"] if row["guarantee"].startswith("l: ")) <= 0.5
    alone = {row["column"]: (row["unique values"], row["individuals identified"]) for row in found["unchanged"]}
    assert alone == {"debt": (0, 0)}
    states = {row["point"]: row["state"] for row in found["checklist"]}
    assert states["adversarial testing"] == states["length of the key"] == "computed" and states["domain"] == "open"
    judged, more = (max(r["high"] for r in found["risks"] if r["judged"] is side) for side in (True, False))
    (risk,) = [row["answer"] for row in found["checklist"] if row["point"] == "risk of re-identification"]
    assert (
        f"{float(f'{100 * judged:.3g}'):g}%, the upper end" in risk and f"up to {float(f'{100 * more:.3g}'):g}%" in risk
    )
    assert states["threshold"] == "open" and found["warnings"] == []
    risks = {row["known"]: row for row in found["risks"]}
    assert list(risks)[-1].endswith("(strongest attacker)")
    assert not risks["demographics and all events and one value of people.debt"]["judged"]
    assert {row["fact"]: row["value"] for row in found["provenance"]}[
        "SHA-256 of the rows of people"
    ] == release_digest(con, "people")
    con.close()
    page = re.sub(r"<script>.*?</script>", "", Path("page.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    html5lib.HTMLParser(strict=True).parse(page)
    assert "Zoe" not in page + json.dumps(found) and "note 1" not in page
    released, digest = Path("out.duckdb").stat().st_mtime_ns, found["provenance"]
    assert main(["run", "plan.toml"]) == 0 and "written again" not in capsys.readouterr().out
    with Path("plan.toml").open("a") as plan:
        plan.write('\n[statements]\ndomain = "the <registry>"\nattempt = 0.5\n')
    assert main(["run", "plan.toml"]) == 0 and "page.html: written again" in capsys.readouterr().out
    again = json.loads(Path("page.json").read_text(encoding="utf-8"))
    assert Path("out.duckdb").stat().st_mtime_ns == released and again["provenance"] == digest
    (domain,) = [row for row in again["checklist"] if row["point"] == "domain"]
    assert domain["state"] == "stated" and "domain: the <registry>" in domain["answer"]
    assert hashlib.sha256(Path("page.json").read_bytes()).hexdigest() in Path("page.html").read_text(encoding="utf-8")
    assert "Probability of an attempt 0.5 (as stated)" in Path("page.html").read_text(encoding="utf-8")
    Path("page.html").unlink()
    assert main(["run", "plan.toml"]) == 0
    assert "page.html: missing, as the release was kept" in capsys.readouterr().out


@pytest.mark.parametrize("linked", [True, False])
def test_a_release_of_a_database_and_its_page_appear_together(tmp_path, linked):
    con = duckdb_anon.connect()
    con.execute("create table people as select i as id, 20 + i % 30 as age from range(120) t(i)")
    con.execute("create table visits as select i % 120 as pid, i % 4 as ward from range(200) t(i)")
    for column in ("people.age", "visits.ward"):
        con.execute(f"comment on column {column} is 'anon: quasi'")
    given = f"""['people', 'visits'], individuals := 'people', key := 'id', k := 4, keys := {{'visits.pid': 'people.id'}},
        linked := {linked}, evidence := '{tmp_path}"""
    with pytest.raises(duckdb.Error, match=r"nowhere/page.html: No such file"):
        con.execute(f"from anon_release_database({given}/nowhere/page.html')")
    assert con.execute("select count(*) from duckdb_schemas() where schema_name = 'release'").fetchone() == (0,)
    con.execute(f"from anon_release_database({given}/page.html')")
    found = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert found["linked"] is linked and bool(found["risks"]) is linked
    assert ("There is no attack on the join" in (tmp_path / "page.html").read_text(encoding="utf-8")) is not linked
    con.close()
