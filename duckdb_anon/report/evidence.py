"""The evidence behind a release, as required by NIST SP 800-188, HIPAA, EMA 0070, ISO/IEC 27559 and WP29.

Measures nothing of its own: every figure is one of the package's functions on the tables as they are, and what cannot
be measured leaves its reason. The guarantee of a method is checked again on the released table by the SQL of
sql/risk.sql, which shares no code with the method. Measures of linkage use the check release.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import duckdb

from duckdb_anon.engine.column_roles import role_of
from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.risk.attackers.record_linkage import LIKELIHOOD
from duckdb_anon.model.release_comment import Description
from duckdb_anon.model.release_formats.duckdb_types import kind_of_type, without_enums
from duckdb_anon.report.linked_release import Check, Checks, comments, described
from duckdb_anon.report.metrics import Findings, Measured, Plan
from duckdb_anon.report.profile.role_classifier import IDENTIFIERS, QUASI
from duckdb_anon.report.query_runner import Asking, Rows
from duckdb_anon.report.release_context import HoldersContext

_MOST_GROUPS = 30
_RARE = 10
"""Groups of fewer people are not shown in the table of suppression, nor as subgroups."""
_MOST_SUBGROUPS, _SUBGROUP_COLUMNS = 8, 2
_AGES = "C ages over 89"
_GIVE_AGES = ("date of birth", "month of birth", "year of birth")
SAFE_HARBOR = tuple(sorted({item for item in [*IDENTIFIERS.values(), *QUASI.values()] if item and " to " not in item}))


@dataclass
class ReleaseEvidence:
    """What is known of one release; `missing` names what could not be measured, and why."""

    name: str
    rows: int
    description: Description | None
    sha256: str
    check: str
    facts: dict[str, Rows] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PageEvidence:
    """What is known of the original, and of each release."""

    original: str
    rows: int
    sha256: str
    context: HoldersContext
    roles: Rows
    facts: dict[str, Rows]
    releases: tuple[ReleaseEvidence, ...]
    missing: dict[str, str]


def gather_evidence(
    con: duckdb.DuckDBPyConnection, report: Findings, context: HoldersContext, checks: Checks
) -> PageEvidence:
    """Ask everything that the charts' figures do not hold already.

    Args:
        con: a connection with the package loaded.
        report: what was measured for the charts.
        context: what the holder says.
        checks: the check releases.
    """
    missing: dict[str, str] = {}
    plan, ask = report.plan, Asking(con, missing)
    original = plan.original
    roles = _roles(ask, original)
    facts = {
        "risk": _risk_before(ask, plan, context.threshold),
        "classes": _by_class(ask, original, _quasi(roles), context),
        "population": _population(ask, original, context),
    }
    found = tuple(_release(con, plan, measured, context, roles, checks) for measured in report.releases)
    return PageEvidence(original, report.rows, _hash(con, original), context, roles, facts, found, missing)


def _roles(ask: Asking, original: str) -> Rows:
    columns = ask.con.execute(f"select column_name, column_type from (describe {original})").fetchall()
    said = comments(ask.con, original)[1]
    told: dict[str, dict[str, Any]] = {}
    if find_spec("stdnum") and find_spec("phonenumbers"):
        profiled = ask.rows("reasons for the roles", f"from anon_profile({literal(original)})")
        told = {row["column_name"]: row for row in profiled}
    else:
        ask.missing["reasons for the roles"] = (
            "anon_profile needs the profile extra: pip install 'duckdb-anon[profile]'"
        )
    shown = []
    for name, kind in columns:
        row, role = told.get(name, {}), role_of(said.get(name)) or "not released"
        suggested, reason = row.get("role"), row.get("reason", "")
        if suggested and role != "not released" and suggested != role:
            reason = f"labelled {role}, where {suggested} was suggested: {reason}"
        shown.append(
            {"column": name, "type": without_enums(kind), "role": role,
             "reason": reason, "looks_like": row.get("looks_like"), "safe_harbor": row.get("safe_harbor"),
             "nulls": row.get("nulls"), "uniqueness": row.get("uniqueness")}
        )  # fmt: skip
    return shown


def _hash(con: duckdb.DuckDBPyConnection, table: str) -> str:
    """SHA-256 of the rows as JSON in the order of their own hashes: the same for the same rows in any order."""
    each = f"select sha256(to_json(_t)::varchar) as h from {table} as _t"
    found = con.execute(f"select sha256(coalesce(string_agg(h, '' order by h), '')) from ({each})").fetchall()
    return str(found[0][0])


def _risk_before(ask: Asking, plan: Plan, threshold: float) -> Rows:
    """What the strongest attacker would find in the original itself."""
    numbered = literal(f"(select *, row_number() over () - 1 as row_id from {plan.original})")
    asked = f"linkage_risk({literal(plan.original)}, {numbered}, targets := {plan.targets}, seed := {plan.seed})"
    found = ask.rows("risk of the original", f"select {_RISK} from {asked} where attacker = 'strongest'")
    return [_against(row, threshold) for row in found]


def _by_class(ask: Asking, table: str, qi: Sequence[str], context: HoldersContext) -> Rows:
    """Prosecutor and marketer risk by the equivalence classes of a table as it is."""
    call = f"reidentification_risk({literal(table)}, qi := {literal(list(qi))}, threshold := {context.threshold})"
    return ask.rows(
        "risk by equivalence class", f"select prosecutor, marketer, above_threshold, sample_uniques from {call}"
    )


_RISK = "identity, identity_low, identity_high, attribute, baseline, advantage, note"


def _against(row: Mapping[str, Any], threshold: float, *, everybody: bool = True) -> dict[str, Any]:
    """Risk with the holder's threshold: the upper end of the interval must not exceed it.

    Where an attacker who might find more could not be asked, a release may fail and cannot pass.
    """
    high = row["identity_high"]
    passes = None if high is None else high <= threshold
    return {**row, "meets_threshold": None if passes and not everybody else passes}


def _release(
    con: duckdb.DuckDBPyConnection, plan: Plan, measured: Measured, context: HoldersContext, roles: Rows, checks: Checks
) -> ReleaseEvidence:
    name, check, description = measured.name, checks.of[measured.name], described(con, measured.name)
    types = dict(measured.columns)
    made = ReleaseEvidence(name, measured.rows, description, _hash(con, name), check.said)
    made.missing |= measured.missing
    ask = Asking(con, made.missing)
    pair, seed = f"{literal(plan.original)}, {literal(check.table)}", f"seed := {plan.seed}"
    published = f"{literal(plan.original)}, {literal(name)}"
    strongest = [row for row in measured.attackers if row[0] == "strongest" and row[1] is not None]
    named = ("identity", "identity_low", "identity_high", "attribute", "baseline", "advantage", "note")
    unknown = [row for row in measured.attackers if row[0] == LIKELIHOOD.name and row[1] is None]
    for row in unknown:
        ask.missing["within the limit"] = f"the strongest attacker was not tried: {row[-1]}"
    made.facts["risk"] = [
        _against(dict(zip(named, row[1:], strict=True)), context.threshold, everybody=not unknown) for row in strongest
    ]
    qi = [column for column in _quasi(roles) if column in types]
    made.facts["classes"] = _by_class(ask, name, qi, context)
    made.facts["subgroups"] = _subgroups(ask, plan, roles, check, checks, made.facts["risk"])
    wp29: Rows = []
    for function, extra in (("singling_out", ", mode := 'multivariate'"), ("linkability", ""), ("inference", "")):
        wp29 += ask.rows(function, f"select * from {function}({pair}{extra}, {seed})")
    made.facts["wp29"] = wp29
    made.facts["population"] = _k_map(ask, name, context)
    made.facts["guarantee"] = _guarantees(ask, name, description, made.facts["risk"])
    made.facts["safe_harbor"] = _safe_harbor(roles, types, {name for name, _, share in measured.loss if share})
    if check.source:
        made.facts["suppression"] = _suppression(ask, plan.original, check, qi)
    else:
        ask.missing["suppression by group"] = check.said
    made.facts["utility"] = _utility(ask, pair, seed)
    made.facts["queries"] = [
        {"query": query, **row}
        for query in context.queries
        for row in ask.rows(f"query {query}", f"select * from relative_error({literal(query)}, {published})")
    ]
    made.facts["impossible"] = _impossible(ask, plan.original, published, context.impossible)
    return made


def _quasi(roles: Rows) -> list[str]:
    return [str(row["column"]) for row in roles if row["role"] == "quasi"]


def _subgroups(ask: Asking, plan: Plan, roles: Rows, check: Check, checks: Checks, risk: Rows) -> Rows:
    """Risk of each subgroup's people, by the attackers who were the strongest against all."""
    if not check.source or not risk:
        ask.missing["risk by subgroup"] = check.said if not check.source else "the risk of all could not be measured"
        return []
    if any(row["role"] == "person" for row in roles):
        ask.missing["risk by subgroup"] = "measured for tables with one row per individual"
        return []
    known = sorted({part.split(": ")[1] for part in risk[0]["note"].split("; ") if not part.startswith("not tried")})
    rows: Rows = []
    for column, values in _groups(ask, plan.original, roles):
        for value, n in values:
            try:
                with stoppable():
                    people, release = checks.group(check, column, value)
            except duckdb.Error as error:
                ask.missing[f"risk by subgroup of {column}"] = str(error).splitlines()[0]
                break
            asked = (
                f"linkage_risk({literal(people)}, {literal(release)}, attackers := {literal(known)}, "
                f"targets := {min(plan.targets, n)}, seed := {plan.seed})"
            )
            found = ask.rows(f"risk by subgroup of {column}", f"select * from {asked} where attacker = 'strongest'")
            rows += [
                {"column": column, "value": value, "people": n, "identity": row["identity"],
                 "identity_low": row["identity_low"], "identity_high": row["identity_high"],
                 "attribute": row["attribute"], "advantage": row["advantage"]}
                for row in found
            ]  # fmt: skip
    return rows


