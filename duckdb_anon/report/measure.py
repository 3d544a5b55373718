"""Everything the report contains, measured in one pass by the package's own SQL functions.

Figures are those that NIST SP 800-188, HIPAA, EMA 0070, ISO/IEC 27559 and WP29 ask for. What cannot be measured leaves
its reason. Measures of linkage use the check release (`linked_release`). Cost: the sum of its measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, names_of
from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.engine.records.register import registered_releases
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.risk.attackers.record_linkage import LIKELIHOOD
from duckdb_anon.measures.risk.linkage_view import BOOTSTRAP
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats.duckdb_types import without_enums
from duckdb_anon.report.evidence import (
    MOST_SUBGROUPS,
    guarantees,
    safe_harbor,
    subgroups,
    suppression,
    unchanged,
    utility,
)
from duckdb_anon.report.figures import answer_with_releases
from duckdb_anon.report.findings import P_MATCH, RARE, Findings, Measured, Plan, QueryRunner, Row, Rows
from duckdb_anon.report.linked_release import Checks, check_releases, comments
from duckdb_anon.report.redaction import NOT_COVERED
from duckdb_anon.report.release_context import HoldersContext
from duckdb_anon.report.weak_labels import weak_label

_MOST_DIMENSIONS = 4
_MOST_JOINT = 500
_LARGE, _FEW_TARGETS = 200_000, 200


def measure(
    con: duckdb.DuckDBPyConnection, plan: Plan, context: HoldersContext, say: Callable[[str], object]
) -> Findings:
    """Measure an original and its releases."""
    with check_releases(con, plan.original) as checks:
        return measured(checks, plan, context, say)


def measured(checks: Checks, plan: Plan, context: HoldersContext, say: Callable[[str], object]) -> Findings:
    """As `measure`, with check releases that stay; those that are missing are made."""
    con, original = checks.con, plan.original
    labels = comments(con, original)[1]
    types = _types(con, original)
    of_role = {role: [name for name in types if role_of(labels.get(name)) == role] for role in ("quasi", "sensitive")}
    if not of_role["quasi"]:
        raise AnonError(
            f"no column of {original} is labelled as quasi-identifier; COMMENT ON COLUMN "
            f"{original}.{ident(next(iter(types)))} IS 'anon: quasi'"
        )
    rows = _count(con, original)
    targets = min(plan.targets, max(rows, 1))  # pages say how many there were
    plan = replace(plan, targets=targets, few=min(targets, _FEW_TARGETS) if rows > _LARGE else targets)
    found = Findings(
        title=context.title or f"Releases of {original}", context=context, not_covered=NOT_COVERED, plan=plan,
        rows=rows, sha256=row_hash(con, original), qi=of_role["quasi"], sensitive=of_role["sensitive"],
    )  # fmt: skip
    each = 16 + 2 * len(found.qi) + len(context.queries) + len(context.impossible) + MOST_SUBGROUPS
    runner = QueryRunner(con, 5 + each * len(plan.releases))
    runner.missing = found.missing
    found.columns = _columns(runner, found, types, labels)
    found.facts = _of_original(runner, found)
    for name in plan.releases:
        say(f"{name}: measuring")
        checks.add(name)
        found.releases.append(_release(runner, found, name, checks))
    runner.missing = found.missing
    found.facts["joint"] = _joint(runner, plan)
    answer_with_releases(found, {name: comments(con, name)[1] for name in plan.releases})
    return found


def _joint(runner: QueryRunner, plan: Plan) -> Rows:
    """What the releases of the original reveal together, where the register lists several with a key."""
    here = runner.con.execute("select current_database(), current_schema()").fetchall()[0]
    relation = Catalog(runner.con, *here).relation("report", "original", plan.original)
    registered = registered_releases(runner.con, relation)
    names = list(dict.fromkeys(release.name for _, release in registered if release.key))
    if len(names) < 2:
        return []
    call = (
        f"sequence_risk({literal(plan.original)}, {literal(names)}, "
        f"targets := {min(plan.targets, _MOST_JOINT)}, seed := {plan.seed})"
    )
    figures = "identity, identity_low, identity_high, attribute, attribute_low, attribute_high"
    question = f"select {len(names)} as releases, {figures} from {call} where release = 'together'"
    return runner.rows("joint risk", question)


def _types(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return dict(con.execute(f"select column_name, column_type from (describe {table})").fetchall())


def _count(con: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(con.execute(f"select count(*) from {table}").fetchall()[0][0])


def row_hash(con: duckdb.DuckDBPyConnection, table: str) -> str:
    """SHA-256 of the rows as JSON in the order of their own hashes: the same for the same rows in any order."""
    each = f"select sha256(to_json(_t)::varchar) as h from {table} as _t"
    found = con.execute(f"select sha256(coalesce(string_agg(h, '' order by h), '')) from ({each})").fetchall()
    return str(found[0][0])


def _columns(runner: QueryRunner, found: Findings, types: Mapping[str, str], labels: Mapping[str, str]) -> Rows:
    """Columns of the original with their roles and, where the profile extra is installed, the proposed ones."""
    original = found.plan.original
    profiled: dict[str, Row] = {}
    if find_spec("stdnum") and find_spec("phonenumbers"):
        rows = runner.rows("reasons for the roles", f"from anon_profile({literal(original)})")
        profiled = {row["column_name"]: row for row in rows}
    else:
        why = "anon_profile needs the profile extra: pip install 'duckdb-anon[profile]'"
        runner.missing["reasons for the roles"] = why
    columns = []
    for name, kind in types.items():
        row, role = profiled.get(name, {}), role_of(labels.get(name)) or "not released"
        proposed, table = row.get("role"), names_of(original)[-1]
        figures = {figure: row.get(figure) for figure in ("reason", "looks_like", "safe_harbor", "nulls", "uniqueness")}
        columns.append({
            "column": name, "type": without_enums(kind), "role": role, "proposed": proposed,
            "warning": weak_label(table, name, role, proposed, found.context),
            "accepted because": found.context.accepted(table, name), **figures,
        })  # fmt: skip
    return columns


def _of_original(runner: QueryRunner, found: Findings) -> dict[str, Rows]:
    """What the strongest attacker would find in the original itself, its equivalence classes, its population."""
    plan, context = found.plan, found.context
    numbered = literal(f"(select *, row_number() over () - 1 as row_id from {plan.original})")
    linkage = f"linkage_risk({literal(plan.original)}, {numbered}, targets := {plan.few}, seed := {plan.seed})"
    risk = runner.rows("risk of the original", f"from {linkage} where attacker = 'strongest'")
    population: Rows = []
    if context.sampling_fraction is None:
        why = "the context has no sampling_fraction, the share of the population in the original"
        runner.missing["population uniqueness"] = why
    else:
        uniqueness = f"from population_uniqueness({literal(plan.original)}, {context.sampling_fraction})"
        population = runner.rows("population uniqueness", uniqueness)
    sizes = _class_sizes(runner, plan.original, found.qi)
    return {
        "risk": [against(row, context) for row in risk],
        "classes": _by_class(runner, plan.original, found.qi, context, sizes),
        "population": [{"figure": key, "value": value} for row in population for key, value in row.items()],
    }


def _class_sizes(runner: QueryRunner, table: str, qi: Sequence[str]) -> Rows:
    """Records by the size of their equivalence class."""
    classes = f"equivalence_classes({literal(table)}, qi := {literal(qi)})"
    return runner.rows(
        "class sizes", f'select class_size as size, sum(class_size) as "rows" from {classes} group by all order by all'
    )


def _by_class(runner: QueryRunner, table: str, qi: Sequence[str], context: HoldersContext, sizes: Rows) -> Rows:
    """Prosecutor and marketer risk by the equivalence classes of a table as it is, and records in small cells."""
    call = f"reidentification_risk({literal(table)}, qi := {literal(list(qi))}, threshold := {context.threshold})"
    named = "prosecutor", "marketer", "above_threshold", "sample_uniques", "household_risk"  # the last with households
    question = f"select columns(lambda c: list_contains({literal(list(named))}, c)) from {call}"
    small = sum(int(row["rows"]) for row in sizes if row["size"] < RARE)
    return [
        {"household_risk": None, **row, "small_cells": small}
        for row in runner.rows("risk by equivalence class", question)
    ]


def against(row: Row, context: HoldersContext, *, all_tried: bool = True) -> Row:
    """Risk with the holder's threshold, for the upper end of the interval times the probability of an attempt."""
    # where an attacker who might find more was not tried, a release may fail and cannot pass
    high = row["identity_high"]
    passes = None if high is None else context.attempt * high <= context.threshold
    figures = ("identity", "identity_low", "identity_high", "smallest", "smallest_low", "attribute", "baseline",
               "advantage", "note")  # fmt: skip
    met = None if passes and not all_tried else passes
    return {**{name: row.get(name) for name in figures}, "meets_threshold": met}


