"""Compiled functions: nothing at import, kept beside the package or in the user's folder, right either way."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duckdb_anon.kernels import jit as home
from duckdb_anon.kernels.jit import compiled, compiled_in_place, instead
from duckdb_anon.kernels.partition.loss_cut import groups_by_loss
from duckdb_anon.kernels.partition.privacy_checks_jit import checking, satisfied
from duckdb_anon.kernels.partition.rules import CONDITIONAL, DISTINCT, SIZE, Rule, Rules


@compiled
def doubled(value: int) -> int:
    return 2 * value


@compiled
def sum_doubled(values: np.ndarray) -> int:
    total = 0
    for value in values:
        total += doubled(value)
    return total


def test_compiled_functions_call_one_another():
    assert sum_doubled(np.array([1, 2, 3])) == 12


def test_what_only_compiled_functions_call_becomes_machine_code_in_its_callers_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # what is kept already is not made
    called = compiled(doubled.function)
    total = instead(sum_doubled, {doubled: called})
    assert total(np.array([1, 2, 3])) == 12
    own = [one.library for one in called.inner().overloads.values()]
    assert own and not any(list(library.get_defined_functions()) for library in own)
    assert all(list(one.library.get_defined_functions()) for one in total.outer().overloads.values())


def test_numbas_options_compare_as_before_once_a_function_is_compiled():
    from numba.core.targetconfig import TargetConfig

    before = TargetConfig.__eq__, TargetConfig.__hash__
    assert compiled(lambda value: value + 1)(1) == 2
    assert (TargetConfig.__eq__, TargetConfig.__hash__) == before


@compiled_in_place
def tripled(value: int) -> int:
    return 3 * value


def test_a_variant_calls_others_and_the_function_itself_stays():
    variant = instead(sum_doubled, {doubled: tripled})
    assert variant(np.array([1, 2, 3])) == 18 and sum_doubled(np.array([1, 2, 3])) == 12
    assert instead(sum_doubled, {doubled: tripled}) is variant  # compiled once a process
    assert instead(sum_doubled, {tripled: doubled}) is sum_doubled  # which calls none of them
    assert home.cache_folder(variant.function) != home.cache_folder(sum_doubled.function)


def test_variants_have_names_of_their_own_whatever_takes_whose_place():
    """Machine code is found by names: as many functions that a variant calls, in other places, make another one."""

    @compiled
    def both(value: int) -> int:
        return doubled(value) + 10 * tripled(value)

    swapped = instead(both, {doubled: tripled, tripled: doubled})
    only = instead(both, {doubled: tripled})
    assert (both(1), swapped(1), only(1)) == (32, 23, 33)
    kernels = (both, swapped, only)
    assert len({kernel.function.__qualname__ for kernel in kernels}) == 3
    assert len({home.cache_folder(kernel.function) for kernel in kernels}) == 3


def test_functions_of_one_name_have_other_numbers_in_another_process():
    code = (
        "from duckdb_anon.kernels.jit import compiled\nf = compiled(lambda value: value + 1)\nf(1)\n"
        "print(*(one.fndesc.mangled_name for one in f.outer().overloads.values()))"
    )
    names = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(names) == 2


def reached(kernel: object) -> set[str]:
    met, waiting = {kernel.function}, [kernel.function]
    while waiting:
        function = waiting.pop()
        for name in function.__code__.co_names:
            called = function.__globals__.get(name)
            if isinstance(called, home.Compiled) and called.function not in met:
                met.add(called.function)
                waiting.append(called.function)
    return {function.__name__ for function in met}


def test_only_checks_that_the_rules_are_about_are_compiled():
    sensitive = np.array([0, 1, 1], np.int32)

    def compiled_for(*rules: Rule, person: np.ndarray | None = None) -> set[str]:
        return reached(checking(groups_by_loss, Rules.of(rules, sensitive, person)))

    every = {"satisfied", "_holds", "_ordered_distance", "_tree_distance", "_conditional", "_by_chance"}
    assert reached(groups_by_loss) >= every and satisfied.function.__name__ in every
    size, distinct = Rule(SIZE, (2.0,)), Rule(DISTINCT, (2.0,))
    assert not compiled_for(size) & every
    assert compiled_for(size, distinct) & every == {"satisfied", "_holds"}
    assert compiled_for(size, person=sensitive) & every == {"satisfied", "_holds"}  # it counts persons, not rows
    conditional = Rule(CONDITIONAL, (2.0,), codes=np.zeros(2, np.int64))
    assert compiled_for(conditional) & every == {"satisfied", "_holds", "_conditional"}


def test_import_leaves_numba_alone():
    code = (
        "import sys, duckdb_anon, duckdb_anon.cli, duckdb_anon.registry, duckdb; "
        "con = duckdb.connect(); duckdb_anon.load(con); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


MODULE = """
import json, sys
from duckdb_anon.kernels.jit import compiled, cache_folder

