"""The SQL files of examples/ run as they stand, in this package's own shell."""

from pathlib import Path

import pytest

from duckdb_anon.cli import main

pytestmark = pytest.mark.campaign

PROJECT = Path(__file__).resolve().parents[2]
FILES = sorted((PROJECT / "examples").glob("*.sql"))
NEEDS_AN_ENDPOINT = "read_releases_from_the_stock_shell.sql"


@pytest.mark.parametrize("file", [f for f in FILES if f.name != NEEDS_AN_ENDPOINT], ids=lambda f: f.stem)
def test_example_runs_to_its_end(file, monkeypatch, capsys):
    monkeypatch.chdir(PROJECT)
    assert main(["-f", str(file)]) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert said.out.count("┌") >= 2
    assert said.err == ""
