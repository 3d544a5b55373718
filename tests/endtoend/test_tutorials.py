"""The tutorial for data engineers runs as it stands: its files are written and its commands give what they should."""

import re
import shlex
from pathlib import Path

from duckdb_anon.cli import main

TUTORIAL = Path(__file__).resolve().parents[2] / "duckdb_anon" / "docs" / "start" / "data_engineer.md"
_BLOCK = re.compile(r"```(sh|toml)(?: title=\"(.+?)\")?\n(.*?)```", re.DOTALL)


def test_tutorial_for_data_engineers_runs_to_its_end(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for kind, title, text in _BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if kind == "toml":
            Path(title).write_text(text, encoding="utf-8")
            continue
        for line in text.splitlines():
            command, *arguments = shlex.split(line)
            assert command == "duckdb-anon"
            assert main(arguments) == 0, capsys.readouterr().err
    assert "education" in capsys.readouterr().out
    assert Path("boxes.parquet").exists()
