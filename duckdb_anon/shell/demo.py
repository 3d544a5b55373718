"""`duckdb-anon demo`: label, protect, attack and query a sample table, with nothing but SQL on the screen."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from duckdb_anon.shell.session import Session
from duckdb_anon.sql_functions import connect

ROWS = 20_000


@dataclass(frozen=True)
class Step:
    """A heading, SQL that is shown and run, and what to read in its answer."""

    heading: str
    shown: str
    note: str = ""


STEPS = (
    Step(
        "Say which columns could identify people and which one they would mind seeing known",
        "COMMENT ON COLUMN census.age            IS 'anon: quasi';\n"
        "COMMENT ON COLUMN census.gender         IS 'anon: quasi';\n"
        "COMMENT ON COLUMN census.education      IS 'anon: quasi';\n"
        "COMMENT ON COLUMN census.hours_per_week IS 'anon: quasi';\n"
        "COMMENT ON COLUMN census.salary         IS 'anon: sensitive';",
    ),
    Step(
        "Risk as it stands: who is alone with these values, though no name is in the table?",
        "SELECT rows, sample_uniques, marketer AS average_risk FROM reidentification_risk('census');",
        "sample_uniques people differ from everybody else in what a neighbour knows.",
    ),
    Step(
        "Protect: values are dealt out anew among at least five records that are alike",
        "CREATE TABLE release AS FROM muco('census', 0.2, row_id := true);\nFROM release LIMIT 3;",
        "Columns nobody labelled are gone, rows are shuffled. row_id is for the checks below;\n"
        "leave it out of what you publish.",
    ),
    Step(
        "Risk: how often does the strongest attacker find a person, who knows all these facts and the method?",
        "SELECT 'as it stands' AS published, round(identity, 4) AS identity, round(attribute, 4) AS attribute,\n"
        "       round(baseline, 4) AS baseline\n"
        "FROM linkage_risk('census', '(SELECT *, row_number() OVER () - 1 AS row_id FROM census)')\n"
        "WHERE attacker = 'strongest' UNION ALL\n"
        "SELECT 'release', round(identity, 4), round(attribute, 4), round(baseline, 4)\n"
        "FROM linkage_risk('census', 'release', call := 'muco(0.2)') WHERE attacker = 'strongest';",
        "identity: chance to point at the right record; attribute: chance to name the salary; baseline: chance to\n"
        "name it for somebody whose record is not looked at.",
    ),
    Step(
        "Loss: how far are the published values from the true ones, as a share of each range?",
        "SELECT attribute, round(iloss, 4) AS loss, round(changed, 3) AS changed\n"
        "FROM information_loss('census', 'release');",
    ),
    Step(
        "Use: how wrong is a query on the release?",
        "SELECT keys, original, estimate, round(relative_error, 4) AS relative_error FROM relative_error(\n"
        "  'SELECT education, avg(salary) FROM census WHERE age < 40 GROUP BY education', 'census', 'release')\n"
        "ORDER BY original DESC LIMIT 5;",
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Run the demo on an in-memory database; nothing is written."""
    parser = argparse.ArgumentParser(
        prog="duckdb-anon demo", description="Label, protect, attack and query a sample table."
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of the sample (default: {ROWS})")
    rows = parser.parse_args(arguments).rows
    con = connect()
    con.execute(f"create table census as from anon_sample('census', {rows})")
    _say(f"A made-up census of {rows:,} people (FROM anon_sample('census')); no one in it is real.\n")
    try:
        for number, step in enumerate(STEPS, start=1):
            _show(con, number, step)
    finally:
        con.close()
    _say(
        "That is all: your own table next. duckdb-anon FILE.duckdb opens it; FROM anon_functions() lists the functions."
    )
    return 0


def _show(con: duckdb.DuckDBPyConnection, number: int, step: Step) -> None:
    _say(f"{number}. {step.heading}\n")
    for line in step.shown.splitlines():
        _say(f"   {line}")
    started = time.perf_counter()
    Session(con).run_text(step.shown)
    seconds = time.perf_counter() - started
    _say("\n".join([f"   ({seconds:.2f} s)", *(f"   {line}" for line in step.note.splitlines()), ""]))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
