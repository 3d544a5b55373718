"""The command line: a SQL shell with the package's functions, and the commands around it, as one tree of arguments.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a statement failed, 2 wrong usage, 3 a check of
a plan does not hold, 130 interrupted, 141 the reader of the output has gone.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from duckdb_anon import __version__
from duckdb_anon.engine.records.release_seal import KEY, PUBLIC_KEY
from duckdb_anon.model.errors import AnonError, nearest, of_function, without_values
from duckdb_anon.serve import approve, assistants, audit, publish
from duckdb_anon.serve import command as serve
from duckdb_anon.shell import commands, run_command, run_database
from duckdb_anon.shell.render import HEADED, MODES
from duckdb_anon.shell.session import StopScript
from duckdb_anon.workbench import command as workbench

SHELL = "shell"
_EPILOG = """Without a command a SQL shell opens: duckdb-anon [DATABASE] [-c SQL] [-f FILE].
Open a database file that has the name of a command as ./NAME. Each command has --help."""
Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    names, parser = tree()
    if len(words) > 1 and not any(word.startswith("-") for word in words[:2]) and words[0] not in names:
        parser.error(f"there is no command '{words[0]}'{nearest(words[0], names)}")
    if not words or words[0] not in (*names, "-h", "--help", "--version"):
        words.insert(0, SHELL)
    given = parser.parse_args(words)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
        return _code(given, words[0])


def _code(given: argparse.Namespace, command: str) -> int:
    """Run a command; its exit code, after errors were written to stderr."""
    try:
        code: int = given.run(given)
        sys.stdout.flush()
        return code
    except StopScript:
        return 1
    except (AnonError, duckdb.Error) as error:
        message = without_values(error) if command == SHELL else of_function(command, error)
        print(f"duckdb-anon: {message}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Python would complain once more when it flushes the dead pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"duckdb-anon: {command}: {place}{error.strerror or type(error).__name__}", file=sys.stderr)
        return 1


def tree() -> tuple[list[str], argparse.ArgumentParser]:
    """The names of the commands, and the parser of all."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon",
        description="A DuckDB shell that can protect tables and measure what is gained and lost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"duckdb-anon {__version__}")
    every = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Command, summary: str, more: str = "", epilog: str = "") -> argparse.ArgumentParser:
        made = every.add_parser(name, help=summary, description=f"{summary}. {more}", epilog=epilog)
        made.set_defaults(run=run, parser=made)
        return made

    _shell(command(SHELL, commands.shell, "SQL shell, which opens without a command"))
    demo = command("demo", commands.demo, "Label, protect, attack and query a sample table")
    rows = "rows of the sample, 100 or more (default: %(default)s)"
    demo.add_argument("--rows", type=serve.at_least(100), default=5_000, help=rows)
    _release(
        command(
            "release", commands.release, "Run a method and write the release with comments that describe it",
            "With --memory or --part-rows a table larger than memory is processed in parts; a run that was stopped "
            "continues when it is called again.",
        )
    )  # fmt: skip
    keygen = command(
        "keygen", commands.keygen, "Make a key that signs releases",
        f"Writes a private key FILE and a public key FILE.pub. With {KEY}=FILE in the environment, releases are "
        f"signed; with {PUBLIC_KEY}=FILE.pub, verify_release checks who signed.",
    )  # fmt: skip
    keygen.add_argument("file", help="the private key to write")
    first = command(
        "plan", run_database.main_plan, "Write a first plan for the release of a table, or of tables that join",
        "The plan has keys, roles and treatments; run carries it out.",
    )  # fmt: skip
    first.add_argument("database", help="DuckDB file with the tables, or a CSV or Parquet file")
    first.add_argument("-o", "--output", help="file to write (default: standard output); it must not exist")
    individuals = "individuals that share a known record (default: 5; tables that join have delta = 0.1 in its place)"
    first.add_argument("-k", type=serve.at_least(1), help=individuals)
    publish.add_arguments(command("publish", publish.main, "Copy releases into a file of their own to serve or send"))
    _report(command("report", commands.report, "Write one self-contained page on the risk and utility of releases"))
    plan = command(
        "run", run_command.main, "Label, release, check and write as a TOML file specifies",
        "Nothing is written when a check fails.",
        "A plan to begin with: examples/release_by_plan.toml. Exit codes: 0 written or kept, 1 an error, 2 wrong "
        "usage, 3 a check does not hold",
    )  # fmt: skip
    plan.add_argument("plan", help="TOML file with [tables], [labels.TABLE] and [[releases]] or [database]")
    plan.add_argument("--force", action="store_true", help="make the releases again although nothing has changed")
    workbench.add_arguments(
        command(
            "workbench", workbench.main, "Clean, label, release and verify a table on a local page, without SQL",
            "The pages work without a network. Their state is plan.toml in the file's folder, which run carries out.",
        )
    )  # fmt: skip
    serve.add_arguments(command("serve", serve.main, "Serve a database over Quack to stock DuckDB shells"))
    serve.add_token_arguments(command("token", serve.token, "Add, revoke or list the tokens of an endpoint's clients"))
    assistants.add_arguments(
        command("mcp", assistants.main, "Answer an assistant from the original, as serve --role researcher does")
    )
    approve.add_arguments(command("outputs", approve.main, "Release an answer that safe_output refused, by hand"))
    log = command("audit", audit.main, "Summarize the audit log of an endpoint")
    log.add_argument("file", help="the file of serve --audit; older files next to it are read, too")
    return list(every.choices), parser


