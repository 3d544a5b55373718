"""A shell session: statements and dot commands, spelled as in DuckDB's shell, on one connection.

Every front (script, plain prompt, prompt with completion) feeds lines to the same `Session`.
"""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn, TextIO

import duckdb

from duckdb_anon.binder_errors import explained
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError, listed, nearest, of_newer_file, without_values
from duckdb_anon.shell.render import MODES, render
from duckdb_anon.shell.running import Meter

Kind = duckdb.StatementType
_CHANGES = (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.CREATE, Kind.COPY)
_DEEPEST_READ = 20
_INSTEAD = {
    "functions": "FROM anon_functions(), and FROM anon_parameters('NAME') for one of them",
    "label": "FROM label_statements('TABLE'), and run the statements that are right",
    "release": "FROM anon_release('NAME', 'CALL')",
    "schema": "SELECT sql FROM duckdb_tables()",
    "tables": "SHOW ALL TABLES",
}
"""Commands that SQL does without."""
_POSITION = re.compile(r"\n*^LINE \d+: (?P<shown>.*)\n[ \t]*\^+[ \t]*$", re.MULTILINE)


class Quit(Exception):
    """The user asked to leave."""


class StopScript(Exception):
    """A statement of a script failed; the message has been written."""


@dataclass
class Session:
    """State of a shell."""

    con: duckdb.DuckDBPyConnection
    mode: str = "box"  # one of `render.MODES`
    max_rows: int = 40  # of a box
    timer: bool = False
    header: bool = True
    out: TextIO = field(default_factory=lambda: sys.stdout)
    pending: str = ""  # text of an unfinished statement
    depth: int = 0  # of `.read` files, one inside the other
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        """Watch the connection."""
        self.meter = Meter(self.con, sys.stderr)

    def run_script(self, lines: Iterable[str]) -> None:
        """Run a script line by line."""
        self.pending = ""
        for line in lines:
            self.feed(line)
        rest, self.pending = self.pending, ""
        self.run_text(rest)

    def feed(self, line: str) -> None:
        """Take one line; run what it completes."""
        command, complete, self.pending = split_line(self.pending, line)
        if command:
            self._run_command(command)
        self.run_text(complete)

    def run_text(self, text: str) -> None:
        """Run every statement of `text` in order and write the results; stop at the first that fails."""
        if is_blank(text):
            return
        at = text
        try:
            for statement in self.con.extract_statements(text):
                at = statement.query
                self.meter.watch(partial(self._run, statement))
        except (duckdb.Error, AnonError) as error:
            is_read = sys.stderr.isatty() and not of_newer_file(error)  # else it may be a log
            message = str(error) if is_read else without_values(error)
            self.fail(without_foreign_position(explained(message, at), at))

    def fail(self, message: str) -> NoReturn:
        """Report an error on stderr and stop the running script."""
        self.out.flush()
        sys.stderr.write(message.rstrip() + "\n")
        sys.stderr.flush()
        raise StopScript

    def write_to(self, target: TextIO) -> None:
        """Send results to another file; the one before is closed."""
        if self.out is not sys.stdout:
            self.out.close()
        self.out = target

    def close(self) -> None:
        """Close the output file, if any, and the connection."""
        self.write_to(sys.stdout)
        self.con.close()

    def _run(self, statement: duckdb.Statement) -> None:
        started = time.perf_counter()
        result = self.con.sql(statement)
        unshown = [["Success"], ["Count"]] if statement.type in _CHANGES else [["Success"]]
        if result is not None and (statement.type == Kind.SELECT or result.columns not in unshown):
            out = self.meter.making_room(self.out)
            if statement.type == Kind.EXPLAIN:
                out.write("".join(f"{row[-1]}\n" for row in result.fetchall()))
            else:
                render(result, self.mode, self.max_rows, out, header=self.header)
        self.out.flush()
        if self.timer:
            sys.stderr.write(f"Run Time: {time.perf_counter() - started:.3f} s\n")

    def _run_command(self, line: str) -> None:
        """Run one dot command, such as `.mode csv`."""
        head, _, rest = line.partition(" ")
        typed = head.removeprefix(".")
        found = [typed] if typed in COMMANDS else [name for name in COMMANDS if name.startswith(typed)]
        if not typed or len(found) != 1:
            hint = f"; it could be .{listed(found)}" if len(found) > 1 and typed else nearest(typed, COMMANDS)
            instead = f". Say {_INSTEAD[typed]}" if typed in _INSTEAD else f"{hint}; .help lists them"
            self.fail(f"unknown command .{typed}{instead}")
        command, name = COMMANDS[found[0]], found[0]
        try:
            # SQL follows these, with its quotes
            words = [rest.strip()] if name == "safe" and rest.strip() else shlex.split(rest)
        except ValueError:
            self.fail(f"{line}: a quote is not closed")
        optional = not command.usage or command.usage.startswith("[")
        if len(words) > 1 or not (words or optional):
            self.fail(f".{name} takes one argument: .{name} {command.usage}")
        if words and command.choices and words[0] not in command.choices:
            self.fail(
                f".{name} {words[0]}: choose one of {', '.join(command.choices)}{nearest(words[0], command.choices)}"
            )
        command.run(self, words[0] if words else "")


