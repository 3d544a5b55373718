"""Editions of the evidence, and the evidence as JSON.

The internal edition contains everything. The external one contains no value of the original and no count of its
individuals: groups, names of subgroups, queries, conditions, hashes of the original and reasons (a message may quote a
value) are left out, and figures are rounded, because the exact rate of a known query gives the count behind it. The
short edition is the external one without the tables and charts that only an expert reads.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from duckdb_anon.model.version import __version__
from duckdb_anon.report.findings import DatabaseFindings, Evidence, Findings, Measured, Rows

Edition = Literal["internal", "external", "short"]
HOLDERS = ("suppression", "queries", "impossible")
"""Facts of the internal edition alone."""
_DIGITS = 3
_COUNTS = ("rows", "population", "sample_uniques", "population_uniques")
NOT_COVERED = (
    "Releases about the same people that the register does not list (composition_risk measures a pair).",
    "Inference from statistics: if a disease is frequent among old individuals, this follows for every old individual.",
    "Columns that are released unchanged: a rare value in one of them can identify its holder.",
    "Attackers with background knowledge beyond the labelled quasi-identifiers.",
)


def edition_of(found: Findings, edition: Edition) -> Findings:
    """The findings as an edition contains them."""
    if edition == "internal":
        return found
    hidden, counts = ("nulls", "uniqueness", "reason", "warning"), ("unique values", "individuals identified")
    columns = [
        {key: value for key, value in row.items() if key not in hidden}
        for row in found.columns
        if row["role"] not in ("not released", "identifier", "person")
    ]
    return replace(
        found,
        rows=0,
        sha256="",
        columns=columns,
        unchanged=[{key: value for key, value in row.items() if key not in counts} for row in found.unchanged],
        figures={
            name: figure._replace(text="") if figure.internal else figure for name, figure in found.figures.items()
        },
        facts={name: _outside(name, found.facts[name]) for name in ("population", "joint")},
        missing=_reasons(found.missing),
        releases=[_release_outside(release) for release in found.releases],
    )


def _release_outside(release: Measured) -> Measured:
    how, failed, _ = release.check.note.partition("failed: ")  # a failure may quote values
    facts = {name: _outside(name, rows) for name, rows in release.facts.items() if name not in HOLDERS}
    check = replace(release.check, note=how + "failed" if failed else release.check.note)
    return replace(release, facts=facts, missing=_reasons(release.missing), check=check)


def _outside(name: str, rows: Rows) -> Rows:
    """Rows of a fact without what tells of the original, figures rounded."""
    if name == "subgroups":  # the one at most risk of each column, without its name and size
        worst = {row["column"]: row for row in sorted(rows, key=lambda row: row["identity"])}
        rows = [{**row, "value": "(the group at most risk)", "people": None} for row in worst.values()]
    if name == "population":
        rows = [row for row in rows if row["figure"] not in _COUNTS]
    if name == "utility":
        rows = [{**row, "compare": None if " of " in f" {row['compare']}" else row["compare"]} for row in rows]
    return [
        {key: float(f"{value:.{_DIGITS}g}") if _is_finite(value) else value for key, value in row.items()}
        for row in rows
    ]


def _reasons(missing: Mapping[str, str]) -> dict[str, str]:
    """What could not be measured; its reasons quote queries and conditions, and a message may quote values."""
    hidden = ("query ", "condition ", "suppression")
    return {what: "the reason is in the internal edition" for what in missing if not what.startswith(hidden)}


def as_json(found: Evidence, edition: Edition = "internal") -> str:
    """An edition for machines: the same facts the page shows."""
    content: dict[str, Any] = {
        "edition": edition,
        "made": datetime.date.today().isoformat(),
        "version": __version__,
        "title": found.title,
        "unchanged": found.unchanged,
        "warnings": found.warnings,
        "checklist": found.checklist,
        "figures": found.figures,
        "unanswered": found.unanswered,
        "statements": found.context.statements,
        "columns": found.columns,
        "not_covered": found.not_covered,
    }
    if isinstance(found, Findings):
        of_original = {"rows": found.rows, "sha256": found.sha256, "risk": found.facts.get("risk")}
        content |= {
            "original": {
                "name": found.plan.original,
                **(of_original if edition == "internal" else {}),
                "population": found.facts["population"],
                "not_measured": found.missing,
            },
            "targets": {"strongest attacker": found.plan.targets, "others": found.plan.few},
            "joint_risk": found.facts["joint"],
            "releases": [_release(release) for release in found.releases],
        }
    if isinstance(found, DatabaseFindings):
        content |= {
            "individuals": found.individuals,
            "smallest": found.smallest,
            "linked": found.linked,
            "permuted": found.permuted,
            "limit": found.limit,
            **found.facts,
        }
    return json.dumps(_finite(content), indent=2, default=str, allow_nan=False) + "\n"


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are null."""
    if isinstance(value, float):
        return value if _is_finite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _release(release: Measured) -> dict[str, Any]:
    about = release.description
    return {
        "name": release.name,
        "rows": release.rows,
        "sha256": release.sha256,
        "method": about.method if about else None,
        "parameters": dict(about.parameters) if about else None,
        "made": about.date if about else None,
        "version": about.version if about else None,
        "check_release": release.check.note,
        **release.facts,
        "not_measured": release.missing,
    }
