"""Whatever takes long can be stopped: long compiled loops look at the flag, and every method and measure ends."""

import ast
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import duckdb_anon
from duckdb_anon.engine import interrupts, runner
from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.thread_pool import run_detached
from duckdb_anon.model import progress
from duckdb_anon.registry import METHODS
from tests.reference.entry_calls import smallest_call

PACKAGE = Path(duckdb_anon.__file__).parent
ONE_PASS = {
    "_joined": "values", "_grouped": "rows", "_shuffle": "rows", "_deal": "rows", "_taken": "rows",
    "combine_rows": "some megabytes of scores", "bucket_scores": "the same scores", "_add_votes": "the same scores",
    "_shared": "pairs of an individual and a row",
    "_farthest_group": "rows, once a group, between ticks",
    "tally": "rows", "tally_groups": "rows", "_number": "rows", "_gather": "rows", "_widen": "rows",
    "_reorder": "rows", "complete": "a block of rows", "exchange": "a block of buckets",
    "give_each": "a block of classes", "redraw_root": "a block of rows", "give_ends": "rows, then classes",
}  # fmt: skip
"""Compiled functions that Python calls and that take no flag, and what they go through once."""


def _is_compiled(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(d, ast.Name) and d.id.startswith("compiled") for d in node.decorator_list
    )


def _looks_at_flag(kernel: ast.FunctionDef) -> bool:
    read = [n.value for n in ast.walk(kernel) if isinstance(n, ast.Subscript)]
    return any(isinstance(value, ast.Name) and value.id in ("stop", "flag") for value in read)


def test_compiled_loops_that_python_calls_take_the_flag_or_pass_once():
    kernels: dict[str, ast.FunctionDef] = {}
    from_python: set[str] = set()
    for tree in (ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")):
        inside = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_compiled(node)]
        kernels |= {node.name: node for node in inside}
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and ".kernels." in str(n.module)]
        imported = {alias.asname or alias.name for n in imports for alias in n.names}
        known = imported | {node.name for node in inside}
        nested = {id(n) for node in inside for n in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and id(node) not in nested:
                calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
                from_python |= {function.id for function in calls if isinstance(function, ast.Name)} & known
    entered = from_python & set(kernels)
    looping = {name for name in entered if any(isinstance(n, (ast.For, ast.While)) for n in ast.walk(kernels[name]))}
    flagged = {name for name in looping if _looks_at_flag(kernels[name])}
    assert looping - flagged == set(ONE_PASS)


def test_a_compiled_call_that_was_stopped_gives_nothing_back():
    @compiled
    def counting(out: np.ndarray, stop: np.ndarray) -> int:
        for i in range(len(out)):
            if stop[0] != 0:
                return -1
            out[i] = i
        return len(out)

    with interrupts.watching() as flag:
        assert counting(np.zeros(3), progress.stop_flag()) == 3
        flag[0] = 1
        with pytest.raises(progress.Interrupted):
            counting(np.zeros(3), progress.stop_flag())


def test_a_library_that_cannot_be_stopped_is_left_to_itself():
    finish = threading.Event()
    with interrupts.watching() as flag:
        assert run_detached(lambda: 3) == 3
        flag[0] = 1
        with pytest.raises(progress.Interrupted):
            run_detached(finish.wait)
    finish.set()


@pytest.fixture(scope="module")
def con():
    con = duckdb_anon.connect()
    con.execute("set threads = 1")
    con.execute("""create table people as select i // 2 as pid, (i * 7) % 30 as age, i % 2 as sex, 'd' || i % 12 as disease
        from range(240) r(i)""")
    con.execute("create table tree as select distinct disease as leaf, 'all' as root from people")
    return con


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_every_method_stops_while_it_reads_and_before_it_writes(con, method, monkeypatch):
    roles = "qi := ['age', 'sex'], sensitive := 'disease'"
    if "person" in method.needs:
        roles += ", person := 'pid', hierarchies := {'disease': 'tree'}, changing := 'set'"
    statement = f"create table r as from {method.name}({smallest_call(method, 'people')}, {roles})"
    for phase in ("coded_table", "encode_release"):
        stopped = _stopping_before(monkeypatch, phase)
        with pytest.raises((duckdb.Error, RuntimeError), match=r"(?i)interrupt"):
            con.execute(statement)
        assert stopped
        monkeypatch.undo()
        assert con.execute("select count(*) from duckdb_tables() where table_name = 'r'").fetchone() == (0,)
    con.execute(statement.replace("create table r as", ""))


def _stopping_before(monkeypatch: pytest.MonkeyPatch, phase: str) -> list[bool]:
    """Stop what runs as soon as it enters a phase of the runner; whether it did."""
    done: list[bool] = []
    entered = getattr(runner, phase)

    def stopping(*given: Any, **named: Any) -> Any:
        done.append(True)
        interrupts.stop_running()
        return entered(*given, **named)

    monkeypatch.setattr(runner, phase, stopping)
    return done