def _release(runner: QueryRunner, found: Findings, name: str, checks: Checks) -> Measured:
    con, plan, context = runner.con, found.plan, found.context
    check, types = checks.of[name], _types(con, name)
    comment, labels = comments(con, name)
    made = Measured(name, _count(con, name), types, comment, read_description(comment), row_hash(con, name), check)
    runner.missing = made.missing
    qi = [column for column in found.qi if column in types]
    made.charts = _charts(runner, found, made, qi)
    made.facts["risk"] = _risk(runner, made.charts["attackers"], found)
    made.facts["classes"] = _by_class(runner, name, qi, context, made.charts["class_sizes"])
    made.facts["subgroups"] = subgroups(runner, found, made, checks)
    linked = f"{literal(plan.original)}, {literal(check.table)}, seed := {plan.seed}"
    criteria = {"singling_out": ", mode := 'multivariate'", "linkability": "", "inference": ""}
    few = f", attacks := {plan.few}" if plan.few < plan.targets else ""
    made.facts["wp29"] = [
        {**row, "verdict": _verdict(row, context.threshold)}
        for function, option in criteria.items()
        for row in runner.rows(function, f"from {function}({linked}{option}{few})")
    ]
    k_map = f"from k_map({literal(name)}, {literal(context.population)})"
    made.facts["population"] = [
        {"figure": f"k_map: {key}", "value": value}
        for row in (runner.rows("k-map", k_map) if context.population else [])
        for key, value in row.items()
    ]
    made.facts["guarantee"] = guarantees(runner.con, made, labels)
    alike = unchanged(runner, found, made)
    found.unchanged += [{"release": name, **row} for row in alike]
    made.facts["safe_harbor"] = safe_harbor(found, made, [row["column"] for row in alike])
    made.facts["suppression"] = suppression(runner, plan.original, check, qi)
    made.facts["utility"] = utility(runner, linked)
    published = f"{literal(plan.original)}, {literal(name)}"
    made.facts["queries"] = [
        {"query": query, **row}
        for query in context.queries
        for row in runner.rows(f"query {query}", f"from relative_error({literal(query)}, {published})")
    ]
    made.facts["impossible"] = [
        {"condition": condition, **row}
        for condition in context.impossible
        for row in runner.rows(
            f"condition {condition}",
            "select original, estimate, low, high from relative_error("
            f"{literal(f'select count(*) as n from {plan.original} where {condition}')}, {published})",
        )
    ]
    return made


