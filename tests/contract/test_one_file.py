"""Adding a method or a measure is one file: toys of a temporary folder are called, listed and tested like the others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

PROJECT = Path(__file__).resolve().parents[2]
METHOD = '''
"""Toy: every row as it is, which protects nothing. This text is as long as the tests want the text of a method to be,
since a method states what it releases, its guarantee (none), its source (none), and its cost. Cost: O(n).
"""

import numpy as np

from duckdb_anon.model.function_specs import ColumnPlan, Method
from duckdb_anon.model.released_columns import ROWS, Source


def layout(roles, params):
    infos = roles.qi + roles.sensitive + roles.keep
    return tuple(ColumnPlan(info.name, Source) for info in infos)


def release(table, params, rng):
    return {ROWS: Source(np.arange(table.rows, dtype=np.int64))}


METHOD = Method(
    name="toy_method",
    summary="every row as it is, for a test",
    paper="none",
    example="CREATE TABLE toy_method_made AS FROM toy_method('people')",
    formats=("rows",),
    instead=("mondrian",),
    parameters=(),
    layout=layout,
    release=release,
)
'''
MEASURE = '''
"""Toy measure: how many rows a release has. Cost: none."""

from duckdb_anon.model.function_specs import Report

MEASURE = Report(
    name="toy_measure",
    summary="rows of original and release, for a test",
    paper="none",
    example="FROM toy_measure('people', 'boxes')",
    section="Utility",
    parameters=(),
    returns={"original": "BIGINT", "release": "BIGINT"},
    compute=lambda call: [(call.original.rows, call.release.rows)],
    tables=("original", "release"),
    reads="tables",
    answers=("rows", "boxes"),
    instead=("linkage_risk",),
)
'''
FILES = {"methods/toy_method.py": METHOD, "measures/toy_measure.py": MEASURE}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Function to outcome to tests: the contract tests, run on the toys alone in a process that finds them."""
    folder = tmp_path_factory.mktemp("entries")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.lstrip(), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.reference.extra_entries", "-n", "0", "-k", "toy_", "-rA",
         "--tb=no", "-m", "campaign or not campaign", "tests/contract", "--ignore=tests/contract/test_one_file.py"],
        cwd=PROJECT, env={**os.environ, "ANON_EXTRA_ENTRIES": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, dict[str, set[str]]] = {}
    for outcome, test, name in re.findall(
        r"^(PASSED|FAILED|ERROR) \S+::(\w+)\[.*?(toy_\w+).*\]", ran.stdout, re.MULTILINE
    ):
        found.setdefault(name, {}).setdefault(outcome, set()).add(test)
    assert set(found) == {Path(file).stem for file in FILES}, ran.stdout + ran.stderr
    return found


@pytest.mark.parametrize("name", ["toy_method", "toy_measure"])
def test_a_whole_entry_meets_every_contract(outcomes, name):
    assert set(outcomes[name]) == {"PASSED"}
    assert len(outcomes[name]["PASSED"]) > 8
