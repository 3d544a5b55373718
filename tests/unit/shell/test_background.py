"""Ctrl-C stops a statement wherever it finds Python."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import duckdb
import pytest

from duckdb_anon.shell.running import run_stoppable

LONG = "select sum(sqrt(a.range * b.range)) from range(1000000) a, range(1000000) b"


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("left", [signal.default_int_handler, lambda *_: None])
@pytest.mark.parametrize("swallowed", [False, True])
def test_an_interrupt_stops_the_statement(left: Callable[..., object], swallowed: bool) -> None:
    """Also one that is raised where nothing comes of it, and where a reader of lines left a handler that does nothing."""
    signal.signal(signal.SIGINT, left)
    sent: list[float] = []

    def beat() -> None:
        if not sent:
            sent.append(time.monotonic())
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)
            except KeyboardInterrupt:
                if not swallowed:
                    raise

    with duckdb.connect() as con:
        with pytest.raises(KeyboardInterrupt):
            run_stoppable(con, lambda: con.execute(LONG), beat)
        assert sent and time.monotonic() - sent[0] < 60
        assert con.execute("select 42").fetchall() == [(42,)]


def test_where_interrupts_are_ignored_they_are() -> None:
    """As of what a script starts beside itself; a prompt asks for them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done: list[bool] = []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        done.append(True)

    with duckdb.connect() as con:
        run_stoppable(con, work, lambda: None)
    assert done
