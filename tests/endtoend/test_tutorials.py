"""Tutorials of commands run as they stand: their files are written and the commands give what they should."""

import re
import shlex
from pathlib import Path

from duckdb_anon.cli import main

START = Path(__file__).resolve().parents[2] / "duckdb_anon" / "docs" / "start"
_BLOCK = re.compile(r"```(sh|toml)(?: title=\"(.+?)\")?\n(.*?)```", re.DOTALL)


def follow(page, tmp_path, monkeypatch, capsys):
    """What the commands of a tutorial print, once its files are written."""
    monkeypatch.chdir(tmp_path)
    for kind, title, text in _BLOCK.findall((START / page).read_text(encoding="utf-8")):
        if kind == "toml":
            Path(title).write_text(text, encoding="utf-8")
            continue
        for line in text.splitlines():
            command, *arguments = shlex.split(line)
            assert command == "duckdb-anon"
            assert main(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_tutorial_for_data_engineers_runs_to_its_end(tmp_path, monkeypatch, capsys):
    assert "education" in follow("data_engineer.md", tmp_path, monkeypatch, capsys)
    assert Path("boxes.parquet").exists()


def test_tutorial_for_research_environments_runs_to_its_end(tmp_path, monkeypatch, capsys):
    printed = follow("research_environment.md", tmp_path, monkeypatch, capsys)
    assert "the policy for answers was written" in printed and "primary: threshold" in printed
    assert "most" in printed and "approved" in printed
