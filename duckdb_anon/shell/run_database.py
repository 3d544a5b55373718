"""The part of `duckdb-anon run` that releases a database: [database], [database.keys] and [treatments.TABLE] of a plan.

The tables are released together (`database.release`) into one DuckDB file, which appears when it is complete and every
check holds. The file is kept while tables, plan and version are the same. A second release of tables that have changed
adds up with the first one, so it is refused unless the plan says `independent = true`.
"""

from __future__ import annotations

import hmac
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.database.evidence import evidence_page
from duckdb_anon.database.first_plan import first_plan
from duckdb_anon.database.plan import NAME, OPTIONS, Plan
from duckdb_anon.database.released_tables import make_release, working, write_tables
from duckdb_anon.database.risk import TARGETS, Risk, measured
from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.engine.records.release_digest import row_checksum
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.engine.transaction import transaction
from duckdb_anon.gate.checks import require_signature
from duckdb_anon.gate.source_tables import tables_of
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.toml_files import require_known
from duckdb_anon.model.version import __version__
from duckdb_anon.report.anon_report import require_extra
from duckdb_anon.shell.run_input import is_file_of_rows
from duckdb_anon.sql_functions import connect

OUT = "anon_out"
FIELDS = (*(option.name for option in OPTIONS), "output", "evidence", "checks", "independent")
CHECKS = ("identity",)


def main_plan(given: Namespace) -> int:
    """Write a first plan for the tables of a database, or for a file of rows."""
    if not Path(given.database).exists():
        raise AnonError(f"plan: there is no database or file {given.database}")
    if given.output and Path(given.output).exists():
        raise AnonError(f"plan: {given.output} exists; give another file")
    source = Path(given.database)
    is_rows = is_file_of_rows(given.database)
    con = connect() if is_rows else connect(given.database, read_only=True)
    try:
        if is_rows:
            con.execute(f"create table {ident(source.name.split('.')[0])} as from {literal(given.database)}")
        folder = Path(given.output).parent if given.output else Path()
        text = first_plan(con, os.path.relpath(given.database, folder), given.k)
    finally:
        con.close()
    if given.output:
        Path(given.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def check_fields(path: Path, given: Mapping[str, Any]) -> None:
    """Check what a plan says of its database before any table is read."""
    require_known("run", f"{path}: database", given, FIELDS)
    require_known("run", f"{path}: database.checks", given.get("checks", {}), CHECKS)
    for name in ("individuals", "key", "output"):
        if name not in given:
            raise AnonError(f"run: {path}: database has no {name}; it needs individuals, key, delta or k, and output")
    if not str(given["output"]).endswith(".duckdb"):
        raise AnonError(f"run: {path}: output of the database is a file that ends in .duckdb")
    if "evidence" in given and not str(given["evidence"]).endswith(".html"):
        raise AnonError(f"run: {path}: evidence of the database is a file that ends in .html")


def database_tables(given: Mapping[str, Any]) -> list[str]:
    """Tables of the database: that of the individuals, and those whose rows keys trace to it."""
    flat = _keys(given)
    return list(dict.fromkeys([given["individuals"], *(name.rpartition(".")[0] for name in flat)]))


def _keys(given: Mapping[str, Any]) -> dict[str, str]:
    """Foreign keys by 'table.column'; TOML reads dotted names as tables."""
    found: dict[str, str] = {}
    for name, value in given.get("keys", {}).items():
        inner = value if isinstance(value, Mapping) else {}
        found |= {f"{name}.{column}": str(to) for column, to in inner.items()} if inner else {name: str(value)}
    return found


def release_plan(
    con: duckdb.DuckDBPyConnection, plan: Mapping[str, Any], folder: Path, mark: str, earlier: str | None
) -> list[str]:
    """Release the database of a plan; lines of checks that do not hold, and then nothing is written."""
    given = plan["database"]
    output = folder / given["output"]
    if earlier is not None and earlier != mark and not given.get("independent", False):
        raise AnonError(
            "run: the database has been released before, and its tables or the plan have changed since. Two releases "
            "add up: whoever compares them learns more than each reveals. Say independent = true in [database] to "
            "release it regardless, or remove the state file of the plan if the first release was not handed out",
            code="released-before",
        )
    options = {o.name: given[o.name] for o in OPTIONS if o.name in given} | {"keys": _keys(given)}
    if options.get("key_file"):
        options["key_file"] = str(folder / options["key_file"])
    if "evidence" in given:
        require_extra("run")
    with working(con, Plan.of(con, database_tables(given), options, plan["treatments"])) as work:
        made = make_release(work)
        say("\n".join(made.lines()))
        limit, risks = given.get("checks", {}).get("identity"), list[Risk]()
        if limit is not None or ("evidence" in given and made.linked):
            risks = measured(work, made, TARGETS, 1)
        if failed := _above(risks, limit):
            return failed
        page = str(folder / given.get("evidence", ""))
        page_context = (
            evidence_page(work, made, risks, page, output.name, limit, plan["context"])
            if "evidence" in given
            else nullcontext()
        )
        again = earlier not in (None, mark)
        with page_context:
            write_database(con, output, lambda: write_tables(work, f"{OUT}.main", independent=again))
    return []


def _above(risks: list[Risk], limit: float | None) -> list[str]:
    for risk in risks:
        alone = "" if risk.pseudonyms is None else f", {risk.pseudonyms:.4f} with pseudonyms alone"
        say(f"identity, {risk.known}: {risk.identity:.4f}, at most {risk.high:.4f}{alone}")
    if limit is None:
        return []
    return [
        f"database: identity by {risk.known} is up to {risk.high:.4g}, at most {limit:g} is required"
        for risk in risks
        if risk.judged and risk.high > limit
    ]


def write_database(con: duckdb.DuckDBPyConnection, output: Path, write: Callable[[], object]) -> None:
    """Write tables of the database `OUT` to a file that appears when it is complete."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(output) as draft:
        con.execute(f"attach {literal(str(draft))} as {OUT}")
        try:
            with transaction(con, NAME):
                write()
                for table in tables_of(con, OUT):
                    require_signature("run", table)
            con.execute(f"checkpoint {OUT}")
        finally:
            con.execute(f"detach {OUT}")


def mark_of(
    con: duckdb.DuckDBPyConnection, plan: Mapping[str, Any], part: Mapping[str, Any], tables: Sequence[str], key: bytes
) -> str:
    """Keyed hash of what a part of a plan is made from, which nobody without the key can try values against.

    `part` is a release or the database, `tables` are its tables; the order of their rows does not count.
    """
    rows = {name: row_checksum(con, ident(name)) for name in tables}
    labels, treatments = ({name: plan[kind].get(name) for name in tables} for kind in ("labels", "treatments"))
    trees = [plan["hierarchies"]] if plan["hierarchies"] else []
    stated = json.dumps([rows, labels, treatments, part, __version__, *trees], sort_keys=True, default=str)
    return hmac.digest(key, stated.encode(), "sha256").hex()


def say(line: str) -> None:
    """Report progress on stderr."""
    sys.stderr.write(f"{line}\n")