def _verdict(row: Row, limit: float) -> str:
    """Whether the interval of a risk lies below the limit, above it, or on both sides."""
    if row["risk_high"] is None:
        return "not measured"
    if row["risk_high"] <= limit:
        return "within the limit"
    return "above the limit" if row["risk_low"] > limit else "open: the interval contains the limit"


def _charts(runner: QueryRunner, found: Findings, made: Measured, qi: Sequence[str]) -> dict[str, Rows]:
    """What the charts draw."""
    plan, sensitive = found.plan, found.sensitive
    original, released = literal(plan.original), literal(made.name)
    pair, linked, seed = f"{original}, {released}", f"{original}, {literal(made.check.table)}", f"seed := {plan.seed}"
    together = literal([*found.qi, *sensitive[:1]])
    targets = {p: min(plan.targets if p == P_MATCH[-1] else plan.few, made.rows) for p in P_MATCH}
    figures = "attacker, identity, identity_low, identity_high, smallest, smallest_low, attribute, baseline, "
    figures += "advantage, channel, note"
    attackers = " union all ".join(
        f"select {p}::double as p_match, {figures} "
        f"from linkage_risk({linked}, p_match := {p}, targets := {targets[p]}, {seed})"
        for p in P_MATCH
    )
    workload = (
        f"workload_error({pair}, n := {plan.queries}, dims := {min(_MOST_DIMENSIONS, len(found.qi))}, "
        f"predicate_on_sensitive := {literal(bool(sensitive))}, {seed})"
    )
    correlation = (
        "select o.given, o.response, o.uncertainty_coefficient as original, r.uncertainty_coefficient as release "
        f"from correlation({original}, columns := {together}) o "
        f"join correlation({released}, columns := {together}) r using (given, response)"
    )
    return {
        "class_sizes": _class_sizes(runner, made.name, qi),
        "diversity": runner.rows("diversity", _diversity(released, qi, sensitive)) if sensitive else [],
        "attackers": runner.rows("linkage risk", attackers),
        "singled": runner.rows(
            "singling out", f"select attack, attacks, note from singling_out({pair}, mode := 'univariate', {seed})"
        ),
        "loss": runner.rows("information loss", f"select attribute, iloss, changed from information_loss({linked})"),
        "errors": runner.rows(
            "query error", f"select abs(relative_error) as error from {workload} where relative_error is not null"
        ),
        "marginals": [
            {"column": column, **row}
            for column in found.qi
            for row in runner.rows(
                f"marginal of {column}",
                "select map_values(keys)[1] as value, original, estimate from relative_error("
                f"{literal(f'select {ident(column)}, count(*) as n from {plan.original} group by 1')}, {pair})",
            )
        ],
        "correlation": runner.rows("correlation", correlation),
    }


