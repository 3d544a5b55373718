"""`duckdb-anon run plan.toml`: label, release, check and write, or write nothing.

Releases are made and measured in memory; files are written, all of them or none, only when every check of every release
holds: a journal beside the plan lists them once they are complete, and the next run finishes what one was stopped in. A
second run at the same time is refused. A file written from the same original, plan and version is kept: a second random
draw of the same table would let readers compare the two. The register of the releases is a database beside the plan;
with `key` a release continues the last one of its name (`sequence.next_release`). [database] releases several tables
together (`run_database`). Exit codes: 0 written or kept, 1 an error, 2 wrong usage, 3 a check does not hold.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.database.evidence import restate
from duckdb_anon.engine.catalog.catalog import names_of, write_comments
from duckdb_anon.engine.catalog.column_roles import ROLES
from duckdb_anon.engine.records.private_files import alone, draft_of, placed_together, write_private
from duckdb_anon.engine.records.register import registered
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.checks import refuse
from duckdb_anon.gate.files import write_parquet
from duckdb_anon.gate.source_tables import described_table
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.toml_files import read_toml, require_known
from duckdb_anon.outputs.policy import policy_of, with_policy
from duckdb_anon.release_api import release
from duckdb_anon.report.linked_release import check_releases, comments
from duckdb_anon.report.release_context import context_of
from duckdb_anon.report.weak_labels import weak_labels
from duckdb_anon.shell.run_database import check_fields, database_tables, mark_of, release_plan, say
from duckdb_anon.shell.run_input import (
    FIELD,
    FIELDS,
    SHRINK,
    changed_columns,
    input_of,
    read_table,
    too_small,
    write_policy,
)
from duckdb_anon.sql_functions import connect

_FIELDS = ("tables", "cleaning", "labels", "treatments", "releases", "database", "outputs", "statements", FIELD)
_OPTIONS = ("key", "independent", "deleted", "changed")
_RELEASE = ("name", "original", "call", "checks", "output", *_OPTIONS)
_REGISTER = "anon_register"
CHECKS = {
    "k": ("select k from k_anonymity({release})", "at least"),
    "l": ("select value from l_diversity({release}) where measure = 'frequency'", "at least"),
    "t": ("select t from t_closeness({release})", "at most"),
    # classes do not bound the risk where values are exchanged: there the method's delta does
    "prosecutor": ("select coalesce({delta}, (select prosecutor from reidentification_risk({release})))", "at most"),
    "identity": ("select identity_high from linkage_risk({pair}, seed := 1) where attacker = 'strongest'", "at most"),
    "advantage": ("select advantage from linkage_risk({pair}, seed := 1) where attacker = 'strongest'", "at most"),
    "loss": ("select iloss from information_loss({pair}) where attribute = '(all)'", "at most"),
}
FAILED = 3
_DATABASE, _INPUT = "[database]", "[input]"


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
        con.execute(f"attach {literal(str(draft))} as {_REGISTER}")
        lines = list[str]()
        code = _run(con, plan, path, given.force, lines)
        con.execute(f"detach {_REGISTER}")
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
    for name, roles in plan["labels"].items():
        write_comments(con, ident(name), None, {column: f"anon: {role}" for column, role in roles.items()})
    weak = weak_labels(con, {name: ident(name) for name in plan["tables"]}, plan["context"])
    for warning in (*weak.values(), *plan["context"].expired()):
        say(f"warning: {warning}")
    parts = {entry["name"]: (entry, [entry["original"]]) for entry in plan["releases"]}
    if "database" in plan:
        made_of = {name: value for name, value in plan["database"].items() if name != "evidence"}
        parts[_DATABASE] = made_of, database_tables(made_of)
    key = _key(path.with_name(f".{path.name}.key"))
    marks = {name: mark_of(con, plan, part, tables, key) for name, (part, tables) in parts.items()}
    outputs = {name: folder / part["output"] for name, (part, _) in parts.items()}
    due = [name for name in parts if force or state.get(name) != marks[name] or not outputs[name].exists()]
    failed = [line for entry in plan["releases"] if entry["name"] in due for line in _checked(con, entry, folder)]
    if _DATABASE in due and not failed:
        failed = release_plan(con, plan, folder, marks[_DATABASE], state.get(_DATABASE))
    if failed:
        return _failed(failed)
    for name, output in outputs.items():
        done = "kept, nothing has changed"
        if name in due and name == _DATABASE:
            done = "the tables were released"
        elif name in due:
            output.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(con, ident(name), str(output), replace=True)
            done = comments(con, ident(name))[0]
        lines.append(f"{output}: {done}")
    lines += [write_policy(con, folder, plan["tables"][n], n, given) for n, given in plan["outputs"].items()]
    page = plan.get("database", {}).get("evidence")
    if page and _DATABASE not in due and not (folder / page).exists():
        lines.append(f"{folder / page}: missing, as the release was kept; --force makes both again")
    elif page and _DATABASE not in due and restate(folder / page, plan["context"]):
        lines.append(f"{folder / page}: written again with the new statements")
    if due or marks != state or now != before:
        with draft_of(state_file, mode=0o600) as draft:
            draft.write_text(json.dumps({**marks, _INPUT: now}, indent=2) + "\n", encoding="utf-8")
    return 0


def _failed(lines: Iterable[str]) -> int:
    sys.stderr.write("".join(f"{line}\n" for line in lines) + "nothing was written\n")
    return FAILED


def read_plan(path: Path) -> dict[str, Any]:
    """Read and check a plan."""

    def known(where: str, given: Iterable[str], names: Iterable[str]) -> None:
        require_known("run", f"{path}: {where}", given, names)

    plan = read_toml("run", path)
    known("the plan", plan, _FIELDS)
    empty: dict[str, Any] = {part: {} for part in ("tables", "cleaning", "labels", "treatments", "outputs", FIELD)}
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
    for entry in plan["releases"]:
        known("a release", entry, _RELEASE)
        if missing := [key for key in ("name", "original", "call", "output") if key not in entry]:
            raise AnonError(f"run: {path}: a release has no {missing[0]}; it needs name, original, call and output")
        known(f"original of {entry['name']}", [entry["original"]], tables)
        known(f"checks of {entry['name']}", entry.setdefault("checks", {}), CHECKS)
        if not entry["output"].endswith(".parquet"):
            raise AnonError(f"run: {path}: output of {entry['name']} is a file that ends in .parquet")
    return plan


def _key(file: Path) -> bytes:
    """The plan's key: without it nobody can try rows of an original against the state file."""
    if not file.exists():
        write_private(file, secrets.token_hex(32) + "\n")
    return file.read_text(encoding="utf-8").strip().encode()


