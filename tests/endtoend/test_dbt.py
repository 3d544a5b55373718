"""Real dbt builds the example project, and fails the build when k or the strongest risk is off."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed")
PROJECT = Path(__file__).parents[2] / "examples" / "dbt"


def build(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run `dbt build` on a copy of the project."""
    project = folder / "project"
    if not project.exists():
        shutil.copytree(PROJECT, project)
    command = [str(Path(sys.executable).with_name("dbt")), "build", "--profiles-dir", ".", *more]
    told = {**os.environ, "ANON_EXAMPLE_DATABASE": str(folder / "d.duckdb"), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    return subprocess.run(command, cwd=project, env=told, capture_output=True, text=True, timeout=300)


def test_build_labels_releases_and_tests(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 0, done.stdout
    con = duckdb.connect(str(tmp_path / "d.duckdb"))
    said = dict(con.execute("select column_name, comment from duckdb_columns() where table_name = 'people'").fetchall())
    assert (said["age"], said["salary"]) == ("anon: quasi", "anon: sensitive")
    assert (
        con.execute(
            "select min(n) from (select count(*) as n from people_release group by age, gender, education)"
        ).fetchall()[0][0]
        >= 10
    )
    assert "row_id" not in [row[0] for row in con.execute("describe people_release").fetchall()]
    con.close()


def test_build_fails_and_makes_no_release_where_k_is_off(tmp_path: Path) -> None:
    done = build(tmp_path, "--vars", "{k: 2}")
    assert done.returncode == 1, done.stdout
    assert "k_at_least" in done.stdout and "strongest_risk_at_most" in done.stdout
    con = duckdb.connect(str(tmp_path / "d.duckdb"))
    assert "people_release" not in [row[0] for row in con.execute("show tables").fetchall()]
    con.close()
