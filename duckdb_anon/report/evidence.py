"""The evidence behind a release: what NIST SP 800-188, HIPAA, EMA 0070, ISO/IEC 27559 and WP29 ask a holder to show.

Measures nothing of its own: every figure is one of the package's functions on the tables as they are, and what cannot
be measured leaves its reason. The guarantee of a method is checked once more on the released table by the pure SQL of
sql/risk.sql, which shares no code with the method. A release without row_id is made once more by its own call, with
row_id, for the measures that must know whose row is whose: another draw of the same method, which is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import duckdb

from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.model.description import Description, read_description, value_text
from duckdb_anon.model.shapes import SOURCE
from duckdb_anon.report.asking import Asking, Rows
from duckdb_anon.report.context import Context
from duckdb_anon.report.profile.roles import IDENTIFIERS, QUASI

_MOST_GROUPS = 30
_RARE = 10
"""Groups of fewer people are not shown in the external edition, nor in the table of suppression."""
SAFE_HARBOR = tuple(sorted({item for item in [*IDENTIFIERS.values(), *QUASI.values()] if item}))
_CHECKS = "anon_checks"


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
class Evidence:
    """What is known of the original, and of each release."""

    original: str
    rows: int
    sha256: str
    context: Context
    roles: Rows
    releases: tuple[ReleaseEvidence, ...]
    missing: dict[str, str]


def gather_evidence(
    con: duckdb.DuckDBPyConnection, original: str, releases: Sequence[str], context: Context, targets: int, seed: int
) -> Evidence:
    """Ask everything.

    Args:
        con: a connection with the package loaded; temporary tables are made on it and dropped.
        original: the labelled original.
        releases: its releases.
        context: what the holder says.
        targets: people an attacker is tried on.
        seed: makes targets repeatable.
    """
    missing: dict[str, str] = {}
    ask = Asking(con, missing)
    columns = con.execute(f"select column_name, column_type from (describe {original})").fetchall()
    comments = dict(
        con.execute(
            "select column_name, comment from duckdb_columns() where table_name = ? and comment is not null",
            [original.strip('"')],
        ).fetchall()
    )
    roles = _roles(ask, original, columns, comments)
    rows = int(con.execute(f"select count(*) from {original}").fetchall()[0][0])
    found = tuple(_release(con, original, name, context, roles, targets, seed) for name in releases)
    return Evidence(original, rows, _hash(con, original), context, roles, found, missing)


def _roles(ask: Asking, original: str, columns: Sequence[tuple[str, str]], comments: Mapping[str, str]) -> Rows:
    told: dict[str, dict[str, Any]] = {}
    if find_spec("stdnum") and find_spec("phonenumbers"):
        profiled = ask.rows("reasons for the roles", f"from anon_profile({literal(original)})")
        told = {row["column_name"]: row for row in profiled}
    else:
        ask.missing["reasons for the roles"] = (
            "anon_profile needs the profile extra; pip install 'duckdb-anon[profile]'"
        )
    shown = []
    for name, kind in columns:
        comment, row = comments.get(name, ""), told.get(name, {})
        at = comment.lower().find("anon:")
        role = (
            comment[at + 5 :].split()[0].strip(";,").lower()
            if at >= 0 and comment[at + 5 :].split()
            else "not released"
        )
        suggested = row.get("role")
        reason = row.get("reason", "")
        if suggested and role != "not released" and suggested != role:
            reason = f"labelled {role}, where {suggested} was suggested: {reason}"
        shown.append(
            {"column": name, "type": kind, "role": role, "reason": reason, "safe_harbor": row.get("safe_harbor"),
             "nulls": row.get("nulls"), "uniqueness": row.get("uniqueness")}
        )  # fmt: skip
    return shown


def _hash(con: duckdb.DuckDBPyConnection, table: str) -> str:
    """SHA-256 of the rows as JSON in the order of their own hashes: the same for the same rows in any order."""
    each = f"select sha256(to_json(_t)::varchar) as h from {table} as _t"
    found = con.execute(f"select sha256(coalesce(string_agg(h, '' order by h), '')) from ({each})").fetchall()
    return str(found[0][0])


def _release(
    con: duckdb.DuckDBPyConnection,
    original: str,
    name: str,
    context: Context,
    roles: Rows,
    targets: int,
    seed: int,
) -> ReleaseEvidence:
    said = con.execute(
        "select comment from duckdb_tables() where table_name = ? and comment is not null", [name.strip('"')]
    ).fetchall()
    description = read_description(str(said[0][0])) if said else None
    columns = {
        c.lower(): k for c, k in con.execute(f"select column_name, column_type from (describe {name})").fetchall()
    }
    rows = int(con.execute(f"select count(*) from {name}").fetchall()[0][0])
    made = ReleaseEvidence(name, rows, description, _hash(con, name), "")
    ask = Asking(con, made.missing)
    linked, made.check = _linked(con, original, name, description, columns)
    pair = f"{literal(original)}, {literal(linked)}"
    options = f"targets := {min(targets, rows or 1)}, seed := {seed}"
    call = description.call if description else ""
    made.facts["risk"] = _risk(ask, original, pair, options, call, context.threshold)
    wp29 = []
    for function, extra in (("singling_out", ", mode := 'multivariate'"), ("linkability", ""), ("inference", "")):
        wp29 += ask.rows(function, f"select * from {function}({pair}{extra}, seed := {seed})")
    made.facts["wp29"] = wp29
    made.facts["population"] = _population(ask, original, name, context)
    made.facts["guarantee"] = _guarantees(ask, name, description, made.facts["risk"])
    made.facts["safe_harbor"] = _safe_harbor(roles, columns)
    qi = [str(row["column"]) for row in roles if row["role"] == "quasi" and str(row["column"]).lower() in columns]
    if made.check.startswith("none"):
        ask.missing["suppression by group"] = made.check
    else:
        made.facts["suppression"] = _suppression(ask, original, linked, qi)
    made.facts["utility"] = _utility(ask, pair, seed)
    made.facts["queries"] = [
        {"query": query, **row}
        for query in context.queries
        for row in ask.rows(f"query {query}", f"select * from relative_error({literal(query)}, {pair})")
    ]
    made.facts["impossible"] = _impossible(ask, name, context.impossible)
    con.execute(f"detach database if exists {_CHECKS}")
    return made


def _linked(
    con: duckdb.DuckDBPyConnection,
    original: str,
    name: str,
    description: Description | None,
    columns: Mapping[str, str],
) -> tuple[str, str]:
    """The table that ties rows to the original's, and how it came about."""
    if any(SOURCE.stands_for(column) for column in columns):
        return name, f"the release itself, which has {SOURCE.word} and must not be published so"
    if description is None or not description.method:
        return name, (
            f"none: the release has no {SOURCE.word} and does not say by which call it was made. Write releases with "
            "duckdb-anon release or .release, then this page makes the check release itself"
        )
    given = "".join(f", {key} := {value_text(value)}" for key, value in description.parameters.items())
    call = f"{description.method}({literal(original)}{given}, row_id := true)"
    try:
        # a table that the planner sees, in a database that goes with the connection
        con.execute(f"attach ':memory:' as {_CHECKS} (read_write)")
        con.execute(f"create table {_CHECKS}.main.release as from {call}")
    except duckdb.Error as error:
        return name, f"none: making it again by its call failed: {str(error).splitlines()[0]}"
    return f"{_CHECKS}.main.release", f"made again by {call}: another draw of the method, not the release itself"


