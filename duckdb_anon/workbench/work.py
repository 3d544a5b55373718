"""Long work of a workbench, in a process of its own: `python -m duckdb_anon.workbench.work KIND PLAN TABLE`.

Writes one JSON object a line on standard output: {"progress": text, "share": number or null}, and at last {"result":
...} or {"error": text}. An interrupt ends it. Pages stay quick meanwhile, and what a page shows is read again from the
plan, so that nothing is lost when either process ends.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duckdb_anon.engine.catalog.catalog import Catalog, write_comments
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model import progress
from duckdb_anon.model.errors import of_function
from duckdb_anon.release_api import release
from duckdb_anon.report.anon_report import write_edition
from duckdb_anon.report.figures import percent
from duckdb_anon.report.findings import Findings, Plan
from duckdb_anon.report.measure import measure
from duckdb_anon.shell import run_command
from duckdb_anon.shell.run_input import read_table
from duckdb_anon.shell.running import run_stoppable
from duckdb_anon.sql_functions import connect
from duckdb_anon.workbench.state import NAME, Workbench

SECONDS, TARGETS, QUERIES = 60, 1000, 200
_TRIAL = "anon_trial"
Say = Callable[[str], object]
Result = dict[str, Any]


def trials(bench: Workbench, say: Say) -> Result:
    """Methods and parameters that recommend tries."""
    promise = bench.promise()
    call = (
        f"recommend({literal(bench.name)}, max_risk := {promise.aim}, per_record := {literal(promise.per_record)}, "
        f"targets := {TARGETS}, seconds := {SECONDS}, seed := 1)"
    )
    return {"limit": promise.limit, "rows": bench.rows_of(f"from {call}")}


def look(bench: Workbench, say: Say) -> Result:
    """A trial of the chosen call: ten rows, and what the page of evidence measures."""
    release(bench.con, _TRIAL, bench.release()["call"])
    found = _measured(bench, bench.name, _TRIAL, say)
    rows = bench.rows_of(f"from {_TRIAL} using sample reservoir(10 rows) repeatable (1)")
    (made,) = found.releases
    return {
        "rows": rows, "risk": made.facts["risk"], "marginals": made.charts["marginals"],
        "queries": made.facts["queries"], "unchanged": found.unchanged, "not_covered": found.not_covered,
        "error": made.mean_error, "missing": made.missing,
    }  # fmt: skip


def _measured(bench: Workbench, original: str, name: str, say: Say) -> Findings:
    plan = Plan(original, (name,), TARGETS, QUERIES)
    return measure(bench.con, plan, bench.stated()["context"], say)


def publish(bench: Workbench, say: Say) -> Result:
    """Carry out the plan as `duckdb-anon run` does; verify what was written, and write the page of evidence."""
    out, err = io.StringIO(), _Lines(say)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command.main(Namespace(plan=str(bench.plan), force=False))
    done: Result = {"code": code, "lines": err.lines, "written": out.getvalue().splitlines()}
    if code != 0:
        return done
    say("verifying")
    entry = bench.release()
    file = bench.plan.with_name(entry["output"]).absolute()
    with connect() as con:
        con.execute("set enable_progress_bar = false")
        relation = Catalog(con, "memory", "main").relation(NAME, "release", str(file))
        name = ident(entry["name"])
        con.execute(f"create table {name} as from {literal(str(file))}")
        write_comments(con, name, relation.comment, relation.comments)
        bench.con = con
        done["verified"] = bench.rows_of(f"from verify_release({literal(name)})")
        stated, table = bench.stated(), ident(bench.table)
        read_table(con, bench.table, bench.plan.parent.absolute(), bench.source, bench.cleaning())
        labels = {column: f"anon: {role}" for column, role in stated["labels"].get(bench.table, {}).items()}
        write_comments(con, table, None, labels)
        say("writing the page of evidence")
        found = _measured(bench, bench.name, name, say)
        page = file.with_suffix(".html")
        write_edition(found, str(page), "internal")
    done["risk"] = [f"{percent(row['identity'])}, at most {percent(row['identity_high'])}" for row in _risk(found)]
    return {**done, "warnings": found.warnings, "file": file.name, "page": page.name}


def _risk(found: Findings) -> list[dict[str, Any]]:
    return [row for made in found.releases for row in made.facts["risk"] if row["identity"] is not None]


class _Lines(io.StringIO):
    """Standard error of a command, of which each line is told."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self.say, self.lines = say, list[str]()

    def write(self, text: str) -> int:
        for line in filter(None, text.split("\n")):
            self.lines.append(line)
            self.say(line)
        return len(text)


WORK: dict[str, Callable[[Workbench, Say], Result]] = {"trials": trials, "look": look, "publish": publish}


def main(kind: str, plan: str, table: str) -> int:
    """Do one piece of work."""
    out = sys.stdout

    def write(**message: object) -> None:
        out.write(json.dumps(message, default=str) + "\n")
        out.flush()

    told: list[object] = [None]

    def beat() -> None:
        now = progress.latest()
        if now is not None and now != told[0]:
            told[0] = now
            write(progress=f"{now.function}: {now.phase}", share=now.share)

    def say(text: str) -> None:
        write(progress=text, share=None)

    try:
        say("reading the table")
        bench = Workbench(Path(plan), table)
        result = run_stoppable(bench.con, lambda: WORK[kind](bench, say), beat)
        write(result=result)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        write(error=of_function(NAME, error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
