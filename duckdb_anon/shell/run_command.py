"""`duckdb-anon run plan.toml`: label, release, check and write, or write nothing.

Releases are made and measured in memory; files are written, all of them or none, only when every check of every release
holds: a journal beside the plan lists them once they are complete, and the next run finishes what one was stopped in. A
second run at the same time is refused. A file written from the same original, plan and version is kept: a second random
draw of the same table would let readers compare the two. The register of the releases is a database beside the plan;
with `key` a release continues the last one of its name (`sequence.next_release`). With `evidence` the page of a release
is written, whose attacks are those that the checks judge. [database] releases several tables together
(`run_database`). Exit codes: 0 written or kept, 1 an error, 2 wrong usage, 3 a check does not hold.
"""

from __future__ import annotations

import hmac
import json
import secrets
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from os.path import normpath
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.database.evidence import restate
from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.catalog.column_roles import ROLES
from duckdb_anon.engine.records.private_files import alone, draft_of, placed_together, write_private
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, listed
from duckdb_anon.model.toml_files import read_toml, require_known
from duckdb_anon.outputs.policy import policy_of, with_policy
from duckdb_anon.report.anon_report import write_edition
from duckdb_anon.report.findings import Findings
from duckdb_anon.report.linked_release import comments
from duckdb_anon.report.release_context import context_of
from duckdb_anon.report.weak_labels import weak_labels
from duckdb_anon.shell.run_database import check_fields, database_tables, mark_of, release_plan, say
from duckdb_anon.shell.run_input import (
    FIELD,
    FIELDS,
    SHRINK,
    changed_columns,
    input_of,
    make_hierarchies,
    read_table,
    too_small,
    write_policy,
)
from duckdb_anon.shell.run_release import CHECKS, REGISTER, RELEASE, checked, of_kept, write_file
from duckdb_anon.sql_functions import connect

_PARTS = ("tables", "cleaning", "hierarchies", "labels", "treatments", "outputs", FIELD)
_FIELDS = (*_PARTS, "releases", "database", "statements")
FAILED = 3
_DATABASE, _INPUT, _PAGES = "[database]", "[input]", "[evidence]"


def main(given: Namespace) -> int:
    """Run one plan."""
    path = Path(given.plan)
    plan = read_plan(path)
    hidden = {name: path.with_name(f".{path.name}.{name}") for name in ("register.duckdb", "lock", "journal")}
    refusal = f"run: {path}: another run of this plan is under way. Wait until it has ended"
    register = hidden["register.duckdb"]
    with (
        alone(hidden["lock"], refusal), placed_together(hidden["journal"]), connect() as con,
        draft_of(register, mode=0o600) as draft,
    ):  # fmt: skip
        con.execute("set python_enable_replacements = false; set enable_progress_bar = false")
        if register.exists():
            shutil.copy(register, draft)
        con.execute(f"attach {literal(str(draft))} as {REGISTER}")
        lines = list[str]()
        code = _run(con, plan, path, given.force, lines)
        con.execute(f"detach {REGISTER}")
        if code != 0:
            draft.unlink()  # of the releases of this run nothing stays
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


def _run(con: duckdb.DuckDBPyConnection, plan: Mapping[str, Any], path: Path, force: bool, lines: list[str]) -> int:
    """Do what a checked plan says; `lines` takes what to say of each file once all are in their places."""
    folder, state_file = path.parent, path.with_name(f".{path.name}.state.json")
    state = json.loads(state_file.read_text(encoding="utf-8")) if state_file.exists() else {}
    for name, source in plan["tables"].items():
        say(f"{name}: reading {source}")
        for line in read_table(con, name, folder, source, plan["cleaning"].get(name, {})):
            say(f"warning: {line}")
    now, before = input_of(con, plan["tables"]), state.pop(_INPUT, {})
    for line in changed_columns(now, before):
        say(f"warning: {line}")
    if failed := too_small(now, before, plan[FIELD].get(SHRINK.name, SHRINK.default)):
        return _failed(failed)
    make_hierarchies(con, plan["hierarchies"])
    for name, roles in plan["labels"].items():
        write_comments(con, ident(name), None, {column: f"anon: {role}" for column, role in roles.items()})
    weak = weak_labels(con, {name: ident(name) for name in plan["tables"]}, plan["context"])
    for warning in (*weak.values(), *plan["context"].expired()):
        say(f"warning: {warning}")
    parts = {entry["name"]: (_made_of(entry), [entry["original"]]) for entry in plan["releases"]}
    if "database" in plan:
        parts[_DATABASE] = _made_of(plan["database"]), database_tables(plan["database"])
    key = _key(path.with_name(f".{path.name}.key"))
    marks = {name: mark_of(con, plan, part, tables, key) for name, (part, tables) in parts.items()}
    outputs = {name: folder / part["output"] for name, (part, _) in parts.items()}
    due = [name for name in parts if force or state.get(name) != marks[name] or not outputs[name].exists()]
    stated = hmac.digest(key, repr(plan["context"]).encode(), "sha256").hex()
    written, failed, pages = state.pop(_PAGES, {}), list[str](), dict[Path, Findings]()
    for entry in plan["releases"]:
        page = folder / entry["evidence"] if "evidence" in entry else None
        if entry["name"] in due:
            lines_of, found = checked(con, entry, folder, plan["context"])
            failed += lines_of
        elif page and (written.get(entry["name"]) != stated or not page.exists()):
            found = of_kept(con, entry, folder, plan["context"])
        else:
            continue
        pages |= {page: found} if page and found else {}
    if _DATABASE in due and not failed:
        failed = release_plan(con, plan, folder, marks[_DATABASE], state.get(_DATABASE))
    if failed:
        return _failed(failed)
    for name, output in outputs.items():
        done = "kept, nothing has changed"
        if name in due and name == _DATABASE:
            done = "the tables were released"
        elif name in due:
            write_file(con, name, output)
            done = comments(con, ident(name))[0]
        lines.append(f"{output}: {done}")
    for page, found in pages.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        write_edition(found, str(page), "internal")
        lines.append(f"{page}: the evidence, with figures of the original: not for publication")
    lines += [write_policy(con, folder, plan["tables"][n], n, given) for n, given in plan["outputs"].items()]
    page = plan.get("database", {}).get("evidence")
    if page and _DATABASE not in due and not (folder / page).exists():
        lines.append(f"{folder / page}: missing, as the release was kept; --force makes both again")
    elif page and _DATABASE not in due and restate(folder / page, plan["context"]):
        lines.append(f"{folder / page}: written again with the new statements")
    if due or pages or marks != state or now != before:
        stated_on = {entry["name"]: stated for entry in plan["releases"] if "evidence" in entry}
        with draft_of(state_file, mode=0o600) as draft:
            draft.write_text(json.dumps({**marks, _INPUT: now, _PAGES: stated_on}, indent=2) + "\n", encoding="utf-8")
    return 0