def _risk(ask: Asking, original: str, pair: str, options: str, call: str, threshold: float) -> Rows:
    """The strongest attacker before and after, against the threshold."""
    shown = "identity, identity_low, identity_high, attribute, baseline, advantage, note"
    numbered = literal(f"(select *, row_number() over () - 1 as row_id from {original})")
    called = f", call := {literal(call)}" if call else ""
    asked = {
        "original": f"linkage_risk({literal(original)}, {numbered}, {options})",
        "release": f"linkage_risk({pair}{called}, {options})",
    }
    rows: Rows = []
    for label, function in asked.items():
        strongest = f"select {shown} from {function} where attacker = 'strongest'"
        found = ask.rows(f"risk of the {label}", strongest)
        if not found and called and label == "release":
            # a method that cannot be run on its own release has no attacker who learns from that
            found = ask.rows(f"risk of the {label}", strongest.replace(called, ""))
            if found:
                ask.missing.pop(f"risk of the {label}", None)
        for row in found:
            meets = row["identity_high"] is not None and row["identity_high"] <= threshold
            rows.append({"table": label, **row, "meets_threshold": meets})
    return rows


def _population(ask: Asking, original: str, name: str, context: Context) -> Rows:
    rows: Rows = []
    if context.sampling_fraction is None:
        ask.missing["population uniqueness"] = (
            "the context names no sampling_fraction, the share of the population in the original"
        )
    else:
        call = f"population_uniqueness({literal(original)}, {context.sampling_fraction})"
        found = ask.rows("population uniqueness", f"select * from {call}")
        rows += [{"figure": f"{key} of the original", "value": value} for row in found for key, value in row.items()]
    if not context.population:
        ask.missing["k-map"] = "the context names no population table"
    else:
        found = ask.rows("k-map", f"select * from k_map({literal(name)}, {literal(context.population)})")
        rows += [{"figure": f"k_map: {key}", "value": value} for row in found for key, value in row.items()]
    return rows


