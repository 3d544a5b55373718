"""Answers that figures of a page give to points of the checklist: of releases of one table, and of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.model.errors import listed
from duckdb_anon.report.checklist import Figure
from duckdb_anon.report.findings import DatabaseFindings, Evidence, Findings, Measured
from duckdb_anon.report.release_context import HoldersContext

_LABELS = "labels of the columns"
_HOLDS = {True: "holds", False: "does not hold", None: "is not checked"}


def percent(share: float | None) -> str:
    """A share in percent; a dash for none.

    >>> percent(0.0914), percent(0.09), percent(1.0), percent(0.00012)
    ('9.14%', '9%', '100%', '0.012%')
    """
    return "\N{EN DASH}" if share is None else f"{100 * share:.3g}%"


def answer_with_releases(found: Findings, comments: Mapping[str, Mapping[str, str]]) -> None:
    """Fill in the figures of a page on releases; `comments` are those of each release's columns."""

    def add(name: str, source: str, sentence: Callable[[Measured], str | None], why: str) -> None:
        texts = {release.name: sentence(release) for release in found.releases}
        if lacking := [release for release, text in texts.items() if text is None]:
            found.unanswered[name] = f"{why} ({listed(lacking)})"
        else:
            many = len(texts) > 1
            found.figures[name] = Figure(" ".join(f"{r}: {t}" if many else str(t) for r, t in texts.items()), source)

    def released(release: Measured) -> str:
        names = [row["column"] for row in found.columns if row["column"] in release.columns]
        return f"{len(names)} of {len(found.columns)} columns are released: {', '.join(names)}."

    of_context(found, found.rows)
    found.figures["labels"] = Figure(_labels((row["column"], row["role"]) for row in found.columns), _LABELS)
    found.figures["identifiers"] = _identifiers((row["column"], row["role"]) for row in found.columns)
    for row in found.facts["classes"]:
        unique = f"{row['sample_uniques']:,} of {found.rows:,} records are unique on all quasi-identifiers."
        each = [f"{r['column']} {percent(r['uniqueness'])}" for r in found.columns if r["uniqueness"] is not None]
        alone = f" Unique values by column: {', '.join(each)}." if each else ""
        found.figures["distinguishability"] = Figure(unique + alone, "reidentification_risk, anon_profile", True)
    if "distinguishability" not in found.figures:
        found.unanswered["distinguishability"] = "the classes of the original could not be counted"
    add("columns", "the release", released, "")
    found.figures["columns"] = found.figures["columns"]._replace(internal=True)
    call = "the release does not record its call"
    add("method", "description of the release", lambda r: _call(r) and f"{_call(r)}.", call)
    add("made", "description of the release", _made, call)
    unmeasured = "re-identification was not measured"
    add("risk", "linkage_risk, strongest attacker", lambda r: _risk(found.context, r), unmeasured)
    add("maximum", "reidentification_risk, linkage_risk", _maximum, unmeasured)
    add("attacks", "linkage_risk, singling_out, linkability, inference", lambda r: _attacks(found, r), unmeasured)
    add("guarantees", "verify_release", _guarantees, "no guarantee is recorded")
    add("utility", "workload_error, information_loss", _utility, "utility was not measured")
    _answer_population(found)
    pseudonyms = [c for columns in comments.values() for c, text in columns.items() if role_of(text) == "pseudonym"]
    if pseudonyms:
        found.figures["pseudonyms"] = Figure(f"Pseudonyms: {', '.join(pseudonyms)}.", _LABELS)
        found.unanswered["key_length"] = "the release does not record the key"


def _call(release: Measured) -> str | None:
    return release.description.call if release.description and release.description.method else None


def _made(release: Measured) -> str | None:
    about = release.description
    return f"Made on {about.date} with duckdb-anon {about.version}." if about and about.date else None


def _risk(context: HoldersContext, release: Measured) -> str | None:
    for row in release.facts["risk"]:
        if row["identity_high"] is not None and row["meets_threshold"] is None:
            return f"Open: {release.missing['within the limit']}."
        if row["identity_high"] is not None:
            return risk_sentence(context, row["identity_high"])
    return None


def risk_sentence(context: HoldersContext, high: float) -> str:
    """The stated probability of an attempt times the measured risk, against the limit."""
    of = "" if "threshold" in context.statements else " of EMA's policy 0070, as none is stated"
    stated = "as stated" if "attempt" in context.statements else "none is stated"
    risk = context.attempt * high
    verdict = "is within" if risk <= context.threshold else "exceeds"
    return (
        f"Probability of an attempt {context.attempt:g} ({stated}) times {percent(high)}, the upper end of the "
        f"strongest attacker's interval: {percent(risk)}, which {verdict} the limit "
        f"of {percent(context.threshold)}{of}."
    )


def _maximum(release: Measured) -> str | None:
    for risk in release.facts["risk"]:
        for classes in release.facts["classes"]:
            if risk["identity"] is not None and classes["prosecutor"] is not None:
                return (
                    f"Average {percent(risk['identity'])}, by the strongest attacker; maximum "
                    f"{percent(classes['prosecutor'])}, by the smallest class of the table."
                )
    return None


def _attacks(found: Findings, release: Measured) -> str | None:
    tried = {row["attacker"] for row in release.charts["attackers"] if row["identity"] is not None} - {"strongest"}
    if not tried:
        return None
    criteria = [f"{row['criterion']} {row['verdict']}".replace("_", " ") for row in release.facts["wp29"]]
    return f"{len(tried)} attackers on {found.plan.targets:,} targets. {'; '.join(criteria)}".rstrip(" .") + "."


