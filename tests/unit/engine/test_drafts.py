"""A file appears once it is complete: failures leave the one that was there, and another run's draft is not touched."""

import os
import stat
import subprocess
import sys

import pytest

from duckdb_anon.engine.records.private_files import draft_of


def test_a_failed_block_leaves_the_goal_as_it_was(tmp_path):
    goal = tmp_path / "release.duckdb"
    goal.write_text("first", encoding="utf-8")
    with pytest.raises(RuntimeError), draft_of(goal) as draft:
        draft.write_text("half", encoding="utf-8")
        draft.with_name(f"{draft.name}.wal").write_text("log", encoding="utf-8")
        raise RuntimeError
    assert [file.name for file in tmp_path.iterdir()] == ["release.duckdb"]
    with draft_of(goal):
        pass
    assert goal.read_text(encoding="utf-8") == "first"


def test_two_drafts_of_one_goal_do_not_meet(tmp_path):
    goal = tmp_path / "release.duckdb"
    with draft_of(goal) as first, draft_of(goal) as second:
        first.write_text("outer", encoding="utf-8")
        second.write_text("inner", encoding="utf-8")
    assert goal.read_text(encoding="utf-8") == "outer"
    assert stat.S_IMODE(goal.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [goal]


def test_what_a_killed_process_left_is_removed(tmp_path):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    for process in (int(ended.stdout), os.getpid()):
        (tmp_path / f".a.duckdb.{process}.01234567.part").write_text("half", encoding="utf-8")
    with draft_of(tmp_path / "a.duckdb"):
        assert [file.name for file in tmp_path.iterdir()] == [f".a.duckdb.{os.getpid()}.01234567.part"]


def test_a_folder_takes_the_place_of_the_one_before(tmp_path):
    goal = tmp_path / "parts"
    for names in (["a", "b"], ["c"]):
        with draft_of(goal) as draft:
            draft.mkdir()
            for name in names:
                (draft / name).write_text(name, encoding="utf-8")
        assert sorted(file.name for file in goal.iterdir()) == names
    assert stat.S_IMODE((goal / "c").stat().st_mode) == 0o640