def _guarantees(ask: Asking, name: str, description: Description | None, risk: Rows) -> Rows:
    """Promises of the call, each against what the released table shows by itself."""
    asked = dict(description.parameters) if description else {}
    rows: Rows = []
    if "k" in asked:
        found = ask.rows("k, checked again", f"select k from k_anonymity({literal(name)})")
        rows += [_held(f"k >= {asked['k']}", row["k"], row["k"] >= float(asked["k"]), "k_anonymity") for row in found]
    if "l" in asked and asked["l"] is not None:
        kind = str(asked.get("diversity", "frequency"))
        measured = f"select value from l_diversity({literal(name)}) where measure = {literal(kind)}"
        found = ask.rows("l, checked again", measured)
        rows += [
            _held(f"l >= {asked['l']} ({kind})", row["value"], row["value"] >= float(asked["l"]) - 1e-9, "l_diversity")
            for row in found
        ]
    if "t" in asked and asked["t"] is not None:
        found = ask.rows("t, checked again", f"select t from t_closeness({literal(name)})")
        rows += [
            _held(f"t <= {asked['t']}", row["t"], row["t"] <= float(asked["t"]) + 1e-9, "t_closeness") for row in found
        ]
    if "delta" in asked:
        after = [row for row in risk if row["table"] == "release" and row["identity_low"] is not None]
        rows += [
            _held(f"identity <= {asked['delta']}", row["identity"], row["identity_low"] <= float(asked["delta"]),
                  "linkage_risk, the strongest attacker (measured, which can refute it and not prove it)")
            for row in after
        ]  # fmt: skip
    if not rows:
        ask.missing.setdefault(
            "guarantee, checked again",
            "the release names no k, l, t or delta that could be checked on the table; a promise about noise or "
            "randomization shows in no single release",
        )
    return rows


def _held(promise: str, found: Any, holds: bool, by: str) -> dict[str, Any]:
    return {"promise": promise, "found": found, "holds": holds, "checked by": by}


def _safe_harbor(roles: Rows, columns: Mapping[str, str]) -> Rows:
    """Each identifier of the list: which columns are it, and whether the release shows them."""
    types = {str(row["column"]): row["type"] for row in roles}
    rows = []
    for item in SAFE_HARBOR:
        named = [str(row["column"]) for row in roles if row["safe_harbor"] == item]
        shown = [name for name in named if name.lower() in columns]
        as_is = [name for name in shown if columns[name.lower()] == types[name]]
        state = (
            "not in the table" if not named
            else "removed" if not shown
            else "in the release, as it is" if as_is
            else "in the release, coarser"
        )  # fmt: skip
        rows.append({"identifier": item, "columns": ", ".join(named) or None, "state": state})
    return rows


def _suppression(ask: Asking, original: str, linked: str, qi: Sequence[str]) -> Rows:
    """Share of each group's rows that were not released, for groups of ten people or more."""
    rows: Rows = []
    numbered = f"(select *, row_number() over () - 1 as _rn from {original})"
    for column in qi:
        counted = (
            f"select {literal(column)} as column_name, {ident(column)}::varchar as value, count(*) as original, "
            f"count(*) filter (_rn in (select row_id from {linked})) as released from {numbered} "
            f"group by 2 having count(*) >= {_RARE} order by released / original, value limit {_MOST_GROUPS}"
        )
        found = ask.rows("suppression by group", counted)
        rows += [{**row, "suppressed": 1 - row["released"] / row["original"]} for row in found]
    kept = [row for row in rows if row["suppressed"] > 0]
    if rows and not kept:
        return [{"column_name": "(all)", "value": "every group", "original": None, "released": None, "suppressed": 0.0}]
    return kept


def _utility(ask: Asking, pair: str, seed: int) -> Rows:
    """A row a figure, and what it is to be compared with."""
    made: list[tuple[str, Any, str]] = []
    options = f"{pair}, seed := {seed}"
    for row in ask.rows("k_marginal", f"from k_marginal({options})"):
        halves = f"{row['sampled']:.0f} for two halves of the original; worst: {row['worst']}"
        made.append((f"k_marginal, {row['k']} columns (of 1000)", row["score"], halves))
    if find_spec("sklearn"):
        for row in ask.rows("propensity", f"from propensity({options}, permutations := 3)"):
            times = f"{row['ratio']:.3g} times what a new sample would give" if row["ratio"] is not None else ""
            made.append((f"propensity pMSE, {row['learner']}", row["pmse"], times))
    else:
        ask.missing["propensity"] = "needs scikit-learn; pip install 'duckdb-anon[ml]'"
    for row in ask.rows("unique_exact_matches", f"from unique_exact_matches({options})"):
        made.append(("unique exact matches, share", row["share"], f"of {row['uniques']:,} uniques"))
    for row in ask.rows("apparent_matches", f"from apparent_matches({options})"):
        made.append(("apparent matches, agreement", row["agreement"], f"of {row['matched']:,} matches"))
    return [{"measure": measure, "value": value, "compare": compare} for measure, value, compare in made]


def _impossible(ask: Asking, name: str, conditions: Sequence[str]) -> Rows:
    rows: Rows = []
    for condition in conditions:
        for row in ask.rows(f"condition {condition}", f"select count(*) as rows from {name} where {condition}"):
            rows.append({"condition": condition, **row})
    return rows