def _made_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """What a release depends on: its page may come later, and makes no second draw."""
    return {name: value for name, value in part.items() if name != "evidence"}


def _failed(lines: Iterable[str]) -> int:
    sys.stderr.write("".join(f"{line}\n" for line in lines) + "nothing was written\n")
    return FAILED


def read_plan(path: Path) -> dict[str, Any]:
    """Read and check a plan."""

    def known(where: str, given: Iterable[str], names: Iterable[str]) -> None:
        require_known("run", f"{path}: {where}", given, names)

    plan = read_toml("run", path)
    known("the plan", plan, _FIELDS)
    empty: dict[str, Any] = {part: {} for part in _PARTS}
    plan = {**empty, "releases": [], **plan}
    known(FIELD, plan[FIELD], FIELDS)
    SHRINK.check(f"run: {path}: input", plan[FIELD].get(SHRINK.name))
    plan["context"] = context_of(plan.pop("statements", {}), "run", path)
    tables = plan["tables"]
    if not tables or not (plan["releases"] or "database" in plan or plan["outputs"]):
        raise AnonError(
            f"run: {path} needs [tables], NAME = FILE, and at least one [[releases]], a [database] or [outputs.TABLE]"
        )
    for part in ("cleaning", "treatments", "labels", "outputs"):
        known(part, plan[part], tables)
    if both := tables.keys() & plan["hierarchies"].keys():
        raise AnonError(f"run: {path}: {listed(both)} is a table and a hierarchy. Give the hierarchy another name")
    if "database" in plan:
        check_fields(path, plan["database"])
        known("database", database_tables(plan["database"]), tables)
    for name, roles in plan["labels"].items():
        known(f"labels.{name}", [role.split()[0] for role in roles.values()], ROLES)
    for name, given in plan["outputs"].items():
        policy_of(f"run: {path}", name, with_policy("", given))
        if ".duckdb:" not in tables[name]:
            raise AnonError(
                f"run: {path}: outputs.{name} is a policy of a table in a database, and {tables[name]} is a file. Load "
                f"it into a database, and write {name} = 'people.duckdb:{name}'"
            )
    sources = {normpath(database + dot) for database, dot, _ in (s.partition(".duckdb") for s in tables.values())}
    for entry in plan["releases"]:
        known("a release", entry, RELEASE)
        if missing := [key for key in ("name", "original", "call", "output") if key not in entry]:
            raise AnonError(f"run: {path}: a release has no {missing[0]}; it needs name, original, call and output")
        known(f"original of {entry['name']}", [entry["original"]], tables)
        known(f"checks of {entry['name']}", entry.setdefault("checks", {}), CHECKS)
        if not entry["output"].endswith((".parquet", ".duckdb")):
            raise AnonError(f"run: {path}: output of {entry['name']} is a file that ends in .parquet or .duckdb")
        if normpath(entry["output"]) in sources:
            raise AnonError(f"run: {path}: output of {entry['name']} is the file of an original. Name another file")
        if not str(entry.get("evidence", ".html")).endswith(".html"):
            raise AnonError(f"run: {path}: evidence of {entry['name']} is a page that ends in .html")
    return plan


def _key(file: Path) -> bytes:
    """The plan's key: without it nobody can try rows of an original against the state file."""
    if not file.exists():
        write_private(file, secrets.token_hex(32) + "\n")
    return file.read_text(encoding="utf-8").strip().encode()
