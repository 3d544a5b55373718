"""`duckdb-anon release`: run a method on a database and write its release with its description."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from duckdb_anon.functions import connect
from duckdb_anon.model.errors import AnonError
from duckdb_anon.releases import release


def main(arguments: Sequence[str]) -> int:
    """Write one release."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon release",
        description="Run a method and write the table together with comments that say what it is.",
    )
    parser.add_argument("database", help="DuckDB file with the labelled original")
    parser.add_argument("name", help="table to write, or a file that ends in .parquet")
    parser.add_argument("call", help="one call of a method, \"muco('people', 0.2)\"")
    parser.add_argument("--replace", action="store_true", help="replace the table or file if it exists")
    given = parser.parse_args(arguments)
    if not Path(given.database).exists():
        raise AnonError(f"release: there is no database {given.database}")
    con = connect(given.database)
    con.execute("set python_enable_replacements = false")
    con.execute("set enable_progress_bar = false")
    try:
        said = release(con, given.name, given.call, replace=given.replace)
    finally:
        con.close()
    sys.stdout.write(f"{given.name}: {said}\n")
    return 0
