"""The tables of the report, as an edition of the page contains them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.report.evidence import PageEvidence, ReleaseEvidence
from duckdb_anon.report.metrics import Findings, Measured
from duckdb_anon.report.redaction import Edition, reasons, roles_of, shown, shown_check
from duckdb_anon.report.release_context import TEXTS

_RISK = ("identity", "identity_low", "identity_high", "attribute", "baseline", "advantage", "meets_threshold", "note")
_RANDOMNESS = "entropy of the operating system, expanded by ChaCha20; releases accept no seed below 2^64"


@dataclass(frozen=True)
class Table:
    """A table of the page; columns that hold a number are aligned to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds a number."""
        return [any(_is_number(row[place]) for row in self.rows) for place in range(len(self.head))]


@dataclass(frozen=True)
class Facts:
    """The evidence as an edition of the page contains it."""

    evidence: PageEvidence
    edition: Edition

    def across(self, name: str) -> list[tuple[ReleaseEvidence, Mapping[str, Any]]]:
        """Rows of a fact with the release they belong to."""
        return [
            (release, row) for release in self.evidence.releases for row in shown(self.edition, name, release.facts)
        ]

    def of_all(self, name: str, *head: str) -> Table:
        """A fact's rows as they are, with the release in front."""
        return Table(("release", *head), [[release.name, *row.values()] for release, row in self.across(name)])

    def missing(self, missing: Mapping[str, str]) -> Table:
        """What could not be measured, and why."""
        return Table(("what", "why"), list(reasons(missing, self.edition).items()))


def overview(report: Findings, evidence: PageEvidence) -> Table:
    """One row per release with its main figures."""
    head = ("release", "rows", "k", "frequency l", "identity", "95% interval",
            f"within the limit of {number(evidence.context.threshold)}", "attribute", "information loss",
            "query error")  # fmt: skip
    return Table(head, list(map(_summary, report.releases, evidence.releases)))


def _summary(release: Measured, known: ReleaseEvidence) -> list[object]:
    risk = known.facts["risk"][0] if known.facts["risk"] else dict.fromkeys(_RISK)
    loss = {name: value for name, value, _ in release.loss}
    diversity: dict[str, object] = {measure: value for measure, value in release.diversity}
    return [
        release.name,
        release.rows,
        min((size for size, _ in release.classes), default=None),
        diversity.get("frequency"),
        risk["identity"],
        interval(risk["identity_low"], risk["identity_high"]),
        risk["meets_threshold"],
        risk["attribute"],
        loss.get("(all)"),
        float(np.mean(np.abs(release.errors))) if release.errors else None,
    ]


def risk_tables(facts: Facts) -> dict[str, Table]:
    """What the holder states, and the measured risks."""
    evidence = facts.evidence
    stated = [[name.replace("_", " "), getattr(evidence.context, name) or "not given"] for name in TEXTS]
    limit = ["largest acceptable risk", f"{evidence.context.threshold:g} (EMA policy 0070: 0.09)"]
    before = evidence.facts["risk"] if facts.edition == "internal" else []
    rows = [["the original", *_risk_cells(row)] for row in before]
    rows += [[release.name, *_risk_cells(row)] for release, row in facts.across("risk")]
    groups = [
        [release.name, row["column"], row["value"], row["people"], row["identity"],
         interval(row["identity_low"], row["identity_high"]), row["attribute"], row["advantage"]]
        for release, row in facts.across("subgroups")
    ]  # fmt: skip
    wp29 = [
        [release.name, str(row["criterion"]).replace("_", " "), row["risk"],
         interval(row["risk_low"], row["risk_high"]), _verdict(row, evidence.context.threshold), row["baseline"],
         row["attacks"], row["note"]]
        for release, row in facts.across("wp29")
    ]  # fmt: skip
    of_original = evidence.facts["classes"] if facts.edition == "internal" else []
    classes = [["the original", *row.values()] for row in of_original]
    classes += [[release.name, *row.values()] for release, row in facts.across("classes")]
    population = shown(facts.edition, "population", evidence.facts)
    sizes = [["the original", row["figure"], row["value"]] for row in population]
    sizes += [[release.name, row["figure"], row["value"]] for release, row in facts.across("population")]
    return {
        "decision": Table(("item", "statement of the data holder"), [*stated, limit]),
        "risk": Table(
            ("table", "identity", "95% interval", "attribute", "baseline", "advantage", "within the limit",
             "strongest attackers"), rows),
        "subgroups": Table(
            ("release", "column", "group", "individuals", "identity", "95% interval", "attribute", "advantage"),
            groups),
        "wp29": Table(
            ("release", "criterion", "risk", "95% interval", "verdict", "baseline", "attacks", "note"), wp29),
        "classes": Table(
            ("table", "prosecutor and journalist risk", "marketer risk", "records above the limit",
             "unique records"), classes),
        "population": Table(("table", "figure", "value"), sizes),
        "missing": facts.missing(evidence.missing),
        "missing_of_releases": facts.missing(
            {what: why for release in evidence.releases for what, why in release.missing.items()}),
    }  # fmt: skip


