"""`duckdb-anon demo`: label, protect, attack and query a sample table, with nothing but SQL on the screen."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.resources import files

from duckdb_anon.shell.session import Session
from duckdb_anon.sql_functions import connect


def main(arguments: Sequence[str]) -> int:
    """Run demo.sql on an in-memory database; nothing is written to disk."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon demo", description="Label, protect, attack and query a sample table."
    )
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the sample (default: 20000)")
    given = parser.parse_args(arguments)
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
