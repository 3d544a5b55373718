"""The line that says how far a statement is leaves before its result is written, and does not come back."""

from __future__ import annotations

import io

import duckdb

from duckdb_anon.shell import running


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_result_stands_where_the_meter_was() -> None:
    screen = Terminal()
    drawn = running.Meter(duckdb.connect(), screen)

    def long_statement() -> str:
        drawn.started -= 2 * running._PATIENCE
        drawn.beat()
        return screen.getvalue()

    def with_a_result() -> None:
        long_statement()
        out = drawn.making_room(screen)
        out.write("first")
        drawn.beat()
        out.write(" second")

    drawn.watch(with_a_result)
    before, wipe, after = screen.getvalue().rpartition(running.CLEAR)
    assert "2 s" in before and wipe and after == "first second"
    assert drawn.watch(long_statement).endswith("2 s")


def test_what_goes_to_a_file_leaves_the_meter_alone() -> None:
    file = io.StringIO()
    assert running.Meter(duckdb.connect(), Terminal()).making_room(file) is file
