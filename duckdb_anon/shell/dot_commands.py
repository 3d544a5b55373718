"""Commands that begin with a point, spelled as in DuckDB's own shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError, nearest, without_values
from duckdb_anon.release_api import release
from duckdb_anon.report.weak_labels import release_warnings
from duckdb_anon.shell.label import label
from duckdb_anon.shell.render import MODES, paragraphs, wrapped

if TYPE_CHECKING:
    from duckdb_anon.shell.session import Session

_DEEPEST_READ = 20


class Quit(Exception):
    """The user asked to leave."""


class StopScript(Exception):
    """A statement of a script failed; the message has been written."""


def read_script(path: str) -> list[str]:
    """Lines of a script file."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise AnonError(f"{path}: the file is not UTF-8 text") from error
    except OSError as error:
        raise AnonError(f"{path}: {error.strerror}") from error


def _help(session: Session, word: str) -> None:
    commands = [name for name in COMMANDS if name.startswith(word.removeprefix("."))]
    if not commands:
        _functions(session, word)
        return
    for name in commands:
        session.out.write(f".{name + ' ' + COMMANDS[name].usage:<30} {COMMANDS[name].summary}\n")
    if not word:
        session.out.write("Everything else is SQL and ends with ';'. .functions lists the functions.\n")


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


def _tables(session: Session, pattern: str) -> None:
    session.run_text(
        "select schema_name as schema, name, kind, comment from (select schema_name, table_name as name, 'table' as "
        "kind, comment from duckdb_tables() union all select schema_name, view_name, 'view', comment from "
        f"duckdb_views() where not internal) where name like {literal(pattern or '%')} order by all;"
    )


def _schema(session: Session, table: str) -> None:
    known = dict(session.con.execute("select table_name, sql from duckdb_tables() order by table_name").fetchall())
    if table and table not in known:
        session.fail(f".schema {table}: there is no such table{nearest(table, known)}")
    session.out.write("".join(f"{sql}\n" for name, sql in known.items() if table in ("", name)))


def _functions(session: Session, given: str) -> None:
    word, ask = literal(given.lower()), session.con.execute
    found = ask(
        f'select signature, coalesce(about, summary), example, paper from anon_functions() where "function" = {word}'
    ).fetchone()
    if found:
        call, about, example, paper = found
        paragraphs(call, session.out, hanging=4)
        paragraphs(about, session.out)
        paragraphs(f"Example: {example};", session.out, hanging=4)
        paragraphs(f"Source: {paper}" if paper else "", session.out, hanging=4)
        parameters = f"select parameter, coalesce(\"default\", 'required'), meaning from anon_parameters({word})"
        wrapped(ask(parameters).fetchall(), session.out)
        return
    functions = ask('select "function", section, summary from anon_functions()').fetchall()
    matching = [row for row in functions if given.lower() in f"{row[0]}{row[2]}".lower()]
    if not matching:
        session.fail(f".functions {given}: no function mentions it{nearest(given, [name for name, *_ in functions])}")
    wrapped(matching, session.out)


def _release(session: Session, given: str) -> None:
    name, _, rest = given.partition(" ")
    call, bracket, words = rest.strip().rstrip(";").rpartition(")")
    if not bracket:
        session.fail(".release takes a name and a call: .release r muco('people', 0.2)")
    try:
        options = _options(session, shlex.split(words))
    except ValueError:
        session.fail(f".release {given}: a quote is not closed")
    try:
        description = session.meter.watch(lambda: release(session.con, name, f"{call})", **options))
    except (AnonError, duckdb.Error) as error:
        session.fail(without_values(error))
    session.out.write(f"{name}: {description}\n")
    sys.stderr.write("".join(f"warning: {text}\n" for text in release_warnings(session.con, description)))


def _options(session: Session, words: list[str]) -> dict[str, Any]:
    """What follows the call: 'previous r1 key person_id', 'independent'."""
    found: dict[str, Any] = {}
    while words:
        word = words.pop(0)
        if word in ("independent", "replace"):
            found[word] = True
        elif word in ("previous", "key", "deleted", "changed") and words:
            found[word] = words.pop(0)
        else:
            session.fail(
                f".release: after the call stands {word!r}. Allowed: previous NAME, key COLUMN, deleted keep|withdraw, "
                "changed keep|replace, independent, replace"
            )
    return found


def _label(session: Session, table: str) -> None:
    try:
        label(session.con, table, session.out, input if sys.stdin.isatty() else None)
    except (AnonError, duckdb.Error) as error:
        session.fail(without_values(error).split("\n\nLINE")[0])


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
    "functions": Command(_functions, "[WORD]", "all functions; those that mention WORD; one with its parameters"),
    "help": Command(_help, "[NAME]", "this list; one command; one function with its parameters"),
    "label": Command(_label, "TABLE", "suggest a role for each column of a table and write the comments"),
    "maxrows": Command(_maxrows, "N", "largest number of rows in a box"),
    "mode": Command(_mode, "[MODE]", f"how results are written: {', '.join(MODES)}", MODES),
    "output": Command(_output, "[FILE]", "write results to FILE; without FILE to the screen again"),
    "quit": Command(_quit, "", "leave"),
    "read": Command(_read, "FILE", "run the statements of FILE"),
    "release": Command(
        _release,
        "NAME CALL [previous NAME] [key COLUMN]",
        "run a method, muco('people', 0.2), and write the release described; previous: the one it continues",
    ),
    "schema": Command(_schema, "[TABLE]", "CREATE statements of tables"),
    "tables": Command(_tables, "[PATTERN]", "tables and views, or those LIKE PATTERN"),
    "timer": Command(_timer, "on|off", "write how long each statement takes", ("on", "off")),
}
