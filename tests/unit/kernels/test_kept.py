"""Compiled code on disk: shared by processes that come at any moment, and never a reason for a call to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from duckdb_anon.kernels.kept import keep


def added(value, more):
    return value + more


@pytest.fixture
def process(tmp_path: Path) -> Callable[[], Any]:
    """What the next process has of the function: nothing but what is on disk."""

    def new() -> Any:
        dispatcher = numba.njit(added)
        keep(dispatcher, added, tmp_path)
        return dispatcher

    return new


def hits(dispatcher: Any) -> int:
    return sum(dispatcher.stats.cache_hits.values())


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.rglob(f"*{ending}"))


def test_the_next_process_compiles_nothing(process):
    assert process()(1, 2) == 3 and process()(0.5, 1) == 1.5
    whole, part = process(), process()
    assert (whole(1, 2), part(0.5, 1)) == (3, 1.5)
    assert hits(whole) == hits(part) == 1


def test_code_is_there_before_it_is_told_of(process, monkeypatch, tmp_path):
    told = []

    def index(self: Any, overloads: dict[Any, str]) -> None:
        told.append(all((found.parent / name).is_file() for name in overloads.values()))
        save(self, overloads)

    process()(1, 2)
    found = files(tmp_path, ".nbc")[0]
    save = IndexDataCacheFile._save_index
    monkeypatch.setattr(IndexDataCacheFile, "_save_index", index)
    process()(0.5, 1)
    assert told == [True]


def test_what_another_process_saves_at_the_same_time_is_never_taken_for_ones_own(process, monkeypatch):
    """Both find nothing on disk when they name what they save, and one saves between two steps of the other."""
    write, waiting = IndexDataCacheFile._save_data, [process()]

    def after_another(self: Any, *arguments: Any) -> None:
        while waiting:
            assert waiting.pop()(0.5, 1) == 1.5
        write(self, *arguments)

    with monkeypatch.context() as both:
        both.setattr(IndexDataCacheFile, "_load_index", lambda self: {})
        both.setattr(IndexDataCacheFile, "_save_data", after_another)
        assert process()(1, 2) == 3
    later = process()
    assert (later(0.5, 1), later(1, 2)) == (1.5, 3)
    assert hits(later) == 1  # the other's entry is lost, and its code nobody's


@pytest.mark.parametrize("ending", [".nbc", ".nbi"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"nothing of numba's"])
def test_what_cannot_be_read_is_compiled_anew(process, tmp_path, ending, content):
    process()(1, 2)
    for file in files(tmp_path, ending):
        file.write_bytes(content)
    again = process()
    assert again(1, 2) == 3 and hits(again) == 0
    once_more = process()
    assert once_more(1, 2) == 3 and hits(once_more) == 1
    # the file of an index that cannot be read is nobody's; one that cannot be read itself goes
    assert len(files(tmp_path, ".nbc")) == (2 if ending == ".nbi" else 1)


def test_when_a_file_was_written_does_not_matter(tmp_path):
    """The folder is named after contents: of two copies with other times, neither takes the other's code for old."""
    source, counts = tmp_path / "kernel.py", []
    source.write_text("def added(value, more):\n    return value + more\n")
    names: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    for time in (1, 2, 1, 2):
        os.utime(source, (time, time))
        dispatcher = numba.njit(names["added"])
        keep(dispatcher, names["added"], tmp_path)
        assert dispatcher(1, 2) == 3
        counts.append((hits(dispatcher), len(files(tmp_path, ".nbc"))))
    assert counts == [(0, 1), (1, 1), (1, 1), (1, 1)]


def test_a_function_without_a_file_is_not_kept(tmp_path):
    """The next one typed at a prompt may have its name and its line."""
    for text, answer in (("more + value", 3), ("more - value", 1)):
        names: dict[str, Any] = {}
        exec(f"def typed(value, more):\n    return {text}\n", names)
        dispatcher = numba.njit(names["typed"])
        keep(dispatcher, names["typed"], tmp_path)
        assert dispatcher(1, 2) == answer
    assert not list(tmp_path.iterdir())


def test_settings_of_numba_stay_as_they_are(process, monkeypatch, tmp_path):
    """They are the process's: another thread may decorate a function of its own meanwhile."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "of-the-user"))
    assert process()(1, 2) == 3
    assert files(tmp_path, ".nbc") and not (tmp_path / "of-the-user").exists()


def test_code_of_another_llvm_is_compiled_anew(process, tmp_path, monkeypatch):
    from llvmlite import binding

    process()(1, 2)
    monkeypatch.setattr(binding, "parse_bitcode", lambda code: binding.parse_assembly("of another LLVM"))
    again = process()
    assert again(1, 2) == 3 and hits(again) == 0


def test_what_cannot_be_written_is_not_kept(process, monkeypatch, tmp_path):
    def full(self: Any, name: str) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert process()(1, 2) == 3
    assert not files(tmp_path, ".nbc")


CALLS = {
    "equal": "t := 0.3, sensitive := 'ill'",
    "ordered": "t := 0.3, sensitive := 'n'",
    "tree": "t := 0.3, sensitive := 'ill', hierarchies := {'ill': 'tree'}",
    "frequency": "l := 2.5, sensitive := 'n'",
    "size": "k := 4",
}
PROCESS = f"""
import hashlib, json, sys
import duckdb_anon
calls = {CALLS!r}
con = duckdb_anon.connect()
con.execute("set enable_progress_bar = false")
con.execute("create table people as select i * 7 % 61 as age, ['f', 'm'][1 + i // 3 % 2] as sex, i * i % 7 as n, "
            "['a', 'b', 'c', 'd'][1 + i * i % 4] as ill from range(400) t(i)")
con.execute("create table tree as from (values ('a', 'x', '*'), ('b', 'x', '*'), ('c', 'y', '*'), ('d', 'y', '*'))")
for name in sys.argv[1:]:
    text = f"from mondrian('people', qi := ['age', 'sex'], {{calls[name]}})"
    rows = sorted(map(str, con.execute(text).fetchall()))
    print(name, hashlib.sha256(str(rows).encode()).hexdigest())
"""


@pytest.mark.campaign
def test_processes_that_keep_code_for_one_another_release_what_each_would_alone(tmp_path: Path) -> None:
    """A method's kernel has variants by what is asked; the code of each is kept by whichever process made it first."""

    def released(cache: str, *names: str) -> list[list[str]]:
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / cache)}
        (tmp_path / cache).mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", PROCESS, *names], capture_output=True, text=True, env=env, check=True
        )
        return [line.split() for line in done.stdout.splitlines()]

    alone = {name: digest for name, digest in released("alone", *CALLS)}
    assert len(set(alone.values())) >= 4
    for names in (
        ["ordered"], ["tree", "ordered"], ["equal"], ["frequency", "equal", "ordered", "tree"],
        ["size", "frequency", "ordered", "equal", "tree"],
    ):  # fmt: skip
        assert released("shared", *names) == [[name, alone[name]] for name in names]
