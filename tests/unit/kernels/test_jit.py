"""Compiled functions: nothing at import, whatever they call."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from duckdb_anon.kernels import jit
from duckdb_anon.kernels.jit import compiled, instead

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]


@compiled
def doubled(value: int) -> int:
    return 2 * value


@compiled
def sum_doubled(values: np.ndarray) -> int:
    total = 0
    for value in values:
        total += doubled(value)
    return total


@compiled
def tripled(value: int) -> int:
    return 3 * value


def test_a_variant_calls_others_and_the_function_itself_stays():
    variant = instead(sum_doubled, {doubled: tripled})
    assert variant(np.array([1, 2, 3])) == 18 and sum_doubled(np.array([1, 2, 3])) == 12
    assert instead(sum_doubled, {doubled: tripled}) is variant  # compiled once a process
    assert instead(sum_doubled, {tripled: doubled}) is sum_doubled  # which calls none of them


def test_variants_have_names_of_their_own_whatever_takes_whose_place():
    """Machine code is found by names: as many functions that a variant calls, in other places, make another one."""

    @compiled
    def both(value: int) -> int:
        return doubled(value) + 10 * tripled(value)

    swapped = instead(both, {doubled: tripled, tripled: doubled})
    only = instead(both, {doubled: tripled})
    assert (both(1), swapped(1), only(1)) == (32, 23, 33)
    assert len({kernel.function.__qualname__ for kernel in (both, swapped, only)}) == 3


def test_a_numba_that_was_not_tried_gets_documented_options_alone(monkeypatch):
    monkeypatch.setattr(jit, "version", lambda name: "99.1.0")
    assert jit._options.__wrapped__(False) == jit._options.__wrapped__(True) == {"nogil": True, "error_model": "numpy"}


def test_compiling_leaves_the_callers_settings_alone():
    import numba

    before = numba.config.OPT, numba.config.CACHE_DIR, gc.isenabled()

    def quadrupled(value: int) -> int:
        return 4 * value

    assert compiled(quadrupled)(2) == 8
    assert (numba.config.OPT, numba.config.CACHE_DIR, gc.isenabled()) == before


def test_importing_the_package_imports_nothing_that_only_some_calls_need():
    code = "import sys, duckdb_anon; print(sorted({'numba', 'scipy.stats', 'scipy.optimize', 'sklearn', 'pyspark', 'opendp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
