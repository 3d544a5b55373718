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

from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model import progress
from duckdb_anon.model.errors import of_function
from duckdb_anon.release_api import release
from duckdb_anon.report.figures import percent
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.measure import measure
from duckdb_anon.shell import run_command
from duckdb_anon.shell.run_command import read_plan
from duckdb_anon.shell.run_release import load_release
from duckdb_anon.shell.running import run_stoppable
from duckdb_anon.sql_functions import connect
from duckdb_anon.workbench.state import NAME, Workbench, rows_of

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
    found = measure(bench.con, Plan(bench.name, (_TRIAL,), TARGETS, QUERIES), bench.stated()["context"], say)
    rows = bench.rows_of(f"from {_TRIAL} using sample reservoir(10 rows) repeatable (1)")
    (made,) = found.releases
    return {
        "rows": rows, "risk": made.facts["risk"], "marginals": made.charts["marginals"],
        "queries": made.facts["queries"], "unchanged": found.unchanged, "not_covered": found.not_covered,
        "error": made.mean_error, "missing": made.missing,
    }  # fmt: skip


def publish(plan: Path, table: str, say: Say) -> Result:
    """Carry out the plan as `duckdb-anon run` does, which writes release and page, and verify the file."""
    out, err = io.StringIO(), _Lines(say)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command.main(Namespace(plan=str(plan), force=False))
    done: Result = {"code": code, "lines": err.lines, "written": out.getvalue().splitlines()}
    if code != 0:
        return done
    say("verifying")
    entry = next(entry for entry in read_plan(plan)["releases"] if entry["original"] == table)
    file, page = (plan.with_name(entry[name]).absolute() for name in ("output", "evidence"))
    with connect() as con:
        load_release(con, file, entry["name"])
        done["verified"] = rows_of(con, f"from verify_release({literal(ident(entry['name']))})")
    facts = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    risks = [row for made in facts["releases"] for row in made["risk"] if row["identity"] is not None]
    done["risk"] = [f"{percent(row['identity'])}, at most {percent(row['identity_high'])}" for row in risks]
    return {**done, "warnings": facts["warnings"], "file": file.name, "page": page.name}


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


WORK: dict[str, Callable[[Workbench, Say], Result]] = {"trials": trials, "look": look}
"""Work on the rows that a workbench chooses on."""


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
        if kind in WORK:
            bench = Workbench(Path(plan), table)
            result = run_stoppable(bench.con, lambda: WORK[kind](bench, say), beat)
        else:  # on all rows, which run reads
            with connect() as con:
                result = run_stoppable(con, lambda: publish(Path(plan), table, say), beat)
        write(result=result)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        write(error=of_function(NAME, error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
