"""The evidence as HTML sections and as JSON, in two editions.

The internal edition shows everything. The external one leaves out whatever tells values or counts of the original that
the release does not: groups, queries' true answers, comments on columns, conditions, hashes of the original.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from duckdb_anon.report.context import TEXTS
from duckdb_anon.report.evidence import Evidence, ReleaseEvidence

Edition = Literal["internal", "external"]
HOLDERS = ("suppression", "queries", "impossible")
"""Facts that only the holder's edition shows."""
_TITLES = {
    "risk": "Risk before and after, by the strongest attacker",
    "wp29": "WP29's three criteria: singling out, linkability, inference",
    "population": "Population risk",
    "guarantee": "The promise, checked once more on the released table by other code",
    "safe_harbor": "HIPAA Safe Harbor: the 18 identifiers",
    "suppression": "Suppression by group",
    "utility": "Utility by NIST's measures",
    "queries": "The analyst's own queries, with bounds",
    "impossible": "Impossible combinations",
}
_NOT_COVERED = (
    "Other releases about the same people, earlier or later (composition_risk measures a pair).",
    "What is generally known: whoever knows that an illness is common among the old learns it of every old person.",
    "Columns that are released as they are: a rare value in one singles somebody out whatever is done to the others.",
    "Attackers who know more than the labelled quasi-identifiers.",
)


def shown(edition: Edition, name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a fact as an edition shows them.

    Args:
        edition: whom the page is for.
        name: name of the fact.
        rows: its rows.
    """
    if edition == "external" and name in HOLDERS:
        return []
    if edition == "external" and name == "risk":
        return [dict(row) for row in rows if row["table"] == "release"]
    return [dict(row) for row in rows]


def as_json(evidence: Evidence, edition: Edition, version: str) -> str:
    """The evidence for machines: the same facts the page shows.

    Args:
        evidence: what was gathered.
        edition: whom it is for.
        version: of the package.
    """
    inside = edition == "internal"
    told = {
        "edition": edition,
        "made": datetime.date.today().isoformat(),
        "version": version,
        "original": {
            "name": evidence.original,
            "rows": evidence.rows,
            **({"sha256": evidence.sha256} if inside else {}),
        },
        "context": {
            **evidence.context.told,
            "threshold": evidence.context.threshold,
            "sampling_fraction": evidence.context.sampling_fraction,
        },
        "roles": roles_of(evidence, edition),
        "not_covered": list(_NOT_COVERED),
        "releases": [_release_json(release, edition) for release in evidence.releases],
    }
    return json.dumps(_finite(told), indent=2, default=str, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value


def roles_of(evidence: Evidence, edition: Edition) -> list[dict[str, Any]]:
    """Columns with their roles; outside, without figures on the original and without what was not released."""
    if edition == "internal":
        return [dict(row) for row in evidence.roles]
    hidden = ("nulls", "uniqueness")
    return [
        {key: value for key, value in row.items() if key not in hidden}
        for row in evidence.roles
        if row["role"] not in ("not released", "identifier")
    ]


def _release_json(release: ReleaseEvidence, edition: Edition) -> dict[str, Any]:
    description = release.description
    return {
        "name": release.name,
        "rows": release.rows,
        "sha256": release.sha256,
        "method": description.method if description else None,
        "parameters": dict(description.parameters) if description else None,
        "made": description.date if description else None,
        "version": description.version if description else None,
        "check_release": release.check,
        **{name: shown(edition, name, rows) for name, rows in release.facts.items() if name not in _hidden(edition)},
        "not_measured": _missing(release.missing, edition),
    }


def _hidden(edition: Edition) -> tuple[str, ...]:
    return HOLDERS if edition == "external" else ()


def _missing(missing: Mapping[str, str], edition: Edition) -> dict[str, str]:
    """Reasons may quote queries and conditions, which name values."""
    if edition == "internal":
        return dict(missing)
    return {what: why for what, why in missing.items() if not what.startswith(("query ", "condition ", "suppression"))}


def add_sections(
    evidence: Evidence,
    edition: Edition,
    add: Callable[[str], None],
    table: Callable[[Sequence[str], Sequence[Sequence[object]]], None],
    escape: Callable[[str], str],
) -> None:
    """Write the evidence, section by section.

    Args:
        evidence: what was gathered.
        edition: whom the page is for.
        add: takes HTML.
        table: takes the head and the rows of a table.
        escape: makes text harmless in HTML.
    """
    context = evidence.context
    add("<h2>Evidence for a decision</h2>")
    if context.title:
        add(f"<p><strong>{escape(context.title)}</strong></p>")
    table(
        ["asked", "said"],
        [[name.replace("_", " "), getattr(context, name) or "not given"] for name in TEXTS]
        + [["largest acceptable risk", f"{context.threshold:g} (EMA policy 0070: 0.09)"]],
    )
    add("<h3>Columns and their roles</h3>")
    _rows(table, roles_of(evidence, edition))
    if edition == "internal":
        add(f'<p class="note">SHA-256 of the original\'s rows: <code>{evidence.sha256}</code></p>')
        _reasons(add, table, evidence.missing)
    for release in evidence.releases:
        _release(release, edition, add, table, escape)
    add("<h3>What no promise here covers</h3><ul>" + "".join(f"<li>{line}</li>" for line in _NOT_COVERED) + "</ul>")


def _release(
    release: ReleaseEvidence,
    edition: Edition,
    add: Callable[[str], None],
    table: Callable[[Sequence[str], Sequence[Sequence[object]]], None],
    escape: Callable[[str], str],
) -> None:
    description = release.description
    add(f"<h2>Evidence: {escape(release.name)}</h2>")
    made = description.call if description and description.method else "not said by the release"
    table(
        ["fact", "value"],
        [
            ["method and parameters", made],
            ["made on, with", f"{description.date}, duckdb-anon {description.version}" if description else "not said"],
            ["randomness", "the system's entropy through ChaCha20; a seed below 2^64 is refused for releases"
             if description and description.method else "not known"],
            ["rows", release.rows],
            ["SHA-256 of its rows", release.sha256],
            ["check release", release.check],
        ],
    )  # fmt: skip
    for name, title in _TITLES.items():
        rows = shown(edition, name, release.facts.get(name, []))
        if rows:
            add(f"<h3>{title}</h3>")
            _rows(table, rows)
    _reasons(add, table, _missing(release.missing, edition))


def _rows(
    table: Callable[[Sequence[str], Sequence[Sequence[object]]], None], rows: Sequence[Mapping[str, Any]]
) -> None:
    if rows:
        head = list(rows[0])
        table([name.replace("_", " ") for name in head], [[row.get(name) for name in head] for row in rows])


def _reasons(
    add: Callable[[str], None],
    table: Callable[[Sequence[str], Sequence[Sequence[object]]], None],
    missing: Mapping[str, str],
) -> None:
    if missing:
        add("<h3>Not measured for this evidence</h3>")
        table(["what", "why"], [[what, why] for what, why in missing.items()])
