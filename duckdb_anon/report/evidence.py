"""The evidence on one release: subgroups, guarantees, Safe Harbor, suppression, utility.

k, l and t are measured again by `verify_release`, which shares no code with the methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import duckdb

from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import without_code
from duckdb_anon.model.release_formats.duckdb_types import kind_of_type, without_enums
from duckdb_anon.report.findings import RARE, Findings, Measured, QueryRunner, Rows
from duckdb_anon.report.linked_release import Check, Checks
from duckdb_anon.report.profile.role_classifier import IDENTIFIERS, QUASI
from duckdb_anon.report.verify_release import promises

_MOST_GROUPS = 30
_SUBGROUP_COLUMNS = 2
MOST_SUBGROUPS = 8
_AGES = "C ages over 89"
_GIVE_AGES = ("date of birth", "month of birth", "year of birth")
SAFE_HARBOR = tuple(sorted({*IDENTIFIERS.values(), *(item for item, _ in QUASI.values() if item)}))


def subgroups(runner: QueryRunner, found: Findings, made: Measured, checks: Checks) -> Rows:
    """Risk of the individuals of each subgroup, by the attackers who were the strongest against all."""
    plan, risk = found.plan, made.facts["risk"]
    if not made.check.source or not risk:
        reason = "the risk of all could not be measured" if made.check.source else made.check.note
        runner.missing["risk by subgroup"] = reason
        return []
    if any(row["role"] == "person" for row in found.columns):
        runner.missing["risk by subgroup"] = "measured for tables with one row per individual"
        return []
    # a note says 'identity: likelihood (standard error 0.02)'
    strongest = sorted({part.split(": ")[1].partition(" (")[0] for part in tried(risk[0]["note"])})
    rows: Rows = []
    for column, values in _groups(runner, found):
        for value, n in values:
            try:
                with stoppable():
                    people, release = checks.group(made.check, column, value)
            except duckdb.Error as error:
                runner.missing[f"risk by subgroup of {column}"] = without_code(error)
                break
            linkage = (
                f"linkage_risk({literal(people)}, {literal(release)}, attackers := {literal(strongest)}, "
                f"targets := {min(plan.few, n)}, seed := {plan.seed})"
            )
            figures = "identity, identity_low, identity_high, attribute, advantage"
            question = f"select {figures} from {linkage} where attacker = 'strongest'"
            group = {"column": column, "value": value, "people": n}
            rows += [group | row for row in runner.rows(f"risk by subgroup of {column}", question)]
    return rows


def tried(note: str) -> list[str]:
    """The attackers a note names as the strongest."""
    return [part for part in note.split("; ") if not part.startswith("not tried")]


def _groups(runner: QueryRunner, found: Findings) -> list[tuple[str, list[tuple[str, int]]]]:
    """Quasi-identifiers without an order and with few values, and their values of ten individuals or more."""
    groups = []
    for row in found.columns:
        if row["role"] != "quasi" or kind_of_type(row["type"]) != "nominal":
            continue
        column, table = ident(row["column"]), found.plan.original
        counted = f"select {column}::varchar, count(*) from {table} where {column} is not null group by 1 order by 1"
        values = runner.con.execute(counted).fetchall()
        if 2 <= len(values) <= MOST_SUBGROUPS:
            groups.append((row["column"], [(str(v), int(n)) for v, n in values if n >= RARE]))
    return sorted(groups, key=lambda group: len(group[1]))[:_SUBGROUP_COLUMNS]


def guarantees(con: duckdb.DuckDBPyConnection, made: Measured, labels: Mapping[str, str]) -> Rows:
    """Promises of the call, each against what the released table shows."""
    description = made.description
    parameters = dict(description.parameters) if description else {}
    verified = promises(con, made.name, description, {**dict.fromkeys(made.columns), **labels}) if description else []
    rows: list[tuple[Any, ...]] = [
        (f"{v.check} {'<=' if v.check == 't' else '>='} {v.promised}", v.measured, v.holds, v.note)
        for v in verified
        if v.check != "delta"
    ]
    bound = parameters.get("delta") or (1 / parameters["k"] if parameters.get("k") else None)
    for row in made.facts["risk"]:
        if bound is not None and row.get("smallest") is not None:
            promise = f"identity <= {float(bound):.3g} in the smallest classes"
            by = "linkage_risk, attacker with a register and a model of the sensitive value"
            rows.append((promise, row["smallest"], row["smallest_low"] <= float(bound), by))
    if parameters.get("delta") is not None:
        delta, by = parameters["delta"], "linkage_risk, strongest attacker (it can refute the guarantee, not prove it)"
        for row in made.facts["risk"]:
            if row["identity"] is not None:
                rows.append((f"identity <= {delta}", row["identity"], row["identity_low"] <= float(delta), by))
    reason = (
        "no k, l, t or delta to check on the table; a guarantee about noise or randomization cannot be checked on "
        "one release"
    )
    titles = ("promise", "found", "holds", "checked by")
    return [dict(zip(titles, row, strict=True)) for row in rows or [("none", None, None, reason)]]


def unchanged(runner: QueryRunner, found: Findings, made: Measured) -> Rows:
    """Columns whose values leave as they are, with what they identify: values that one individual of the original has.

    A quasi-identifier whose values are exchanged between records counts as changed; where that cannot be measured, it
    counts as unchanged.
    """
    measured = {row["attribute"] for row in made.charts["loss"]}
    changed = {row["attribute"] for row in made.charts["loss"] if row["changed"]}
    person = next((ident(row["column"]) for row in found.columns if row["role"] == "person"), None)
    rows = []
    for row in found.columns:
        name, column, table = row["column"], ident(row["column"]), found.plan.original
        if without_enums(made.columns.get(name, "")) != row["type"] or name in changed:
            continue
        counts = runner.rows(f"unchanged {name}", f"""
            with _anon_new as (select {column} as v from {made.name} except select {column} from {table}),
            _anon_held as (select {column} as v, {person or "row_number() over ()"} as i from {table}
                           where v is not null),
            _anon_alone as (select v, any_value(i) as i from _anon_held where v in (select {column} from {made.name})
                      group by v having count(distinct i) = 1)
            select (select count(*) from _anon_new) as new, count(*) as "unique values",
                   count(distinct i) as "individuals identified" from _anon_alone""")  # fmt: skip
        if counts and not counts[0].pop("new"):
            unknown = row["role"] == "quasi" and name not in measured
            note = "values may be exchanged between records: not measured" if unknown else None
            rows.append({"column": name, "label": row["role"], "proposed": row["proposed"], **counts[0], "note": note})
    return rows


def safe_harbor(found: Findings, made: Measured, alike: Sequence[str]) -> Rows:
    """Each identifier of the list: the columns that contain it, and what the release does with them."""
    rows = []
    for item in SAFE_HARBOR:
        ages = _GIVE_AGES if item == _AGES else ()
        named = [r["column"] for r in found.columns if r["safe_harbor"] == item or r["looks_like"] in ages]
        released = [name for name in named if name in made.columns]
        state = "removed" if named else "no column recognized"
        if released:
            state = "released unchanged" if {*released} & {*alike} else "released in changed form"
        rows.append({"identifier": item, "columns": ", ".join(named) or None, "state": state})
    return rows


def suppression(runner: QueryRunner, original: str, check: Check, qi: Sequence[str]) -> Rows:
    """Share of each group's rows that were not released, for groups of ten individuals or more."""
    if not check.source:
        runner.missing["suppression by group"] = check.note
        return []
    rows: Rows = []
    numbered = f"(select *, row_number() over () - 1 as _anon_rn from {original})"
    there = f"(select {ident(check.source)} from {check.table} where {ident(check.source)} is not null)"
    for column in qi:
        counted = (
            f"select {literal(column)} as column_name, {ident(column)}::varchar as value, count(*) as original, "
            f"count(*) filter (_anon_rn in {there}) as released, 1 - released / original as left_out from {numbered} "
            f"group by 2 having count(*) >= {RARE} order by released / original, value limit {_MOST_GROUPS}"
        )
        rows += runner.rows("suppression by group", counted)
    incomplete = [row for row in rows if row["left_out"] > 0]
    if rows and not incomplete:
        return [{"column_name": "(all)", "value": "every group", "original": None, "released": None, "left_out": 0.0}]
    return incomplete


def utility(runner: QueryRunner, options: str) -> Rows:
    """A row a figure, and what it is to be compared with."""
    made: Rows = []

    def add(measure: str, value: object, compare: str) -> None:
        made.append({"measure": measure, "value": value, "compare": compare})

    for row in runner.rows("k_marginal", f"from k_marginal({options})"):
        halves = f"{row['sampled']:.0f} for two halves of the original; worst: {row['worst']}"
        add(f"k_marginal, {row['k']} columns (of 1000)", row["score"], halves)
    if find_spec("sklearn"):
        for row in runner.rows("propensity", f"from propensity({options}, permutations := 3)"):
            times = f"{row['ratio']:.3g} times the value expected of a new sample" if row["ratio"] is not None else ""
            add(f"propensity pMSE, {row['learner']}", row["pmse"], times)
    else:
        runner.missing["propensity"] = "needs scikit-learn: pip install 'duckdb-anon[ml]'"
    for row in runner.rows("unique_exact_matches", f"from unique_exact_matches({options})"):
        add("unique exact matches, share", row["share"], f"of {row['uniques']:,} uniques")
    return made
