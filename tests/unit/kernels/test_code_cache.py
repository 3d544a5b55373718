"""Machine code on disk: shared by processes that come at any moment, and never a reason for a call to fail."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from duckdb_anon import kernels
from duckdb_anon.kernels import jit
from duckdb_anon.kernels.jit import Compiled, cache_folder, code_digest, compiled

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

MODULE = """
import json, sys
from numba.core import event
from duckdb_anon.kernels.jit import compiled

@compiled
def squared(value):
    return value * value

with event.install_recorder("numba:compile") as recorder:
    answers = [squared(7), squared(0.5)]
count = sum(each.data["dispatcher"].py_func.__name__ == "squared" for _, each in recorder.buffer if each.is_start)
print(json.dumps([answers, count]))
"""


def run(module: Path, cache: Path) -> list[Any]:
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, str(module)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(MODULE)
    return path


@pytest.mark.campaign
def test_a_second_process_finds_what_the_first_compiled(module, tmp_path):
    cache = tmp_path / "cache"
    assert run(module, cache) == [[49, 0.25], 2]
    assert run(module, cache) == [[49, 0.25], 0]
    moved = tmp_path / "elsewhere" / "kernel.py"
    moved.parent.mkdir()
    moved.write_text("# other lines\n" + MODULE)
    assert run(moved, cache) == [[49, 0.25], 0]
    assert len(list(cache.glob("*.nbc"))) == len(list(cache.glob("*.nbi"))) == 2


@pytest.mark.parametrize("ending", [".nbc", ".nbi"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"nothing of numba's"])
def test_what_cannot_be_read_is_compiled_anew(tmp_path, monkeypatch, ending, content):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiled(added)(1, 2) == 3
    for file in tmp_path.rglob(f"*{ending}"):
        file.write_bytes(content)
    assert compiled(added)(1, 2) == 3
    assert compiled(added)(1, 2) == 3


def added(value: int, more: int) -> int:
    return value + more


def test_what_cannot_be_written_is_not_cached(tmp_path, monkeypatch):
    def full(*arguments: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.mkstemp", full)
    monkeypatch.setattr("os.replace", full)
    assert compiled(added)(1, 2) == 3
    assert not list(tmp_path.rglob("*.nbi"))


def test_without_a_folder_functions_still_compile(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    assert cache_folder() is None
    assert compiled(added)(1, 4) == 5


def test_what_a_wheel_brings_is_read_and_nothing_is_written(tmp_path, monkeypatch):
    shipped, cache = tmp_path / "shipped", tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shipped))
    assert compiled(added)(1, 2) == 3
    monkeypatch.setattr(jit, "SHIPPED", shipped)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    assert compiled(added)(3, 4) == 7 and not list(cache.glob("*"))
    assert compiled(added)(3.0, 4) == 7 and list(cache.glob("*.nbc"))  # types that the wheel does not bring


def test_functions_of_one_name_and_line_differ_by_what_they_say(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for text, answer in (("more + value", 3), ("more - value", 1), ("SCALE * value", 5), ("SCALE * value", 7)):
        names: dict[str, Any] = {"__name__": "typed", "SCALE": answer}
        exec(f"def typed(value, more):\n    return {text}\n", names)
        assert compiled(names["typed"])(1, 2) == answer
    assert len(list(tmp_path.glob("*.nbc"))) == 4


def test_digests_differ_by_versions_and_by_what_is_called():
    digests = {
        code_digest(functions, versions)
        for functions in ([added], [added, run], [run])
        for versions in ("numba 1, int64", "numba 2, int64", "numba 1, int32")
    }
    assert len(digests) == 9


def test_named_tuples_differ_by_the_names_of_their_fields(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for fields in ("low high", "high low"):
        pair = namedtuple("pair", fields)
        assert compiled(lowest)(pair(1, 2)) == (1 if fields == "low high" else 2)


def lowest(pair: Any) -> int:
    return int(pair.low)


def test_kernels_take_only_numbers_modules_and_kernels_from_their_modules():
    """The digest of a kernel is of these: a table or a function outside it might change without a trace."""
    found = [value for module in kernel_modules() for value in vars(module).values() if isinstance(value, Compiled)]
    taken = {
        type(kernel.function.__globals__.get(name)) for kernel in found for name in kernel.function.__code__.co_names
    }
    assert len(found) > 100
    assert taken <= {type(None), int, float, np.uint64, ModuleType, Compiled}
    assert not [kernel for kernel in found if kernel.function.__closure__]


def kernel_modules() -> list[ModuleType]:
    names = [each.name for each in pkgutil.walk_packages(kernels.__path__, kernels.__name__ + ".")]
    return [importlib.import_module(name) for name in names]


@pytest.mark.campaign
def test_a_change_of_what_is_called_compiles_the_caller_anew(tmp_path):
    called, caller, cache = tmp_path / "called.py", tmp_path / "caller.py", tmp_path / "cache"
    head = "from duckdb_anon.kernels.jit import compiled\n"
    caller.write_text(
        f"import json\nfrom called import shifted\n{head}"
        "@compiled\ndef twice(value):\n    return 2 * shifted(value)\nprint(json.dumps([twice(1)]))\n"
    )
    answers = []
    for shift in (1, 2):
        called.write_text(head + f"@compiled\ndef shifted(value):\n    return value + {shift}\n")
        os.utime(called, (1, 1))
        answers += run(caller, cache)
    assert answers == [4, 6]


@pytest.mark.parametrize("age, stays", [(0.0, True), (8 * 24 * 3600.0, False)])
def test_what_was_not_used_for_a_week_is_removed(tmp_path, monkeypatch, age, stays):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    other = tmp_path / "module.other-0123456789abcdef.py311.1.nbc"
    other.write_bytes(b"")
    stamp = time.time() - age
    os.utime(other, (stamp, stamp))
    assert compiled(added)(1, 2) == 3
    assert other.exists() == stays
