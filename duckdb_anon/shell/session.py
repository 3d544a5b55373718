"""One user's session: a connection, output settings, and what to do with a line of input.

Every shell of the package (script, plain prompt, prompt with colours) feeds lines to the same `Session`.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, TextIO

import duckdb

from duckdb_anon.binder_errors import explained
from duckdb_anon.engine.error_context import naming_steps
from duckdb_anon.model.errors import AnonError
from duckdb_anon.shell import dot_commands
from duckdb_anon.shell.background import run_stoppable
from duckdb_anon.shell.dot_commands import StopScript
from duckdb_anon.shell.progress_bar import Meter
from duckdb_anon.shell.render import render, show_plan
from duckdb_anon.shell.statement_splitter import is_blank, split_complete

Kind = duckdb.StatementType
_CHANGES = (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.CREATE, Kind.COPY)


@dataclass
class Session:
    """State of a shell.

    Attributes:
        con: connection with the package loaded.
        mode: how results are written, one of `render.MODES`.
        max_rows: rows a box shows at most.
        timer: whether the time of each statement is shown.
        header: whether csv, list and tabs begin with the columns' names.
        out: where results go; `.output` changes it.
        pending: text of a statement still being typed.
        depth: number of `.read` files being read, one inside the other.
        meter: shows how far a long statement has come.
    """

    con: duckdb.DuckDBPyConnection
    mode: str = "box"
    max_rows: int = 40
    timer: bool = False
    header: bool = True
    out: TextIO = field(default_factory=lambda: sys.stdout)
    pending: str = ""
    depth: int = 0
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        """Watch the connection."""
        self.meter = Meter(self.con, sys.stderr)

    def run_script(self, lines: Iterable[str]) -> None:
        """Run a script line by line.

        Raises:
            StopScript: at the first statement that fails, which has been reported on stderr.
        """
        self.pending = ""
        for line in lines:
            self.feed(line)
        rest, self.pending = self.pending, ""
        self.run_text(rest)

    def feed(self, line: str) -> None:
        """Take one line; run what it completes."""
        if line.lstrip().startswith(".") and _between_statements(self.pending):
            self.pending = ""
            dot_commands.run(self, line.strip())
            return
        complete, self.pending = split_complete(self.pending + line.rstrip("\r\n") + "\n")
        self.run_text(complete)

    def run_text(self, text: str) -> None:
        """Run every statement of `text` in order, showing results; stop at the first that fails.

        Raises:
            StopScript: when one failed; its message has been written to stderr.
        """
        if is_blank(text):
            return
        at = text
        try:
            for statement in self.con.extract_statements(text):
                at = statement.query
                self.stoppable(partial(self._run, statement))
        except (duckdb.Error, AnonError) as error:
            self.fail(own_position(explained(str(error), at), at))

    def stoppable(self, work: Callable[[], None]) -> None:
        """Do `work`, which uses the connection, showing how far it has come; Ctrl-C ends it."""
        self.meter.start()
        try:
            run_stoppable(self.con, work, self.meter.beat)
        finally:
            self.meter.stop()

    def fail(self, message: str) -> NoReturn:
        """Report an error on stderr and stop the running script.

        Raises:
            StopScript: always.
        """
        self.out.flush()
        sys.stderr.write(message.rstrip() + "\n")
        sys.stderr.flush()
        raise StopScript

    def close(self) -> None:
        """Close the output file, if any, and the connection."""
        if self.out is not sys.stdout:
            self.out.close()
            self.out = sys.stdout
        self.con.close()

    def _run(self, statement: duckdb.Statement) -> None:
        with naming_steps(self.con):
            self._shown(statement)

    def _shown(self, statement: duckdb.Statement) -> None:
        started = time.perf_counter()
        result = self._result(statement)
        if result is not None:
            out = self.meter.making_room(self.out)
            if statement.type == Kind.EXPLAIN:
                show_plan(result, out)
            else:
                render(result, self.mode, self.max_rows, out, header=self.header)
        self.out.flush()
        if self.timer:
            sys.stderr.write(f"Run Time: {time.perf_counter() - started:.3f} s\n")

    def _result(self, statement: duckdb.Statement) -> duckdb.DuckDBPyRelation | None:
        """What there is to show: a query not yet run, the finished rows of another statement, or nothing."""
        result = self.con.sql(statement)
        if result is None:
            return None
        names = result.columns
        nothing = names == ["Success"] or (names == ["Count"] and statement.type in _CHANGES)
        return None if nothing and statement.type != Kind.SELECT else result


_PLACE = re.compile(r"\n*^LINE \d+: (?P<shown>.*)\n[ \t]*\^+[ \t]*$", re.MULTILINE)


def own_position(message: str, text: str) -> str:
    r"""An error without the position in a statement that the user did not write, such as a planned one.

    >>> own_position("Conversion Error: no\n\nLINE 7: ) as _anon_r\n     ^", "FROM muco('people', 0.2)")
    'Conversion Error: no'
    """
    place = _PLACE.search(message)
    if place is None or place["shown"].strip().strip(".").strip() in text:
        return message
    return message[: place.start()] + message[place.end() :]


def _between_statements(pending: str) -> bool:
    """Tell whether nothing but finished comments has been typed since the last statement."""
    return is_blank(pending) and not is_blank(pending + "x")