def guarantee_tables(facts: Facts) -> dict[str, Table]:
    """Guarantees, Safe Harbor and roles."""
    releases = facts.evidence.releases
    states = [{row["identifier"]: row for row in release.facts["safe_harbor"]} for release in releases]
    identifiers = states[0].items() if states else ()
    roles = roles_of(facts.evidence, facts.edition)
    return {
        "guarantee": facts.of_all("guarantee", "guarantee", "measured", "holds", "checked by"),
        "safe_harbor": Table(
            ("identifier", "columns", *(release.name for release in releases)),
            [[item, row["columns"], *(of[item]["state"] for of in states)] for item, row in identifiers],
        ),
        "roles": Table(
            [name.replace("_", " ") for name in roles[0]] if roles else (), [list(row.values()) for row in roles]
        ),
    }


def utility_tables(facts: Facts) -> dict[str, Table]:
    """NIST's measures, impossible combinations, suppression."""
    measured = facts.across("utility")
    order = {name: place for place, name in enumerate(dict.fromkeys(row["measure"] for _, row in measured))}
    rows = [[release.name, row["measure"], row["value"], row.get("compare")] for release, row in measured]
    return {
        "utility": Table(
            ("release", "measure", "value", "for comparison"), sorted(rows, key=lambda row: order[str(row[1])])
        ),
        "impossible": facts.of_all("impossible", "condition", "original", "estimate", "at least", "at most"),
        "suppression": facts.of_all("suppression", "column", "group", "original", "released", "suppressed"),
    }


def queries(facts: Facts) -> list[tuple[str, Table]]:
    """Each query of the analyst with the answers of all releases."""
    head = ("group", "measure", "release", "original", "estimate", "bounds", "relative error")
    answered = facts.across("queries")
    found = []
    for query in dict.fromkeys(row["query"] for _, row in answered):
        rows = [
            [_keys(row["keys"]), row["measure"], release.name, row["original"], row["estimate"],
             interval(row["low"], row["high"]), row["relative_error"]]
            for release, row in answered if row["query"] == query
        ]  # fmt: skip
        found.append((query, Table(head, sorted(rows, key=lambda row: (row[0], str(row[1]))))))
    return found


def provenance(release: ReleaseEvidence, edition: Edition) -> Table:
    """Method, date, randomness and hash of a release."""
    said = release.description
    recorded = said is not None and bool(said.method)
    made = f"{said.date or 'date not recorded'}, duckdb-anon {said.version or 'unknown'}" if said else "not recorded"
    rows = [
        ["method and parameters", said.call if said and recorded else "not recorded in the release"],
        ["made on, with", made],
        ["randomness", _RANDOMNESS if recorded else "unknown"],
        ["rows", f"{release.rows:,}"],
        ["SHA-256 of its rows", release.sha256],
        ["check release", shown_check(release, edition)],
    ]
    return Table(("fact", "value"), rows)


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.0914), percent(0.09), percent(1.0), percent(0.00012)
    ('9.14%', '9%', '100%', '0.012%')
    """
    return f"{100 * share:.3g}%"


def interval(low: object, high: object) -> str | None:
    """Two ends as one text.

    >>> interval(0.04986, 0.0946), interval(993, 1422)
    ('0.0499 to 0.0946', '993 to 1,422')
    """
    if low is None or high is None:
        return None
    return f"{number(low)} to {number(high)}"


def number(value: object) -> str:
    """A number as a reader wants it.

    >>> number(15020.3), number(1e-19), number(0.068936), number(7)
    ('15,020', '0', '0.0689', '7')
    """
    if not _is_number(value):
        try:
            value = float(str(value))
        except ValueError:
            return str(value)
    amount = float(str(value))
    if isinstance(value, int) or abs(amount) >= 1000:
        return f"{amount:,.0f}"
    return "0" if abs(amount) < 1e-9 else f"{amount:.3g}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _risk_cells(row: Mapping[str, Any]) -> list[object]:
    attackers = [part for part in str(row["note"]).split("; ") if not part.startswith("not tried")]
    return [
        row["identity"], interval(row["identity_low"], row["identity_high"]), row["attribute"], row["baseline"],
        row["advantage"], row["meets_threshold"], "; ".join(attackers),
    ]  # fmt: skip


def _verdict(row: Mapping[str, Any], limit: float) -> str:
    """Whether the interval of a risk lies below the limit, above it, or on both sides."""
    if row["risk_high"] is None:
        return "not measured"
    if row["risk_high"] <= limit:
        return "within the limit"
    return "above the limit" if row["risk_low"] > limit else "open: the interval contains the limit"


def _keys(keys: Any) -> str:
    """The group a row of an answer belongs to."""
    values: Iterable[Any] = dict(keys or {}).values()
    return ", ".join("NULL" if value is None else str(value) for value in values) or "(all)"
