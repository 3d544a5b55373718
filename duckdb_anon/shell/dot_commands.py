"""Commands that begin with a point, spelled as in DuckDB's own shell.

They work on whatever offers what `Shell` says; the session that does knows them, they do not know it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn, Protocol, TextIO

import duckdb

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError, listed, nearest
from duckdb_anon.release_api import release
from duckdb_anon.shell.label import label
from duckdb_anon.shell.render import MODES, paragraphs, wrapped

_DEEPEST_READ = 20
_SQL_AFTER = (".release",)


class Quit(Exception):
    """The user asked to leave."""


class StopScript(Exception):
    """A statement of a script failed; the message has been shown."""


class Shell(Protocol):
    """What a command can see and change; `session.Session` says what each of them means."""

    con: duckdb.DuckDBPyConnection
    mode: str
    max_rows: int
    timer: bool
    out: TextIO
    depth: int

    def run_script(self, lines: Iterable[str]) -> None:
        """Run a script."""

    def run_text(self, text: str) -> None:
        """Run statements."""

    def stoppable(self, work: Callable[[], None]) -> None:
        """Do something long that Ctrl-C can end."""

    def fail(self, message: str) -> NoReturn:
        """Report an error and stop the script."""


Command = Callable[[Shell, list[str]], None]


def run(session: Shell, line: str) -> None:
    """Run one command line, such as `.mode csv`."""
    head, _, rest = line.partition(" ")
    try:
        # what follows .release is SQL, quotes and all
        words = [head, rest.strip()] if head in _SQL_AFTER and rest.strip() else shlex.split(line)
    except ValueError:
        session.fail(f"{line}: a quote is not closed")
        return
    name, arguments = words[0].removeprefix("."), words[1:]
    found = [known for known in COMMANDS if known == name] or [known for known in COMMANDS if known.startswith(name)]
    if not name or len(found) != 1:
        hint = f"; it could be .{listed(found)}" if len(found) > 1 and name else nearest(name, COMMANDS)
        session.fail(f"unknown command .{name}{hint}; .help lists them")
        return
    COMMANDS[found[0]][0](session, arguments)


def _one(session: Shell, name: str, arguments: list[str], allowed: tuple[str, ...] = ()) -> str:
    """The command's one argument, checked."""
    if len(arguments) != 1:
        session.fail(f".{name} takes one argument: .{name} {COMMANDS[name][1]}")
    if allowed and arguments[0] not in allowed:
        session.fail(f".{name} {arguments[0]}: choose one of {', '.join(allowed)}{nearest(arguments[0], allowed)}")
    return arguments[0]


def _help(session: Shell, arguments: list[str]) -> None:
    commands = [name for name in COMMANDS if not arguments or name.startswith(arguments[0].removeprefix("."))]
    if arguments and not commands:
        _functions(session, arguments)
        return
    for name in commands:
        _, usage, summary = COMMANDS[name]
        session.out.write(f".{name + ' ' + usage:<30} {summary}\n")
    if not arguments:
        session.out.write("Anything else is SQL and ends with ';'. .functions lists the functions.\n")


def _mode(session: Shell, arguments: list[str]) -> None:
    if not arguments:
        session.out.write(f"{session.mode}\n")
        return
    session.mode = _one(session, "mode", arguments, MODES)


def _maxrows(session: Shell, arguments: list[str]) -> None:
    given = _one(session, "maxrows", arguments)
    if not given.isdigit() or int(given) == 0:
        session.fail(f".maxrows {given}: give a whole number above 0")
    session.max_rows = int(given)


def _output(session: Shell, arguments: list[str]) -> None:
    target = sys.stdout
    if arguments:
        path = _one(session, "output", arguments)
        try:
            target = Path(path).open("w", encoding="utf-8")
        except OSError as error:
            session.fail(f".output {path}: {error.strerror}")
    if session.out is not sys.stdout:
        session.out.close()
    session.out = target


def _read(session: Shell, arguments: list[str]) -> None:
    path = _one(session, "read", arguments)
    if session.depth >= _DEEPEST_READ:
        session.fail(f".read {path}: files read one another more than {_DEEPEST_READ} deep")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        session.fail(f".read {path}: the file is not UTF-8 text")
    except OSError as error:
        session.fail(f".read {path}: {error.strerror}")
    session.depth += 1
    try:
        session.run_script(text.splitlines())
    finally:
        session.depth -= 1