def _groups(ask: Asking, original: str, roles: Rows) -> list[tuple[str, list[tuple[str, int]]]]:
    """Quasi-identifiers without an order and with few values, and their values of ten people or more."""
    found = []
    for row in roles:
        if row["role"] != "quasi" or kind_of_type(str(row["type"])) != "nominal":
            continue
        column = ident(str(row["column"]))
        counted = f"select {column}::varchar, count(*) from {original} where {column} is not null group by 1 order by 1"
        values = ask.con.execute(counted).fetchall()
        if 2 <= len(values) <= _MOST_SUBGROUPS:
            found.append((str(row["column"]), [(str(v), int(n)) for v, n in values if n >= _RARE]))
    return sorted(found, key=lambda group: len(group[1]))[:_SUBGROUP_COLUMNS]


def _population(ask: Asking, original: str, context: HoldersContext) -> Rows:
    """How many of the original's people are alone in the population."""
    if context.sampling_fraction is None:
        ask.missing["population uniqueness"] = (
            "the context has no sampling_fraction, the share of the population in the original"
        )
        return []
    call = f"population_uniqueness({literal(original)}, {context.sampling_fraction})"
    found = ask.rows("population uniqueness", f"select * from {call}")
    return [{"figure": key, "value": value} for row in found for key, value in row.items()]