def _shell(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("database", nargs="?", default=":memory:", help="database file (default: in memory)")
    both: dict[str, Any] = {"dest": "inputs", "action": "append", "default": []}
    add("-c", type=lambda text: ("sql", text), metavar="SQL", help="run SQL and leave; may be mixed with -f", **both)
    add("-f", type=lambda text: ("file", text), metavar="FILE", help="run the statements of FILE and leave", **both)
    add("--readonly", action="store_true", help="open the database read-only")
    add("--mode", choices=MODES, default="box", help="how results are written (default: box)")
    add("--csv", dest="mode", action="store_const", const="csv", help="the same as --mode csv")
    add("--no-header", action="store_true", help=f"leave the columns' names out ({', '.join(HEADED)})")


def _release(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", help="DuckDB file with the labelled original, or the original itself: a Parquet file or a folder")
    add("target", help="table to write, a file that ends in .parquet, or a folder of such files that ends in /")
    add("call", help='one call of a method, "muco(\'people\', 0.2)"; of a file "muco(0.2, qi := ...)"')
    add("--replace", action="store_true", help="replace the table or file if it exists")
    add("--part-rows", type=int, metavar="N", help="process parts of at most N rows")
    add("--memory", type=serve.size, metavar="SIZE", help="process in parts within this much memory, 2GB")
    add("--key", metavar="COLUMN", help="column that identifies a record, for releases that continue this one")
    add("--previous", metavar="RELEASE", help="release that this one continues; its records stay as published")
    add("--deleted", choices=("keep", "withdraw"), default="keep", help="deleted records stay, or go with their groups")
    add("--changed", choices=("keep", "replace"), default="keep", help="changed records stay, or are replaced")
    add("--register", metavar="FILE", help="DuckDB file that keeps the register (default: the original's database)")
    add("--independent", action="store_true", help="release regardless of earlier releases; the description shows it")


def _report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("database", help="DuckDB file with the original and its releases (opened read-only)")
    add("--original", required=True, metavar="TABLE", help="the labelled original")
    add("--release", required=True, action="append", metavar="TABLE", help="a release; may be repeated")
    add("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    add("--context", metavar="FILE", help="TOML file: purpose, recipients, decision, threshold, queries")
    editions = ("internal", "external", "short")
    add("--edition", choices=editions, default="internal", help="external: no original figures; short: for a board")
    for option, low, default, meaning in (
        ("--targets", 1, 2000, "individuals that the attacker looks for"),
        ("--queries", 1, 300, "number of queries in the workload"),
        ("--seed", 0, 1, "makes targets and queries repeatable"),
    ):
        add(option, type=serve.at_least(low), default=default, help=f"{meaning} (default: {default})")


if __name__ == "__main__":
    sys.exit(main())