def _tables(session: Shell, arguments: list[str]) -> None:
    where = f" where table_name like {literal(arguments[0])}" if arguments else ""
    session.run_text(
        "select schema_name as schema, table_name as name, 'table' as kind, comment from duckdb_tables() "
        f"{where} union all select schema_name, view_name, 'view', comment from (select *, view_name as table_name "
        f"from duckdb_views() where not internal){where} order by all;"
    )


def _schema(session: Shell, arguments: list[str]) -> None:
    where = f" where table_name = {literal(arguments[0])}" if arguments else ""
    rows = session.con.execute(f"select sql from duckdb_tables(){where} order by table_name").fetchall()
    for (sql,) in rows:
        session.out.write(f"{sql}\n")
    if not rows and arguments:
        known = [name for (name,) in session.con.execute("select table_name from duckdb_tables()").fetchall()]
        session.fail(f".schema {arguments[0]}: there is no such table{nearest(arguments[0], known)}")


def _functions(session: Shell, arguments: list[str]) -> None:
    word = literal(arguments[0].lower()) if arguments else "''"
    found = session.con.execute(
        f'select signature, coalesce(about, summary), example, paper from anon_functions() where "function" = {word}'
    ).fetchall()
    if found:
        call, about, example, paper = found[0]
        paragraphs(call, session.out, hanging=4)
        paragraphs(about, session.out)
        paragraphs(f"Example: {example};", session.out, hanging=4)
        if paper:
            paragraphs(f"Source: {paper}", session.out, hanging=4)
        parameters = session.con.execute(
            f"select parameter, coalesce(\"default\", 'required'), meaning from anon_parameters({word})"
        ).fetchall()
        wrapped(parameters, session.out)
        return
    matching = session.con.execute(
        'select "function", section, summary from anon_functions() '
        f'where contains(lower("function" || summary), {word})'
    ).fetchall()
    if not matching:
        known = [name for (name,) in session.con.execute('select "function" from anon_functions()').fetchall()]
        session.fail(f".functions {arguments[0]}: no function mentions it{nearest(arguments[0], known)}")
    wrapped(matching, session.out)


def _release(session: Shell, arguments: list[str]) -> None:
    name, _, call = arguments[0].partition(" ") if arguments else ("", "", "")
    if not call.strip():
        session.fail(".release takes a name and a call: .release r muco('people', 0.2)")
    said: list[str] = []
    try:
        session.stoppable(lambda: said.append(release(session.con, name, call.strip().rstrip(";"))))
    except (AnonError, duckdb.Error) as error:
        session.fail(str(error))
    session.out.write(f"{name}: {said[0]}\n")


def _label(session: Shell, arguments: list[str]) -> None:
    table = _one(session, "label", arguments)
    ask = input if sys.stdin.isatty() else None
    try:
        label(session.con, table, session.out, ask)
    except (AnonError, duckdb.Error) as error:
        session.fail(str(error).split("\n\nLINE")[0])


def _timer(session: Shell, arguments: list[str]) -> None:
    session.timer = _one(session, "timer", arguments, ("on", "off")) == "on"


def _quit(session: Shell, arguments: list[str]) -> None:
    raise Quit


COMMANDS: dict[str, tuple[Command, str, str]] = {
    "exit": (_quit, "", "leave (so do .quit and Ctrl-D)"),
    "functions": (_functions, "[WORD]", "all functions; those that mention WORD; one function with its parameters"),
    "help": (_help, "[NAME]", "this list; one command; one function with its parameters"),
    "label": (_label, "TABLE", "go through a table's columns, a role suggested for each, and write the comments"),
    "maxrows": (_maxrows, "N", "rows a box shows at most"),
    "mode": (_mode, "[MODE]", f"how results are written: {', '.join(MODES)}"),
    "output": (_output, "[FILE]", "write results to FILE; without FILE to the screen again"),
    "quit": (_quit, "", "leave"),
    "read": (_read, "FILE", "run the statements of FILE"),
    "release": (_release, "NAME CALL", "run a method, muco('people', 0.2), and write what the release is beside it"),
    "schema": (_schema, "[TABLE]", "CREATE statements of tables"),
    "tables": (_tables, "[PATTERN]", "tables and views, or those LIKE PATTERN"),
    "timer": (_timer, "on|off", "show how long each statement takes"),
}
