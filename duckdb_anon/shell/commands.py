"""`duckdb-anon release` and `duckdb-anon report`: long commands on a database, with progress and Ctrl-C."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duckdb_anon.engine.call_text import on_table
from duckdb_anon.engine.release_seal import KEY, PUBLIC_KEY, make_keys
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError
from duckdb_anon.release_api import release
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.release_context import read_context
from duckdb_anon.report.write import write_page
from duckdb_anon.shell.running import CLEAR, run_with_progress
from duckdb_anon.sql_functions import connect

_REGISTER = "anon_register"
_FILE = re.compile(r".*\.(parquet|csv|tsv|json|ndjson)(\.(gz|zst))?$", re.IGNORECASE)


def main_release(arguments: Sequence[str]) -> int:
    """Run a method on a database or a file and write its release with its description."""
    given = _release_parser().parse_args(arguments)
    source, call = Path(given.source), given.call
    if not source.exists() and "*" not in given.source:
        raise AnonError(f"release: there is no database or file {given.source}")
    is_rows = source.is_dir() or _FILE.match(given.source) is not None
    if is_rows and not given.target.lower().endswith((".parquet", "/")):
        raise AnonError(
            f"release: {given.target} is not a file. The release of a file is written to a file: give "
            f"{given.target}.parquet, or {given.target}/ for a folder of files"
        )
    config: dict[str, Any] = {}
    if is_rows:
        call = on_table(call, _files_of(source) if source.is_dir() else given.source)
    con = connect(":memory:" if is_rows else given.source, **config)
    con.execute("set python_enable_replacements = false")
    names = ("replace", "part_rows", "memory", "key", "previous", "deleted", "changed", "independent")
    options = {name: getattr(given, name) for name in names}
    if given.register is not None:
        con.execute(f"attach {literal(given.register)} as {_REGISTER}")
        options["register"] = _REGISTER
    descriptions: list[str] = []
    run_with_progress(con, lambda: descriptions.append(str(release(con, given.target, call, **options))))
    sys.stdout.write(f"{given.target}: {descriptions[0]}\n")
    return 0


def _files_of(folder: Path) -> str:
    """Pattern of the Parquet files of a folder; of its subfolders where it is partitioned (Hive's `key=value/`)."""
    if any(folder.glob("*.parquet")):
        return f"{folder}/*.parquet"
    if any(folder.glob("*=*/**/*.parquet")):
        return f"{folder}/**/*.parquet"
    raise AnonError(f"release: {folder} has no file that ends in .parquet, nor subfolders such as year=2024 with some")


def main_report(arguments: Sequence[str]) -> int:
    """Measure an original and its releases and write one HTML page."""
    given = _report_parser().parse_args(arguments)
    if not Path(given.database).exists():
        raise AnonError(f"report: there is no database {given.database}")
    context = read_context(given.context)
    con = connect(given.database, read_only=True)
    con.execute("set python_enable_replacements = false")
    plan = Plan(given.original, tuple(given.release), given.targets, given.queries, given.seed)
    sizes: list[int] = []

    def say(line: str) -> None:
        sys.stderr.write(f"{CLEAR if sys.stderr.isatty() else ''}{line}\n")

    def work() -> None:
        sizes.append(write_page(con, plan, given.output, say, context=context, edition=given.edition))

    run_with_progress(con, work)
    sys.stdout.write(f"{given.output}: {sizes[0] // 1024} KB\n")
    return 0


def main_keygen(arguments: Sequence[str]) -> int:
    """Make a pair of keys that sign releases."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon keygen",
        description=f"Write a private key FILE and a public key FILE.pub. With {KEY}=FILE in the environment, releases "
        f"are signed; with {PUBLIC_KEY}=FILE.pub, verify_release checks who signed.",
    )
    parser.add_argument("file", help="the private key to write")
    public = make_keys(Path(parser.parse_args(arguments).file))
    sys.stdout.write(f"{public}: {public.read_text(encoding='utf-8')}")
    return 0


def _release_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duckdb-anon release",
        description="Run a method and write the release with comments that describe it. With --memory or --part-rows a "
        "table larger than memory is processed in parts; a run that was stopped continues when it is called again.",
    )
    add = parser.add_argument
    add("source", help="DuckDB file with the labelled original, or the original itself: a Parquet file or a folder")
    add("target", help="table to write, a file that ends in .parquet, or a folder of such files that ends in /")
    add("call", help='one call of a method, "muco(\'people\', 0.2)"; of a file "muco(0.2, qi := ...)"')
    add("--replace", action="store_true", help="replace the table or file if it exists")
    add("--part-rows", type=int, metavar="N", help="process parts of at most N rows")
    add("--memory", metavar="SIZE", help="process in parts within this much memory, 2GB")
    add("--key", metavar="COLUMN", help="column that identifies a record, for releases that continue this one")
    add("--previous", metavar="RELEASE", help="release that this one continues; its records stay as published")
    add("--deleted", choices=("keep", "withdraw"), default="keep", help="deleted records stay, or go with their groups")
    add("--changed", choices=("keep",), default="keep", help="changed records stay as published")
    add("--register", metavar="FILE", help="DuckDB file that keeps the register (default: the original's database)")
    add("--independent", action="store_true", help="release regardless of earlier releases; the description shows it")
    return parser


def _report_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duckdb-anon report", description="Write one self-contained page on the risk and utility of releases."
    )
    add = parser.add_argument
    add("database", help="DuckDB file with the original and its releases (opened read-only)")
    add("--original", required=True, metavar="TABLE", help="the labelled original")
    add("--release", required=True, action="append", metavar="TABLE", help="a release; may be repeated")
    add("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    add("--context", metavar="FILE", help="TOML file: purpose, recipients, decision, threshold, queries")
    editions = ("internal", "external", "short")
    add(
        "--edition",
        choices=editions,
        default="internal",
        help="external: without figures of the original; short: for a board",
    )
    add("--targets", type=int, default=2000, help="number of individuals that the attacker looks for (default: 2000)")
    add("--queries", type=int, default=300, help="number of queries in the workload (default: 300)")
    add("--seed", type=int, default=1, help="makes targets and queries repeatable (default: 1)")
    return parser