def _checked(con: duckdb.DuckDBPyConnection, entry: Mapping[str, Any], folder: Path) -> list[str]:
    """Make a release in memory; one line for each check that does not hold."""
    name = entry["name"]
    say(f"{name}: {entry['call']}")
    options = {option: entry[option] for option in _OPTIONS if option in entry}
    made = [known.name for known in registered(con, _REGISTER)]
    if "key" in entry and f"memory.{name}" in made and (folder / entry["output"]).exists():
        con.execute(f"create table {ident(name)} as from {literal(str(folder / entry['output']))}")
        options |= {"previous": ident(name), "replace": True}
    description = release(con, ident(name), entry["call"], register=_REGISTER, **options)
    if "previous" in options:
        say(f"{name}: {description.splitlines()[1]}")
    table, columns = comments(con, ident(name))
    described = read_description(table)
    if described is None or names_of(described.original) != names_of(ident(entry["original"])):
        raise AnonError(
            f"run: {name} is made of {described.original if described else 'another table'}, and its checks compare it "
            f"with {entry['original']}. Name one table in call and original"
        )
    refuse(con, "run", described_table(con, ident(name), name, table, columns))
    lines = []
    with check_releases(con, entry["original"]) as checks:
        # rows of individuals are counted by the check release, whose row numbers lead to the person column
        if described.persons or any("{pair}" in CHECKS[check][0] for check in entry["checks"]):
            checks.add(ident(name))
        for check, limit in entry["checks"].items():
            question, side = CHECKS[check]
            linked = checks.of.get(ident(name))
            pair = f"{literal(entry['original'])}, {literal(linked.table)}" if linked else ""
            counted = literal(ident(name))
            if described.persons and linked:
                counted = f"{literal(linked.table)}, original := {literal(entry['original'])}"
            # beside an epsilon, delta is the probability that differential privacy fails
            delta = None if "epsilon" in described.parameters else described.parameters.get("delta")
            found = con.execute(question.format(release=counted, pair=pair, delta=literal(delta))).fetchall()
            value = found[0][0] if found else None
            holds = value is not None and (value >= limit if side == "at least" else value <= limit)
            measured = "could not be measured" if value is None else f"is {value:.4g}"
            say(f"{name}: {check} {measured}, {side} {limit:g} is required: {'holds' if holds else 'does not hold'}")
            if not holds:
                lines.append(f"{name}: {check} {measured}, {side} {limit:g} is required")
    return lines
