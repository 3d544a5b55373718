"""Stopping a long call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from duckdb_anon.engine import interrupts


@pytest.mark.skipif(os.name == "nt", reason="signals are posix")
def test_ctrl_c_stops_a_long_call_and_leaves_the_database_usable() -> None:
    script = textwrap.dedent("""
        import os, signal, threading, time
        import duckdb_anon
        con = duckdb_anon.connect()
        con.execute("create table t as select hash(range) % 1000 as a, hash(range, 1) % 1000 as b, hash(range, 2) % 1000 "
                    "as c, hash(range, 3) % 500 as s from range(1000000)")
        fired = []
        def fire():
            time.sleep(1.0)
            fired.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=fire, daemon=True).start()
        stopped = False
        try:
            con.execute("create table r as from muco('t', 0.1, qi := ['a', 'b', 'c'], sensitive := 's')").fetchall()
        except BaseException:
            stopped = True
        print(stopped, bool(fired), con.execute("select count(*) from t").fetchone()[0], con.execute("show tables").fetchall())
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split("\n")[0] == "True True 1000000 [('t',)]", done.stdout + done.stderr
    assert signal.getsignal(signal.SIGINT) is not None


def test_a_call_runs_on_a_thread_of_its_own_and_is_stopped_with_all_others() -> None:
    started = threading.Event()

    def work() -> None:
        started.set()
        while True:
            interrupts.tick()
            time.sleep(0.01)

    threading.Thread(target=lambda: (started.wait(10), interrupts.stop_running()), daemon=True).start()
    with pytest.raises(interrupts.Interrupted):
        interrupts.run(work)


def test_a_call_returns_what_its_work_returns() -> None:
    assert interrupts.run(lambda: threading.current_thread().name) == "anon call"
