"""The part of `duckdb-anon run` that makes one release of a table: [[releases]] of a plan.

A release is made and measured in memory. With `evidence` everything that its page has is measured, once: checks of
`identity`, `advantage` and `loss` judge what the page prints. Cost: the method, the check release, and each measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, names_of, write_comments
from duckdb_anon.engine.records.register import registered
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.checks import refuse
from duckdb_anon.gate.files import write_parquet
from duckdb_anon.gate.source_tables import clean_comment, described_table
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_comment import Description, read_description
from duckdb_anon.release_api import release
from duckdb_anon.report.anon_report import require_extra
from duckdb_anon.report.findings import Findings, Plan
from duckdb_anon.report.linked_release import Checks, check_releases, comments
from duckdb_anon.report.measure import measure, measured
from duckdb_anon.report.release_context import HoldersContext
from duckdb_anon.shell.run_database import OUT, say, write_database
from duckdb_anon.shell.run_input import read_table

_OPTIONS = ("key", "independent", "deleted", "changed")
RELEASE = ("name", "original", "call", "checks", "output", "evidence", *_OPTIONS)
REGISTER = "anon_register"
# classes do not bound the risk where values are exchanged: there the method's delta does
_OF_RECORDS = "select coalesce({delta}, (select prosecutor from reidentification_risk({release})))"
_COUNTED = {
    "k": "select k from k_anonymity({release})",
    "l": "select value from l_diversity({release}) where measure = 'frequency'",
    "t": "select t from t_closeness({release})",
    "prosecutor": _OF_RECORDS,
    "journalist": _OF_RECORDS,
}
_OF_POPULATION = "select highest from k_map({table}, {population})"
_ATTACK = "select identity_high, advantage from linkage_risk({pair}, seed := 1) where attacker = 'strongest'"
_LOSS = "select iloss from information_loss({pair}) where attribute = '(all)'"
_AT_LEAST = ("k", "l")
CHECKS = (*_COUNTED, "identity", "advantage", "loss")


def checked(
    con: duckdb.DuckDBPyConnection, entry: Mapping[str, Any], folder: Path, context: HoldersContext
) -> tuple[list[str], Findings | None]:
    """Make a release in memory; a line for each check that does not hold, and what the page of evidence has."""
    name, original = entry["name"], ident(entry["original"])
    if "evidence" in entry:
        require_extra("run")
    say(f"{name}: {entry['call']}")
    options = {option: entry[option] for option in _OPTIONS if option in entry}
    made = [known.name for known in registered(con, REGISTER)]
    if "key" in entry and f"memory.{name}" in made and (folder / entry["output"]).exists():
        load_release(con, folder / entry["output"], name)
        options |= {"previous": ident(name), "replace": True}
    description = release(con, ident(name), entry["call"], register=REGISTER, **options)
    if "previous" in options:
        say(f"{name}: {description.splitlines()[1]}")
    table, columns = comments(con, ident(name))
    described = read_description(table)
    if described is None or names_of(described.original) != names_of(original):
        raise AnonError(
            f"run: {name} is made of {described.original if described else 'another table'}, and its checks compare it "
            f"with {entry['original']}. Name one table in call and original"
        )
    refuse(con, "run", described_table(con, ident(name), name, table, columns))
    with check_releases(con, original) as checks:
        values, found = _values(checks, entry, described, context)
    failed = []
    for check, limit in entry["checks"].items():
        value, side = values[check], "at least" if check in _AT_LEAST else "at most"
        holds = value is not None and (value >= limit if side == "at least" else value <= limit)
        line = f"{name}: {check} {'could not be measured' if value is None else f'is {value:.4g}'}, {side} {limit:g} is"
        say(f"{line} required: {'holds' if holds else 'does not hold'}")
        failed += [] if holds else [f"{line} required"]
    return failed, found


def _values(
    checks: Checks, entry: Mapping[str, Any], described: Description, context: HoldersContext
) -> tuple[dict[str, float | None], Findings | None]:
    """What is measured for the checks, and for the page of evidence: where there is one, its attacks and its loss."""
    con, name, wanted = checks.con, ident(entry["name"]), entry["checks"]
    # rows of individuals are counted by the check release, whose row numbers lead to the person column
    if described.persons or not wanted.keys() <= _COUNTED.keys():
        checks.add(name)
        linked = literal(checks.of[name].table)
        pair = f"{literal(checks.original)}, {linked}"
    # beside an epsilon, delta is the probability that differential privacy fails
    delta = None if "epsilon" in described.parameters else described.parameters.get("delta")
    counted = f"{linked}, original := {literal(checks.original)}" if described.persons else literal(name)

    def first(question: str, columns: int = 1) -> tuple[Any, ...]:
        return next(iter(con.execute(question).fetchall()), (None,) * columns)

    questions = dict(_COUNTED)
    if context.population and delta is None:  # without a population the journalist finds what the prosecutor finds
        questions["journalist"] = _OF_POPULATION
    given = {
        "release": counted,
        "table": literal(name),
        "delta": literal(delta),
        "population": literal(context.population),
    }
    values = {check: first(text.format(**given))[0] for check, text in questions.items() if check in wanted}
    if "evidence" in entry:
        found = measured(checks, Plan(checks.original, (name,)), context, say)
        (page,) = found.releases
        risk = next(iter(page.facts["risk"]), {})
        loss = [row["iloss"] for row in page.charts["loss"] if row["attribute"] == "(all)"]
        attacks = {"identity": risk.get("identity_high"), "advantage": risk.get("advantage")}
        return {**values, **attacks, "loss": next(iter(loss), None)}, found
    if "identity" in wanted or "advantage" in wanted:
        values["identity"], values["advantage"] = first(_ATTACK.format(pair=pair), 2)
    if "loss" in wanted:
        values["loss"] = first(_LOSS.format(pair=pair))[0]
    return values, None


def of_kept(
    con: duckdb.DuckDBPyConnection, entry: Mapping[str, Any], folder: Path, context: HoldersContext
) -> Findings:
    """What the page of a release has that was kept, measured on its file: statements have changed, or it is gone."""
    require_extra("run")
    load_release(con, folder / entry["output"], entry["name"])
    return measure(con, Plan(ident(entry["original"]), (ident(entry["name"]),)), context, say)


def load_release(con: duckdb.DuckDBPyConnection, file: Path, name: str) -> None:
    """Make a table of a released file, with its comments: Parquet, or a database with a table of that name."""
    if file.suffix == ".duckdb":
        read_table(con, name, file.parent, f"{file.name}:{ident(name)}", {})
        return
    found = Catalog(con, "memory", "main").relation("run", "output", str(file))
    con.execute(f"create table {ident(name)} as from {found.sql}")
    write_comments(con, ident(name), found.comment, found.comments)


def write_file(con: duckdb.DuckDBPyConnection, name: str, file: Path) -> None:
    """Write a release that was checked to a Parquet file, or to a database that has nothing else."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix != ".duckdb":
        write_parquet(con, ident(name), str(file), replace=True)
        return
    table, columns = comments(con, ident(name))
    goal = f"{OUT}.main.{ident(name)}"
    labels = {column: clean_comment(text) for column, text in columns.items()}

    def write() -> None:
        con.execute(f"create table {goal} as from {ident(name)}")
        write_comments(con, goal, table, labels)

    write_database(con, file, write)