def _k_map(ask: Asking, name: str, context: HoldersContext) -> Rows:
    if not context.population:
        return []
    found = ask.rows("k-map", f"select * from k_map({literal(name)}, {literal(context.population)})")
    return [{"figure": f"k_map: {key}", "value": value} for row in found for key, value in row.items()]


def _guarantees(ask: Asking, name: str, description: Description | None, risk: Rows) -> Rows:
    """Promises of the call, each against what the released table shows by itself."""
    asked = dict(description.parameters) if description else {}
    rows: Rows = []
    if asked.get("k") is not None:
        found = ask.rows("k, checked again", f"select k from k_anonymity({literal(name)})")
        rows += [_held(f"k >= {asked['k']}", row["k"], row["k"] >= float(asked["k"]), "k_anonymity") for row in found]
    if asked.get("l") is not None:
        kind = str(asked.get("diversity", "frequency"))
        measured = f"select value from l_diversity({literal(name)}) where measure = {literal(kind)}"
        found = ask.rows("l, checked again", measured)
        rows += [
            _held(f"l >= {asked['l']} ({kind})", row["value"], row["value"] >= float(asked["l"]) - 1e-9, "l_diversity")
            for row in found
        ]
    if asked.get("t") is not None:
        found = ask.rows("t, checked again", f"select t from t_closeness({literal(name)})")
        rows += [
            _held(f"t <= {asked['t']}", row["t"], row["t"] <= float(asked["t"]) + 1e-9, "t_closeness") for row in found
        ]
    if asked.get("delta") is not None:
        rows += [
            _held(f"identity <= {asked['delta']}", row["identity"], row["identity_low"] <= float(asked["delta"]),
                  "linkage_risk, strongest attacker (a measurement can refute the guarantee, not prove it)")
            for row in risk
        ]  # fmt: skip
    if not rows:
        reason = (
            "no k, l, t or delta to check on the table; a guarantee about noise or randomization cannot be checked on "
            "one release"
        )
        rows.append(_held("none", None, None, reason))
    return rows


