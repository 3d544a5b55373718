"""The command line: a SQL shell with the package's functions, and the commands around it.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a statement failed, 2 wrong usage,
130 interrupted, 141 the reader of the output has gone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import duckdb

from duckdb_anon import __version__, connect
from duckdb_anon.model.errors import AnonError, of_function
from duckdb_anon.serve import command as serve
from duckdb_anon.serve import publish
from duckdb_anon.shell import commands, demo, run_command, run_database
from duckdb_anon.shell.dot_commands import Quit, StopScript, read_script
from duckdb_anon.shell.interactive import interact
from duckdb_anon.shell.render import HEADED, MODES
from duckdb_anon.shell.session import Session

COMMANDS = {
    "demo": demo.main,
    "keygen": commands.main_keygen,
    "plan": run_database.main_plan,
    "publish": publish.main,
    "release": commands.main_release,
    "report": commands.main_report,
    "run": run_command.main,
    "serve": serve.main,
}
_EPILOG = """commands:
  duckdb-anon demo                         label, protect, attack and query a sample table, in half a minute
  duckdb-anon release DATABASE NAME CALL   run a method, "muco('people', 0.2)", write its release
  duckdb-anon keygen FILE                  make a key that signs releases
  duckdb-anon plan DATABASE                write a first plan that releases all its tables together, for run
  duckdb-anon publish DATABASE RELEASES    copy the releases into a file of their own
  duckdb-anon report DATABASE --original TABLE --release TABLE
                                           write one page on risk and utility
  duckdb-anon run PLAN                     label, release, check and write as a TOML file specifies
  duckdb-anon serve FILE                   serve it over Quack to stock DuckDB shells
  (each has --help)

Open a database file that has the name of a command as ./NAME.
Without -c and -f, statements are read from the terminal, or from standard input when that is not one.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = COMMANDS.get(given[0]) if given else None
        code = command(given[1:]) if command else _shell(given)
        sys.stdout.flush()
        return code
    except StopScript:
        return 1
    except (AnonError, duckdb.Error) as error:
        said = of_function(given[0], error) if given and given[0] in COMMANDS else str(error)
        print(f"duckdb-anon: {said}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Python would complain once more when it flushes the dead pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duckdb-anon",
        description="A DuckDB shell that can protect tables and measure what is gained and lost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", default=":memory:", help="database file (default: in memory)")
    parser.add_argument(
        "-c", dest="inputs", action="append", metavar="SQL", type=lambda text: ("sql", text), default=[],
        help="run SQL and leave; may be repeated and mixed with -f",
    )  # fmt: skip
    parser.add_argument(
        "-f", dest="inputs", action="append", metavar="FILE", type=lambda text: ("file", text),
        help="run the statements of FILE and leave",
    )  # fmt: skip
    parser.add_argument("--readonly", action="store_true", help="open the database read-only")
    parser.add_argument("--mode", choices=MODES, default="box", help="how results are written (default: box)")
    parser.add_argument("--csv", dest="mode", action="store_const", const="csv", help="the same as --mode csv")
    parser.add_argument("--no-header", action="store_true", help="leave the columns' names out (csv, list, tabs)")
    parser.add_argument("--version", action="version", version=f"duckdb-anon {__version__}")
    return parser


def _shell(arguments: list[str]) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.no_header and given.mode not in HEADED:
        parser.error(f"--no-header goes with --csv or --mode {', '.join(HEADED)}; {given.mode} shows no header line")
    con = connect(given.database, read_only=given.readonly)
    # A table name must never resolve to a variable of this program.
    con.execute("set python_enable_replacements = false")
    session = Session(con, mode=given.mode, header=not given.no_header)
    try:
        for kind, text in given.inputs:
            session.run_script(text.splitlines() if kind == "sql" else read_script(text))
        if not given.inputs and sys.stdin.isatty():
            interact(session, given.database if given.database != ":memory:" else "in memory")
        elif not given.inputs:
            session.run_script(sys.stdin)
    except Quit:
        return 0
    finally:
        session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
