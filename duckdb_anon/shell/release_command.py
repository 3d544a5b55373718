"""`duckdb-anon release`: run a method on a database or a file and write its release with its description."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duckdb_anon.engine.call_text import on_table
from duckdb_anon.model.errors import AnonError
from duckdb_anon.release_api import release
from duckdb_anon.shell.background import run_with_progress
from duckdb_anon.sql_functions import connect

_FILE = re.compile(r".*\.(parquet|csv|tsv|json|ndjson)(\.(gz|zst))?$", re.IGNORECASE)


def main(arguments: Sequence[str]) -> int:
    """Write one release."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon release",
        description="Run a method and write the table together with comments that say what it is. With --memory or "
        "--part-rows a table larger than memory is worked in parts; a run that is stopped goes on when it is called "
        "again.",
    )
    parser.add_argument(
        "source", help="DuckDB file with the labelled original, or the original itself: a Parquet file or a folder"
    )
    parser.add_argument(
        "target", help="table to write, a file that ends in .parquet, or a folder of such files that ends in /"
    )
    parser.add_argument("call", help='one call of a method, "muco(\'people\', 0.2)"; of a file "muco(0.2, qi := ...)"')
    parser.add_argument("--replace", action="store_true", help="replace the table or file if it exists")
    parser.add_argument("--part-rows", type=int, metavar="N", help="work in parts of at most N rows")
    parser.add_argument("--memory", metavar="SIZE", help="work in parts within this much memory, 2GB")
    given = parser.parse_args(arguments)
    source, call = Path(given.source), given.call
    if not source.exists() and "*" not in given.source:
        raise AnonError(f"release: there is no database or file {given.source}")
    is_rows = source.is_dir() or _FILE.match(given.source) is not None
    if is_rows and not given.target.lower().endswith((".parquet", "/")):
        raise AnonError(
            f"release: the release of a file is written to a file: give {given.target}.parquet, or {given.target}/ for "
            "a folder of files"
        )
    if is_rows:
        call = on_table(call, given.source.rstrip("/") + "/*.parquet" if source.is_dir() else given.source)
    config: dict[str, Any] = {}
    beside = Path(given.target.rstrip("/")).absolute().parent if is_rows else source.absolute().parent
    if is_rows and beside.is_dir():
        config["temp_directory"] = str(beside / f".{Path(given.target).name}.spill")
    con = connect(":memory:" if is_rows else given.source, **config)
    con.execute("set python_enable_replacements = false")
    descriptions: list[str] = []

    def work() -> None:
        options = {"replace": given.replace, "part_rows": given.part_rows, "memory": given.memory}
        descriptions.append(str(release(con, given.target, call, **options)))

    try:
        run_with_progress(con, work)
    finally:
        con.close()
    sys.stdout.write(f"{given.target}: {descriptions[0]}\n")
    return 0
