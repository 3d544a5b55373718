"""The commands of the command line that work on one database: shell, demo, release, report, keygen."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import duckdb

from duckdb_anon import __version__, release_api
from duckdb_anon.engine.catalog.catalog import table_sql
from duckdb_anon.engine.records.call_text import on_table
from duckdb_anon.engine.records.release_seal import make_keys
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.anon_report import write_page
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.release_context import read_context
from duckdb_anon.report.weak_labels import release_warnings
from duckdb_anon.shell.render import HEADED
from duckdb_anon.shell.run_input import is_file_of_rows
from duckdb_anon.shell.running import CLEAR, run_with_progress
from duckdb_anon.shell.session import Quit, Session, StopScript, is_blank, read_script
from duckdb_anon.sql_functions import connect

_REGISTER = "anon_register"
_HISTORY = ".duckdb_anon_history"  # file of earlier statements in the user's home folder


def opened(database: str, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A loaded connection on which a table's name never means a variable of this program."""
    con = connect(database, read_only=read_only)
    con.execute("set python_enable_replacements = false")
    return con


def shell(given: Namespace) -> int:
    """Run statements and scripts, or read them from the terminal or from standard input."""
    if given.no_header and given.mode not in HEADED:
        given.parser.error(f"--no-header goes with --mode {', '.join(HEADED)}; {given.mode} shows no header line")
    session = Session(opened(given.database, read_only=given.readonly), mode=given.mode, header=not given.no_header)
    try:
        for kind, text in given.inputs:
            session.run_script(text.splitlines() if kind == "sql" else read_script(text))
        if not given.inputs and sys.stdin.isatty():
            _interact(session, given.database if given.database != ":memory:" else "in memory")
        elif not given.inputs:
            session.run_script(sys.stdin)
    except Quit:
        return 0
    finally:
        session.close()
    return 0


def _interact(session: Session, name: str) -> None:
    """Read and run lines until the user leaves, by Ctrl-D or a command that raises Quit."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a script leaves it to processes in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    read = _reader(session)
    session.out.write(
        f"duckdb-anon {__version__}, DuckDB {duckdb.__version__}, {name}. Type .help for help, Ctrl-D to leave.\n"
    )
    while True:
        try:
            for line in read("anon> " if is_blank(session.pending) else "  ... ").split("\n"):
                session.feed(line)
        except EOFError:
            session.out.write("\n")
            return
        except KeyboardInterrupt:
            session.pending = ""
            sys.stderr.write("\ninterrupted\n")
        except StopScript:
            session.pending = ""


def _reader(session: Session) -> Callable[[str], str]:
    """A reader of lines, with completion and colours when the shell extra is installed."""
    if find_spec("prompt_toolkit") and find_spec("pygments"):
        from duckdb_anon.shell.prompt import prompt_reader

        return prompt_reader(session, Path.home() / _HISTORY)
    if find_spec("readline"):
        importlib.import_module("readline")  # from then on `input` edits lines
    return input


def demo(given: Namespace) -> int:
    """Run demo.sql on an in-memory database, with nothing but SQL on the screen; nothing is written to disk."""
    steps = (files("duckdb_anon.shell") / "demo.sql").read_text(encoding="utf-8").split("\n\n")
    con = connect()
    con.execute(f"create table census as from anon_sample('census', {given.rows})")
    _say(f"A synthetic census of {given.rows:,} individuals (FROM anon_sample('census')).\n")
    try:
        for number, step in enumerate(steps, start=1):
            heading, *lines = step.strip().splitlines()
            sql = [line for line in lines if not line.startswith("--> ")]
            _say(f"{number}. {heading.removeprefix('-- ')}\n")
            _say("".join(f"   {line}\n" for line in sql).rstrip())
            started = time.perf_counter()
            Session(con).run_text("\n".join(sql))
            notes = [line.removeprefix("--> ") for line in lines if line.startswith("--> ")]
            _say("".join(f"   {line}\n" for line in [f"({time.perf_counter() - started:.2f} s)", *notes]))
    finally:
        con.close()
    _say("Next: your own table. duckdb-anon FILE.duckdb opens it; FROM anon_functions() lists the functions.")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def release(given: Namespace) -> int:
    """Run a method on a database or a file and write its release with its description."""
    source, call = Path(given.source), given.call
    if not source.exists() and "*" not in given.source:
        raise AnonError(f"release: there is no database or file {given.source}")
    is_rows = source.is_dir() or is_file_of_rows(given.source)
    if is_rows and not given.target.lower().endswith((".parquet", "/")):
        raise AnonError(
            f"release: {given.target} is not a file. The release of a file is written to a file: give "
            f"{given.target}.parquet, or {given.target}/ for a folder of files"
        )
    if is_rows:
        call = on_table(call, _files_of(source) if source.is_dir() else given.source)
    con = opened(":memory:" if is_rows else given.source)
    names = ("replace", "part_rows", "memory", "key", "previous", "deleted", "changed", "independent")
    options = {name: getattr(given, name) for name in names}
    if given.register is not None:
        con.execute(f"attach {literal(given.register)} as {_REGISTER}")
        options["register"] = _REGISTER

    def work() -> tuple[str, list[str]]:
        description = release_api.release(con, given.target, call, **options)
        return description, release_warnings(con, description)

    description, warnings = run_with_progress(con, work)
    sys.stdout.write(f"{given.target}: {description}\n")
    sys.stderr.write("".join(f"warning: {text}\n" for text in warnings))
    return 0


def _files_of(folder: Path) -> str:
    """Pattern of the Parquet files of a folder; of its subfolders where it is partitioned (Hive's `key=value/`)."""
    if any(folder.glob("*.parquet")):
        return f"{folder}/*.parquet"
    if any(folder.glob("*=*/**/*.parquet")):
        return f"{folder}/**/*.parquet"
    raise AnonError(f"release: {folder} has no file that ends in .parquet, nor subfolders such as year=2024 with some")


def report(given: Namespace) -> int:
    """Measure an original and its releases and write one HTML page."""
    if not Path(given.database).exists():
        raise AnonError(f"report: there is no database {given.database}")
    if given.output and not Path(given.output).absolute().parent.is_dir():
        raise AnonError(f"report: there is no folder {Path(given.output).absolute().parent} to write to")
    context = read_context(given.context)
    con = opened(given.database, read_only=True)
    releases = tuple(table_sql(name) for name in given.release)
    plan = Plan(table_sql(given.original), releases, given.targets, given.queries, given.seed)

    def say(line: str) -> None:
        sys.stderr.write(f"{CLEAR if sys.stderr.isatty() else ''}{line}\n")

    size = run_with_progress(
        con, lambda: write_page(con, plan, given.output, say, context=context, edition=given.edition)
    )
    sys.stdout.write(f"{given.output}: {size // 1024} KB\n")
    return 0


def keygen(given: Namespace) -> int:
    """Make a pair of keys that sign releases."""
    public = make_keys(Path(given.file))
    sys.stdout.write(f"{public}: {public.read_text(encoding='utf-8')}")
    return 0