def _held(promise: str, found: Any, holds: bool | None, by: str) -> dict[str, Any]:
    return {"promise": promise, "found": found, "holds": holds, "checked by": by}


def _safe_harbor(roles: Rows, types: Mapping[str, str], changed: Collection[str]) -> Rows:
    """Each identifier of the list: the columns that contain it, and what the release does with them."""
    kinds = {str(row["column"]): row["type"] for row in roles}
    rows = []
    for item in SAFE_HARBOR:
        named = [
            str(row["column"]) for row in roles
            if row["safe_harbor"] == item or (item == _AGES and row["looks_like"] in _GIVE_AGES)
        ]  # fmt: skip
        shown = [name for name in named if name in types]
        unchanged = [name for name in shown if types[name] == kinds[name] and name not in changed]
        state = (
            "no column recognized" if not named
            else "removed" if not shown
            else "released unchanged" if unchanged
            else "released in changed form"
        )  # fmt: skip
        rows.append({"identifier": item, "columns": ", ".join(named) or None, "state": state})
    return rows


def _suppression(ask: Asking, original: str, check: Check, qi: Sequence[str]) -> Rows:
    """Share of each group's rows that were not released, for groups of ten people or more."""
    rows: Rows = []
    numbered = f"(select *, row_number() over () - 1 as _anon_rn from {original})"
    there = f"(select {ident(check.source)} from {check.table} where {ident(check.source)} is not null)"
    for column in qi:
        counted = (
            f"select {literal(column)} as column_name, {ident(column)}::varchar as value, count(*) as original, "
            f"count(*) filter (_anon_rn in {there}) as released from {numbered} "
            f"group by 2 having count(*) >= {_RARE} order by released / original, value limit {_MOST_GROUPS}"
        )
        found = ask.rows("suppression by group", counted)
        rows += [{**row, "left_out": 1 - row["released"] / row["original"]} for row in found]
    kept = [row for row in rows if row["left_out"] > 0]
    if rows and not kept:
        return [{"column_name": "(all)", "value": "every group", "original": None, "released": None, "left_out": 0.0}]
    return kept


def _utility(ask: Asking, pair: str, seed: str) -> Rows:
    """A row a figure, and what it is to be compared with."""
    made: list[tuple[str, Any, str]] = []
    options = f"{pair}, {seed}"
    for row in ask.rows("k_marginal", f"from k_marginal({options})"):
        halves = f"{row['sampled']:.0f} for two halves of the original; worst: {row['worst']}"
        made.append((f"k_marginal, {row['k']} columns (of 1000)", row["score"], halves))
    if find_spec("sklearn"):
        for row in ask.rows("propensity", f"from propensity({options}, permutations := 3)"):
            times = f"{row['ratio']:.3g} times the value expected of a new sample" if row["ratio"] is not None else ""
            made.append((f"propensity pMSE, {row['learner']}", row["pmse"], times))
    else:
        ask.missing["propensity"] = "needs scikit-learn: pip install 'duckdb-anon[ml]'"
    for row in ask.rows("unique_exact_matches", f"from unique_exact_matches({options})"):
        made.append(("unique exact matches, share", row["share"], f"of {row['uniques']:,} uniques"))
    for row in ask.rows("apparent_matches", f"from apparent_matches({options})"):
        made.append(("apparent matches, agreement", row["agreement"], f"of {row['matched']:,} matches"))
    return [{"measure": measure, "value": value, "compare": compare} for measure, value, compare in made]


def _impossible(ask: Asking, original: str, pair: str, conditions: Sequence[str]) -> Rows:
    """Rows that meet conditions nobody can: in the original, and as the release tells; `low` of them for certain."""
    rows: Rows = []
    for condition in conditions:
        query = f"select count(*) as n from {original} where {condition}"
        asked = f"select original, estimate, low, high from relative_error({literal(query)}, {pair})"
        rows += [{"condition": condition, **row} for row in ask.rows(f"condition {condition}", asked)]
    return rows
