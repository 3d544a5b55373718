"""Real dbt builds the example project, and fails the build when k or the strongest risk is off."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed")
PROJECT = Path(__file__).parents[2] / "examples" / "dbt"


def build(folder: Path, *more: str, verb: str = "build") -> subprocess.CompletedProcess[str]:
    """Run dbt on a copy of the project."""
    project = folder / "project"
    if not project.exists():
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("target", "logs", "*.duckdb"))
    command = [str(Path(sys.executable).with_name("dbt")), verb, "--profiles-dir", ".", *more]
    told = {**os.environ, "ANON_EXAMPLE_DATABASE": str(folder / "d.duckdb"), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    return subprocess.run(command, cwd=project, env=told, capture_output=True, text=True, timeout=300)


def tables(folder: Path) -> list[str]:
    with duckdb.connect(str(folder / "d.duckdb"), read_only=True) as con:
        return [row[0] for row in con.execute("show tables").fetchall()]


def test_build_labels_releases_and_tests_on_every_cursor(tmp_path):
    done = build(tmp_path, "--threads", "4")
    assert done.returncode == 0, done.stdout
    assert "PASS=5 WARN=0 ERROR=0 SKIP=0" in done.stdout and "DeprecationsSummary" not in done.stdout
    with duckdb.connect(str(tmp_path / "d.duckdb"), read_only=True) as con:
        comments = "select column_name, comment from duckdb_columns() where table_name = 'people'"
        said = dict(con.execute(comments).fetchall())
        assert (said["age"], said["salary"]) == ("anon: quasi", "anon: sensitive")
        classes = "select min(n) from (select count(*) as n from people_release group by age, gender, education)"
        assert con.execute(classes).fetchall()[0][0] >= 10
        carriers = "select min(n) from (select count(*) as n from people_release group by salary)"
        assert con.execute(carriers).fetchall()[0][0] >= 10
        described = "select comment from duckdb_tables() where table_name = 'people_release'"
        assert con.execute(described).fetchone() == (
            "anon: release of people by mondrian(k := 10, sensitive_edges := 10)",
        )
        assert "row_id" not in [row[0] for row in con.execute("describe people_release").fetchall()]


@pytest.mark.parametrize(
    ("off", "failed", "passed"),
    [
        ("{k: 2}", ["k_at_least", "strongest_risk_at_most"], []),
        ("{max_risk: 0.001}", ["strongest_risk_at_most"], ["k_at_least"]),
    ],
)
def test_build_fails_and_makes_no_release(tmp_path, off, failed, passed):
    done = build(tmp_path, "--vars", off)
    assert done.returncode == 1, done.stdout
    for test in failed:
        assert f"FAIL 1 {test}" in done.stdout
    for test in passed:
        assert f"PASS {test}" in done.stdout
    assert "people_checked" in tables(tmp_path) and "people_release" not in tables(tmp_path)


def test_rows_of_a_call_nobody_says_do_not_pass_the_test_of_risk(tmp_path):
    shutil.copytree(
        PROJECT, project := tmp_path / "project", ignore=shutil.ignore_patterns("target", "logs", "*.duckdb")
    )
    (project / "models" / "people_checked.sql").write_text(
        "select * from muco('{{ ref(\"people\") }}', 0.05, sensitive_edges := 10, row_id := true, seed := 1)"
    )
    schema = project / "models" / "schema.yml"
    told = schema.read_text().replace("- k_at_least:\n          arguments: {k: 10}\n      ", "")
    said = "mondrian(k := {{ var('k', 10) }}, sensitive_edges := 10)"
    for call, passes in (("", False), ("muco(0.05, sensitive_edges := 10)", True)):
        schema.write_text(told.replace(f'call: "{said}"', f'call: "{call}"'))
        done = build(tmp_path)
        assert (done.returncode == 0) == passes, done.stdout
        assert ("FAIL 1 strongest_risk_at_most" in done.stdout) != passes


PLAN = """
[tables]
people = "d.duckdb:people"
[[releases]]
name = "boxes"
original = "people"
call = "mondrian('people', k := 10, sensitive_edges := 10)"
key = "id"
output = "boxes.parquet"
[releases.checks]
k = 10
"""


def test_five_nights_of_dbt_and_a_plan_on_its_table(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("target", "logs", "*.duckdb"))
    (tmp_path / "plan.toml").write_text(PLAN)
    everybody = "select row_number() over () as id, * from anon_sample('census', 700, seed := 7)"
    nights = [
        ("", 600, 0, ""),
        ("", 0, 3, "people: the input has no rows"),  # dbt builds an empty table
        ("", 400, 3, "the input has 400 rows and had 600"),
        ("age as years", 600, 1, "'age' is gone, 'years' is new"),
        ("", 660, 0, "60 new records published"),
    ]
    kept = b""
    for change, rows, code, said in nights:
        columns = f"* exclude (age), {change}" if change else "*"
        (project / "models" / "people.sql").write_text(f"select {columns} from ({everybody}) where id <= {rows}")
        done = build(tmp_path, "--select", "people", verb="run")
        assert done.returncode == 0, done.stdout  # dbt warns of a column that is gone
        run = subprocess.run(
            [sys.executable, "-m", "duckdb_anon.cli", "run", str(tmp_path / "plan.toml")],
            capture_output=True,
            text=True,
        )
        assert (run.returncode, said in run.stderr) == (code, True), run.stderr
        file = tmp_path / "boxes.parquet"
        assert code == 0 or file.read_bytes() == kept
        kept = file.read_bytes()
