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


def test_tick_raises_once_the_call_was_stopped() -> None:
    with interrupts.watching():
        interrupts.tick()
        interrupts.stop_running()
        with pytest.raises(interrupts.Interrupted):
            interrupts.tick()


def test_a_new_call_starts_unstopped() -> None:
    interrupts.stop_running()
    with interrupts.watching():
        interrupts.tick()


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


def test_a_call_that_nobody_asks_about_is_stopped_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE", 3)
    stopped = threading.Event()

    def work() -> None:
        try:
            while True:
                interrupts.tick()
                time.sleep(0.01)
        except interrupts.Interrupted:
            stopped.set()

    number = interrupts.start(work)
    assert stopped.wait(10)
    time.sleep(0.1)
    with pytest.raises(interrupts.Interrupted):
        interrupts.is_done(number)


def test_a_call_that_is_asked_about_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE", 3)
    finish = threading.Event()
    number = interrupts.start(lambda: (finish.wait(10) and interrupts.tick()) or 7)
    for _ in range(10):
        assert not interrupts.is_done(number)
    finish.set()
    while not interrupts.is_done(number):
        pass
    assert interrupts.result(number) == 7