def read_script(path: str) -> list[str]:
    """Lines of a script file."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise AnonError(f"{path}: the file is not UTF-8 text") from error
    except OSError as error:
        raise AnonError(f"{path}: {error.strerror}") from error


def _help(session: Session, word: str) -> None:
    for name in [name for name in COMMANDS if name.startswith(word.removeprefix("."))]:
        session.out.write(f".{name + ' ' + COMMANDS[name].usage:<30} {COMMANDS[name].summary}\n")
    if not word:
        session.out.write("Everything else is SQL and ends with ';'. FROM anon_functions() lists the functions.\n")


def _mode(session: Session, mode: str) -> None:
    if mode:
        session.mode = mode
    else:
        session.out.write(f"{session.mode}\n")


def _maxrows(session: Session, rows: str) -> None:
    if not rows.isdigit() or int(rows) == 0:
        session.fail(f".maxrows {rows}: give a whole number above 0")
    session.max_rows = int(rows)


def _output(session: Session, path: str) -> None:
    try:
        session.write_to(Path(path).open("w", encoding="utf-8") if path else sys.stdout)
    except OSError as error:
        session.fail(f".output {path}: {error.strerror}")


def _read(session: Session, path: str) -> None:
    if session.depth >= _DEEPEST_READ:
        session.fail(f".read {path}: files read one another more than {_DEEPEST_READ} deep")
    try:
        lines = read_script(path)
    except AnonError as error:
        session.fail(f".read {error}")
    session.depth += 1
    try:
        session.run_script(lines)
    finally:
        session.depth -= 1


def _safe(session: Session, query: str) -> None:
    session.run_text(f"from safe_output({literal(query.rstrip().rstrip(';'))});")


def _timer(session: Session, state: str) -> None:
    session.timer = state == "on"


def _quit(session: Session, ignored: str) -> None:
    raise Quit


@dataclass(frozen=True)
class Command:
    """A dot command: `usage` names its argument, in brackets when it may be left out."""

    run: Callable[[Session, str], None]
    usage: str
    summary: str
    choices: tuple[str, ...] = ()


COMMANDS = {
    "exit": Command(_quit, "", "leave (so do .quit and Ctrl-D)"),
    "help": Command(_help, "[NAME]", "this list, or one command"),
    "maxrows": Command(_maxrows, "N", "largest number of rows in a box"),
    "mode": Command(_mode, "[MODE]", f"how results are written: {', '.join(MODES)}", MODES),
    "output": Command(_output, "[FILE]", "write results to FILE; without FILE to the screen again"),
    "quit": Command(_quit, "", "leave"),
    "read": Command(_read, "FILE", "run the statements of FILE"),
    "safe": Command(_safe, "SELECT ...", "answer a query from the original as the policy of its table allows"),
    "timer": Command(_timer, "on|off", "write how long each statement takes", ("on", "off")),
}


def without_foreign_position(message: str, text: str) -> str:
    r"""An error without a position in a statement that the user did not write, such as a planned one.

    >>> without_foreign_position("Conversion Error: no\n\nLINE 7: ) as _anon_r\n     ^", "FROM muco('people', 0.2)")
    'Conversion Error: no'
    """
    position = _POSITION.search(message)
    if position is None or position["shown"].strip().strip(".").strip() in text:
        return message
    return message[: position.start()] + message[position.end() :]


def split_line(pending: str, line: str) -> tuple[str, str, str]:
    r"""What a line adds to unfinished text: a dot command, the statements that are complete now, what is left.

    >>> split_line("", ".mode csv"), split_line("select ';'", "; -- more;")
    (('.mode csv', '', ''), ('', "select ';';", ' -- more;\n'))
    """
    if line.lstrip().startswith(".") and is_blank(pending):
        return line.strip(), "", ""
    text = pending + line.rstrip("\r\n") + "\n"
    cut = max((place + 1 for place, kind in _tokens(text) if kind == ";"), default=0)
    return "", text.encode()[:cut].decode(), text.encode()[cut:].decode()


def is_blank(text: str) -> bool:
    r"""Tell whether `text` holds nothing but space, comments that have ended, and semicolons.

    >>> is_blank(" -- it's\n ; "), is_blank("select 1"), is_blank("'"), is_blank("/* ;")
    (True, False, False, False)
    """
    return is_code(text + "\n") and all(kind in (";", "comment") for _, kind in _tokens(text))


def is_code(text: str) -> bool:
    r"""Tell whether what follows `text` is read as SQL: not inside of quotes or a comment.

    >>> is_code("select 'it''s' "), is_code("select 1 -- it"), is_code("-- it's\n"), is_code("select $$")
    (True, False, True, False)
    """
    return _tokens(text + ";")[-1:] == [(len(text.encode()), ";")]


def _tokens(text: str) -> list[tuple[int, str]]:
    """Where DuckDB's lexer sees a token, in bytes, and its kind; ';' for the end of a statement.

    DuckDB 1.5 leaves out comments, and a quote that is not closed.
    """
    data = text.encode()
    found = [(place, kind.name) for place, kind in duckdb.tokenize(text)]
    return [(place, ";" if kind == "operator" and data[place : place + 1] == b";" else kind) for place, kind in found]
