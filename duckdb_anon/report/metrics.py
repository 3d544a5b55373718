"""Measures everything a report shows, by the package's own SQL functions.

A measure that does not apply to a release (no row_id, a shape it cannot read) leaves its reason in place of its
numbers: a report never stays silent about what it did not measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from duckdb_anon.engine.column_roles import role_of
from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import AnonError, without_code
from duckdb_anon.report.linked_release import Checks, comments

Rows = list[tuple[Any, ...]]
P_MATCH = (0.4, 0.7, 1.0)
_MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        original: the original's name, with roles in its comments.
        releases: names of its releases.
        targets: people an attacker is tried on.
        queries: queries of the workload.
        seed: makes targets and queries repeatable, and the same for every release.
    """

    original: str
    releases: tuple[str, ...]
    targets: int = 2000
    queries: int = 300
    seed: int = 1


@dataclass
class Measured:
    """Numbers on one release; a key of `missing` names a measure that could not be taken, and why.

    Attributes:
        classes: (size of an equivalence class, rows in classes of that size).
        diversity: (measure, value) of the least diverse class.
        risk: (p_match, identity, attribute) of the strongest attacker.
        attackers: (attacker, identity, low, high, attribute, baseline, advantage, note) of each who knows everything.
        singled: (share of the predicates on one value that single a person out, predicates, note).
        loss: (attribute, ILoss, share of values changed).
        errors: relative error of each query of the workload.
        marginals: attribute to (value as text, true count, estimated count).
        correlation: (given, response, coefficient in the original, in the release).
    """

    name: str
    rows: int
    columns: tuple[tuple[str, str], ...]
    comment: str
    classes: Rows = field(default_factory=list)
    diversity: Rows = field(default_factory=list)
    risk: Rows = field(default_factory=list)
    attackers: Rows = field(default_factory=list)
    singled: Rows = field(default_factory=list)
    loss: Rows = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    marginals: dict[str, Rows] = field(default_factory=dict)
    correlation: Rows = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Findings:
    """The original's facts and a `Measured` for each release."""

    plan: Plan
    rows: int
    qi: tuple[str, ...]
    sensitive: tuple[str, ...]
    uniques: int
    releases: tuple[Measured, ...]


def gather(con: duckdb.DuckDBPyConnection, plan: Plan, checks: Checks, say: Callable[[str], object]) -> Findings:
    """Measure every release of `plan`.

    Args:
        con: a connection with the package loaded.
        plan: what to measure.
        checks: takes the check releases, which are made here.
        say: called with one line when a release is begun.

    Raises:
        AnonError: when the original has no labelled quasi-identifier.
        duckdb.Error: when a table does not exist.
    """
    labelled = _columns(con, plan.original)
    qi = tuple(name for name, _, comment in labelled if role_of(comment) == "quasi")
    sensitive = tuple(name for name, _, comment in labelled if role_of(comment) == "sensitive")
    if not qi:
        raise AnonError(
            f"no column of {plan.original} is labelled as quasi-identifier; COMMENT ON COLUMN "
            f"{plan.original}.{ident(labelled[0][0])} IS 'anon: quasi'"
        )
    exposed = con.execute(
        f"select rows, sample_uniques from reidentification_risk({literal(plan.original)})"
    ).fetchall()
    releases = []
    for name in plan.releases:
        say(f"{name}: measuring")
        checks.add(name)
        releases.append(_measured(con, plan, name, checks, qi, sensitive))
    return Findings(plan, int(exposed[0][0]), qi, sensitive, int(exposed[0][1]), tuple(releases))


def _measured(
    con: duckdb.DuckDBPyConnection, plan: Plan, name: str, checks: Checks, qi: Sequence[str], sensitive: Sequence[str]
) -> Measured:
    columns = _columns(con, name)
    known = {column for column, _, _ in columns}
    count = con.execute(f"select count(*) from {name}").fetchall()[0][0]
    comment = comments(con, name)[0]
    found = Measured(name, int(count), tuple((c, k) for c, k, _ in columns), comment)
    pair = f"{literal(plan.original)}, {literal(name)}"
    linked = f"{literal(plan.original)}, {literal(checks.of[name].table)}"
    shown = [column for column in qi if column in known]

    def ask(measure: str, question: str) -> Rows:
        try:
            with stoppable():
                return con.execute(question).fetchall()
        except duckdb.Error as error:
            found.missing[measure] = _first_sentence(str(error))
            return []

    seed = f"seed := {plan.seed}"
    by_class = f"from equivalence_classes({literal(name)}, qi := {literal(shown)}) group by all order by all"
    found.classes = ask("class sizes", f"select class_size, sum(class_size) {by_class}")
    if sensitive:
        each = " union all ".join(
            f"from l_diversity({literal(name)}, qi := {literal(shown)}, sensitive := {literal(one)})"
            for one in sensitive
        )
        # of several sensitive columns the least diverse one; recursive diversity is told by its c, the larger the worse
        worst = "case when measure = 'recursive' then max(value) else min(value) end"
        kinds = "['distinct', 'frequency', 'entropy', 'recursive']"
        found.diversity = ask(
            "diversity",
            f"select measure, {worst} from ({each}) group by measure order by list_position({kinds}, measure)",
        )
    targets = min(plan.targets, found.rows)
    parts = (
        f"select {p}::double as p_match, * from linkage_risk({linked}, p_match := {p}, targets := {targets}, {seed})"
        for p in P_MATCH
    )
    asked = ask(
        "linkage risk",
        "select p_match, attacker, identity, identity_low, identity_high, attribute, baseline, advantage, note "
        f"from ({' union all '.join(parts)})",
    )
    found.risk = [(p, row[1], row[4]) for p, *row in asked if row[0] == "strongest"]
    found.attackers = [tuple(row) for p, *row in asked if p == P_MATCH[-1]]
    found.singled = ask(
        "singling out", f"select attack, attacks, note from singling_out({pair}, mode := 'univariate', {seed})"
    )
    found.loss = ask("information loss", f"select attribute, iloss, changed from information_loss({linked})")
    dims = min(_MOST_DIMENSIONS, len(qi))
    predicate = literal(bool(sensitive))
    workload = (
        f"workload_error({pair}, n := {plan.queries}, dims := {dims}, predicate_on_sensitive := {predicate}, {seed})"
    )
    answers = ask("query error", f"select relative_error from {workload} where relative_error is not null")
    found.errors = [float(row[0]) for row in answers]
    for column in qi:
        query = f"select {idents([column])}, count(*) as n from {plan.original} group by 1"
        marginal = f"select map_values(keys)[1], original, estimate from relative_error({literal(query)}, {pair})"
        rows = ask(f"marginal of {column}", marginal)
        if rows:
            found.marginals[column] = rows
    together = literal([*qi, *sensitive[:1]])
    found.correlation = ask(
        "correlation",
        "select o.given, o.response, o.uncertainty_coefficient, r.uncertainty_coefficient "
        f"from correlation({literal(plan.original)}, columns := {together}) o "
        f"join correlation({literal(name)}, columns := {together}) r using (given, response)",
    )
    return found


def _columns(con: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str, str]]:
    """Name, type and comment of each column, in table order."""
    described = con.execute(f"select column_name, column_type from (describe {table})").fetchall()
    said = comments(con, table)[1]
    return [(name, kind, said.get(name, "")) for name, kind in described]


def _first_sentence(message: str) -> str:
    """What a reader needs of an error: no kind in front, no stack behind."""
    text = without_code(message)
    return text.split("; ")[0]