def _guarantees(release: Measured) -> str | None:
    rows = [
        f"{row['promise']}: {_HOLDS[row['holds']]}" for row in release.facts["guarantee"] if row["promise"] != "none"
    ]
    about = release.description
    return f"{'; '.join(rows)}." if rows else f"{about.call}." if about and about.method else None


def _utility(release: Measured) -> str | None:
    loss = next((row["iloss"] for row in release.charts["loss"] if row["attribute"] == "(all)"), None)
    parts = [] if release.mean_error is None else [f"mean query error {release.mean_error:.3g}"]
    parts += [] if loss is None else [f"information loss {loss:.3g}"]
    return f"{', '.join(parts)}.".capitalize() if parts else None


def _answer_population(found: Findings) -> None:
    rows = [row for facts in (found.facts, *(r.facts for r in found.releases)) for row in facts["population"]]
    figures = [f"{row['figure'].replace('_', ' ')} {row['value']:.3g}" for row in rows if _is_number(row["value"])]
    answer_population(found, f" Population: {', '.join(figures)}." if figures else "")


def answer_population(found: Evidence, population: str = "") -> None:
    """Which attack was tried: on the sample, the strictest one, and on a population where one is stated."""
    text = f"The attacker knows that the individual is in the data (the sample).{population}"
    found.figures["population"] = Figure(text, "linkage_risk, population_uniqueness, k_map", bool(population))


def of_context(found: Evidence, records: int) -> None:
    """How far the records may grow before the release is assessed again."""
    share = found.context.statements.get("growth")
    again = "" if share is None else f" Assess it again at {records * (1 + share):,.0f}."
    found.figures["growth"] = Figure(f"The original has {records:,} records.{again}", "the original", True)


def _labels(roles: Iterable[tuple[str, str]]) -> str:
    by_role: dict[str, list[str]] = {}
    for column, role in roles:
        by_role.setdefault(role, []).append(column)
    known = ", ".join(by_role.get("quasi", [])) or "none"
    unknown = ", ".join(by_role.get("sensitive", []) + by_role.get("insensitive", [])) or "none"
    return f"Known to an attacker: {known}. Assumed to be unknown: {unknown}."


def _identifiers(roles: Iterable[tuple[str, str]]) -> Figure:
    names = [column for column, role in roles if role in ("identifier", "person", "key")]
    return Figure(f"Direct identifiers: {', '.join(names) or 'none is labelled'}.", _LABELS, True)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def answer_with_database(found: DatabaseFindings, method: str, has_key_file: bool) -> None:
    """Fill in the figures of a page on a database."""
    figures, facts = found.figures, found.facts
    roles = [(f"{row['table']}.{row['column']}", str(row["label"])) for row in found.columns]
    kept = [row for row in found.columns if row["treatment"] != "dropped"]
    answer_population(found)
    figures["labels"] = Figure(_labels(roles), _LABELS)
    figures["identifiers"] = _identifiers(roles)
    figures["columns"] = Figure(f"{len(kept)} of {len(roles)} columns are released.", "labels and treatments")
    smallest, largest = found.smallest, 1 / found.smallest if found.smallest else None
    figures["distinguishability"] = Figure(f"{found.shared} {smallest} individuals or more.", "counted on the release")
    figures["method"] = Figure(f"release_database by {method}: {_methods(facts['tables'])}.", "the plan")
    figures["made"] = Figure(f"{facts['provenance'][1]['value']}.", "the run")
    figures["guarantees"] = Figure(
        " ".join(f"{row['guarantee']}: {_HOLDS[row['holds']]}." for row in facts["guarantees"]),
        "counted on the release",
    )
    kept_back = sum(row["rows"] for row in facts["lost"])
    figures["utility"] = Figure(f"{kept_back:,} rows were dropped; intervals of shifted dates are exact.", "the run")
    where = "read from a file" if has_key_file else "drawn for this release and thrown away"
    figures["pseudonyms"] = Figure(f"Keys are pseudonyms by HMAC-SHA256; its key was {where}.", "the run")
    length = "The key file has 16 bytes or more" if has_key_file else "The key had 256 bits"
    figures["key_length"] = Figure(f"{length}.", "the run")
    answer_risk(found)
    if not facts["risks"]:
        why = "the released tables do not join" if not found.linked else "the plan has no check of identity"
        found.unanswered |= dict.fromkeys(("risk", "maximum", "attacks"), why)
        return
    worst = max((row for row in facts["risks"] if row["judged"]), key=lambda row: row["high"])
    answer_risk(found)
    figures["maximum"] = Figure(
        f"Average {percent(worst['identity'])}, by the strongest attacker; maximum {percent(largest)}, by the "
        "smallest class or group.", "database_risk",
    )  # fmt: skip
    figures["attacks"] = Figure(
        f"{len(facts['risks'])} attackers on {worst['targets']:,} individuals: {_known(facts['risks'])}.",
        "database_risk",
    )


def answer_risk(found: DatabaseFindings) -> None:
    """Fill in the figures that the statements of the holder enter into."""
    of_context(found, found.individuals)
    if found.facts["risks"]:
        more = found.beyond
        also = f" An attacker who knows {more['known']}: up to {percent(more['high'])}." if more else ""
        found.figures["risk"] = Figure(risk_sentence(found.context, found.worst["high"]) + also, "database_risk")


def _methods(tables: Sequence[dict[str, Any]]) -> str:
    return "; ".join(f"{row['table']}: {row['method']}" for row in tables)


def _known(risks: Sequence[dict[str, Any]]) -> str:
    return "; ".join(str(row["known"]) for row in risks)
