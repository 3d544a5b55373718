"""`duckdb-anon report`: write the page about an original and its releases."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.metrics import Plan
from duckdb_anon.report.release_context import read_context
from duckdb_anon.report.write import write_page
from duckdb_anon.shell.background import run_with_progress
from duckdb_anon.shell.progress_bar import CLEAR
from duckdb_anon.sql_functions import connect


def main(arguments: Sequence[str]) -> int:
    """Measure, then write one HTML file."""
    given = _parser().parse_args(arguments)
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

    try:
        run_with_progress(con, work)
    finally:
        con.close()
    sys.stdout.write(f"{given.output}: {sizes[0] // 1024} KB\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duckdb-anon report", description="Write one self-contained page on the risk and utility of releases."
    )
    parser.add_argument("database", help="DuckDB file with the original and its releases (opened read-only)")
    parser.add_argument("--original", required=True, metavar="TABLE", help="the labelled original")
    parser.add_argument("--release", required=True, action="append", metavar="TABLE", help="a release; may be repeated")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument(
        "--context", metavar="FILE", help="TOML file: purpose, recipients, decision, threshold, queries"
    )
    parser.add_argument(
        "--edition", choices=("internal", "external"), default="internal", help="external: no figures on the original"
    )
    parser.add_argument("--targets", type=int, default=2000, help="people an attacker is tried on (default: 2000)")
    parser.add_argument("--queries", type=int, default=300, help="queries of the workload (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="makes targets and queries repeatable (default: 1)")
    return parser