def _diversity(released: str, qi: Sequence[str], sensitive: Sequence[str]) -> str:
    """SQL of the least diverse class by each measure; of several sensitive columns the least diverse one."""
    each = " union all ".join(
        f"from l_diversity({released}, qi := {literal(qi)}, sensitive := {literal(column)})" for column in sensitive
    )
    # recursive diversity is measured by its c, the larger the worse
    worst = "case when measure = 'recursive' then max(value) else min(value) end"
    order = "list_position(['distinct', 'frequency', 'entropy', 'recursive'], measure)"
    return f"select measure, {worst} as value from ({each}) group by measure order by {order}"


def _risk(runner: QueryRunner, attackers: Rows, found: Findings) -> Rows:
    """The strongest attacker who knows everything, against the holder's threshold."""
    rows = [row for row in attackers if row["p_match"] == P_MATCH[-1]]
    likelihood = [row for row in rows if row["attacker"] == LIKELIHOOD.name]
    untried = [row for row in likelihood if row["identity"] is None or row["channel"] == BOOTSTRAP]
    # an attacker who knows a column that the labels say nobody knows might find more
    why = [*found.warnings, *(f"the strongest attacker was not tried: {row['note']}" for row in untried)]
    if why:
        runner.missing["within the limit"] = "; ".join(why)
    strongest = [
        row for row in rows
        if row["attacker"] == "strongest" and any(row[name] is not None for name in ("identity", "attribute"))
    ]  # fmt: skip
    return [against(row, found.context, all_tried=not why) for row in strongest]
