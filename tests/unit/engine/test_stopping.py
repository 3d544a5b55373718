"""Interrupts seen by kernels while they run: compiled ones through the flag, others at their next tick."""

import subprocess
import sys
import textwrap
import threading

import duckdb
import numpy as np
import pytest

import duckdb_anon
from duckdb_anon import sql_functions
from duckdb_anon.engine import interrupts
from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import CodedTable, IntArray
from duckdb_anon.model.function_specs import ColumnPlan, Method, Params, Roles
from duckdb_anon.model.released_columns import ROWS, Cells, Source


@compiled
def _forever(count: IntArray, stop: IntArray) -> None:
    while stop[0] == 0:
        count[0] += 1


_started = threading.Event()


def _release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    stopped = np.ones(1, dtype=np.int64)
    _forever(np.zeros(1, dtype=np.int64), stopped)  # compiled before the clock runs
    _started.set()
    _forever(np.zeros(1, dtype=np.int64), progress.stop_flag())
    progress.tick()
    return {ROWS: Source(np.arange(table.rows))}


def _layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    return (ColumnPlan("x", Source),)


@pytest.fixture
def endless(monkeypatch):
    """A connection with a method that runs until it is stopped."""
    said = dict.fromkeys(("summary", "paper", "example"), "")
    entry = Method(name="endless", **said, parameters=(), formats=("rows",), layout=_layout, release=_release)
    monkeypatch.setitem(sql_functions._BY_NAME, "endless", entry)
    _started.clear()
    con = duckdb_anon.connect()
    con.execute(sql_functions._macro(entry))
    con.execute("create table t as select range as x from range(3)")
    yield con
    con.close()


def test_a_compiled_kernel_is_stopped_and_nothing_is_written_nor_marked(endless):
    raised: list[BaseException] = []

    def work() -> None:
        try:
            endless.execute("create table r as from endless('t', qi := ['x'])")
        except (duckdb.Error, RuntimeError) as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)  # a kernel that does not stop must not hold the run
    thread.start()
    assert _started.wait(60)
    interrupts.stop_running()
    thread.join(60)
    assert not thread.is_alive()
    assert "interrupted" in str(raised[0])
    assert endless.execute("select count(*) from duckdb_tables() where table_name = 'r'").fetchone() == (0,)
    assert endless.execute("select count(*) from mondrian('t', 2, qi := ['x'])").fetchone() == (3,)


def test_a_flag_outside_a_call_is_never_set():
    interrupts.stop_running()
    assert progress.stop_flag()[0] == 0
    progress.tick()


def test_a_prepared_statement_is_not_stopped_by_what_stopped_its_connection_before_it_ran():
    con = duckdb_anon.connect()
    con.execute("create table t as select i % 7 as a, i % 3 as s from range(40) as r(i)")
    con.execute("create table r as from mondrian('t', 3, qi := ['a'], sensitive := 's', seed := 1, row_id := true)")
    con.execute("prepare released as from mondrian('t', 3, qi := ['a'], sensitive := 's', seed := 1)")
    con.execute("prepare measured as from linkage_risk('t', 'r', qi := ['a'], sensitive := 's', seed := 1)")
    con.interrupt()  # while nothing runs
    assert len(con.execute("execute released").fetchall()) == 40
    assert con.execute("execute measured").fetchall()


def test_interrupts_at_any_moment_leave_a_wait_that_ends():
    script = """
        import random, signal, time
        from duckdb_anon.engine import interrupts

        interrupts._POLL = 5e-5
        stops, inside = 0, False

        def interrupt(number, frame):
            if inside:
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)

        def interrupt_soon():
            signal.setitimer(signal.ITIMER_REAL, random.random() * 2e-4 + 1e-6)

        def stop():
            global stops
            stops += 1
            interrupt_soon()

        end = time.monotonic() + 3
        while time.monotonic() < end:
            try:
                interrupt_soon()
                inside = True
                interrupts.in_thread(lambda: time.sleep(0.02), stop=stop)
                inside = False
            except KeyboardInterrupt:
                inside = False
        print(stops > 100)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "True\n", done.stderr