@compiled
def squared(value):
    return value * value

answer = squared(7)
stats = squared.outer().stats
print(json.dumps([answer, sum(stats.cache_hits.values()), str(cache_folder(squared.function))]))
"""


def run(module: Path, cache: Path) -> list[object]:
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, str(module)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    module, cache = tmp_path / "kernel.py", tmp_path / "cache"
    module.write_text(MODULE)
    cache.mkdir()
    assert run(module, cache)[:2] == [49, 0]
    answer, hits, folder = run(module, cache)
    assert (answer, hits) == (49, 1) and str(folder).startswith(str(cache))


def test_the_users_folder_serves_where_the_package_cannot_be_written_to(tmp_path, monkeypatch):
    blocked = tmp_path / "package"
    blocked.write_text("a file where the folder would be")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(home, "_KERNELS", blocked)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    folder = home.cache_folder(doubled.function)
    assert folder is not None and folder.parent == tmp_path / "user" / "duckdb_anon"


def test_without_a_folder_functions_still_compile(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    assert home.cache_folder(doubled.function) is None

    def tripled(value: int) -> int:
        return 3 * value

    assert compiled(tripled)(5) == 15


@pytest.mark.campaign
def test_a_change_of_what_is_called_compiles_the_caller_anew(tmp_path):
    called, caller, cache = tmp_path / "called.py", tmp_path / "caller.py", tmp_path / "cache"
    cache.mkdir()
    head = "from duckdb_anon.kernels.jit import compiled, cache_folder\n"
    caller.write_text(
        "import json\nfrom called import shifted\n"
        + head
        + "@compiled\ndef twice(value):\n    return 2 * shifted(value)\n"
        "answer = twice(1)\nprint(json.dumps([answer, 0, str(cache_folder(twice.function))]))\n"
    )
    answers = []
    for shift in (1, 2):
        called.write_text(head + f"@compiled\ndef shifted(value):\n    return value + {shift}\n")
        os.utime(called, (1, 1))
        answers.append(run(caller, cache)[0])
    assert answers == [4, 6]


@pytest.mark.parametrize("age, kept", [(0.0, True), (8 * 24 * 3600.0, False)])
def test_what_other_versions_kept_goes_after_a_week(tmp_path, monkeypatch, age, kept):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    other = tmp_path / "compiled-0123456789abcdef"
    other.mkdir()
    stamp = home.time.time() - age
    os.utime(other, (stamp, stamp))
    assert home.cache_folder(doubled.function) is not None
    assert other.exists() == kept


def test_compiling_leaves_the_callers_settings_alone():
    import numba

    before = numba.config.OPT, gc.isenabled()

    def quadrupled(value: int) -> int:
        return 4 * value

    assert compiled(quadrupled)(2) == 8
    assert (numba.config.OPT, gc.isenabled()) == before


def test_importing_the_package_imports_nothing_that_only_some_calls_need() -> None:
    code = "import sys, duckdb_anon; print(sorted({'numba', 'scipy.stats', 'scipy.optimize', 'sklearn', 'pyspark', 'opendp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
