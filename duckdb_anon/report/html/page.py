"""The report as one HTML file, readable offline: what the Jinja2 templates in `templates/` fill in.

Texts and headings stand in the templates; here are the tables and the charts. Every value is escaped by Jinja2.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.report.database_findings import NOT_PROMISED, DatabaseFindings
from duckdb_anon.report.findings import Findings, Measured, Rows
from duckdb_anon.report.html import charts
from duckdb_anon.report.html.tables import Facts, Table, number, percent, table_of
from duckdb_anon.report.redaction import NOT_COVERED, Edition, check_text, visible_rows


@dataclass(frozen=True)
class Chart:
    """A chart's title, and the id of the element it is drawn in."""

    title: str
    element: str


class _Charts:
    """Collects the specifications of the charts under the ids of their elements."""

    def __init__(self) -> None:
        self.specs: dict[str, charts.Spec] = {}

    def add(self, *titled: tuple[str, charts.Spec | None]) -> list[Chart]:
        """Charts side by side; those without data are left out."""
        added = []
        for title, spec in titled:
            if spec is not None:
                added.append(Chart(title, f"chart{len(self.specs)}"))
                self.specs[added[-1].element] = spec
        return added


def page(found: Findings, edition: Edition = "internal") -> str:
    """The report as HTML text, in an edition."""
    facts, drawn, internal = Facts(found, edition), _Charts(), edition == "internal"
    placed = {
        "overview": drawn.add(("Risk and utility", charts.risk_utility_map(found))),
        "risk": drawn.add(
            ("Re-identification by the attacker's knowledge", charts.risk_over_knowledge(found, "identity")),
            ("Attribute disclosure by the attacker's knowledge", charts.risk_over_knowledge(found, "attribute")),
        ),
        "utility": drawn.add(
            ("Query error", charts.query_errors(found, rounded=not internal)),
            ("Information loss by column", charts.losses(found)),
        ),
    }
    releases = [_release(drawn, facts, found, release) for release in found.releases] if internal else []
    return _rendered(
        "page.html", f"Releases of {found.plan.original}", drawn,
        found=found, plan=found.plan, context=found.context, internal=internal, short=edition == "short",
        uniques=found.facts["classes"][0]["sample_uniques"] if found.facts["classes"] else None,
        conclusions=[_conclusion(release, found.context.threshold) for release in found.releases],
        joint=_joint(visible_rows(edition, "joint", found.facts)),
        independent=[r.name for r in found.releases if r.description is not None and r.description.independent],
        t=facts.tables(), charts=placed, not_covered=NOT_COVERED, releases=releases, queries=facts.answers(),
        unlinked=[(r.name, check_text(r, edition)) for r in found.releases if r.check.note.startswith("none")],
        provenance=[(release.name, facts.provenance(release)) for release in found.releases],
    )  # fmt: skip


def database_page(found: DatabaseFindings) -> str:
    """The page on a release of several tables as HTML text."""
    drawn = _Charts()
    limit = f"within the limit of {percent(found.limit)}" if found.limit is not None else ""
    risks = [
        {
            "attacker knows": row["known"],
            "pseudonyms alone": row["pseudonyms"] if row["pseudonyms"] is None else percent(row["pseudonyms"]),
            "this release": percent(row["identity"]),
            "95% interval": f"{percent(row['low'])} to {percent(row['high'])}",
            **({limit: row["high"] <= found.limit} if found.limit is not None else {}),
        }
        for row in found.risks
    ]
    lost = [{**row, "share": percent(row["share"])} for row in found.lost]
    by_table: dict[str, Rows] = {}
    for row in found.columns:
        by_table.setdefault(row["table"], []).append({key: row[key] for key in row if key != "table"})
    return _rendered(
        "database.html", f"Release of {found.name}", drawn,
        found=found, conclusions=_of_database(found), not_promised=NOT_PROMISED,
        charts=drawn.add(("Re-identification by the attacker's knowledge", charts.joined_risk(found.risks))),
        t={
            "tables": table_of(found.tables), "lost": table_of(lost), "risks": table_of(risks),
            "guarantees": table_of(found.guarantees),
            "provenance": Table(("fact", "value"), list(found.provenance.items())),
        },
        columns=[(name, table_of(rows)) for name, rows in by_table.items()],
    )  # fmt: skip


def _of_database(found: DatabaseFindings) -> list[str]:
    """The verdict on a release of several tables."""
    smallest = min((row["counted"] for row in found.guarantees if row["guarantee"].startswith("k ")), default=0)
    together = "The released tables join" if found.linked else "The released tables do not join; in each of them"
    lines = [
        f"{found.individuals:,} individuals in {len(found.tables)} tables. {together}"
        f"{', and' if found.linked else ''} every known record is that of {smallest} individuals or more."
    ]
    if not found.risks:
        return lines
    worst = max(found.risks, key=lambda row: float(row["high"]))
    alone = max((row["pseudonyms"] for row in found.risks if row["pseudonyms"] is not None), default=None)
    before = f" With pseudonyms alone it would be {percent(alone)}." if alone is not None else ""
    lines.append(
        f"An attacker who knows {worst['known']} re-identifies {percent(worst['identity'])} of the individuals (95% "
        f"interval {percent(worst['low'])} to {percent(worst['high'])}).{before}"
    )
    if found.limit is not None:
        verdict = "is within" if worst["high"] <= found.limit else "exceeds"
        lines.append(f"The upper end, {percent(worst['high'])}, {verdict} the limit of {percent(found.limit)}.")
    return lines


def _rendered(template: str, title: str, drawn: _Charts, **given: object) -> str:
    """A page with its charts; the given values are evaluated before, so that all charts are drawn."""
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    return _environment().get_template(template).render(
        title=title, **given,
        program=Markup(program),  # noqa: S704 - Vega's own program
        # "</script" would end the element wherever a value contained it, "<!--<script" would keep it from ending
        specs=Markup(json.dumps(drawn.specs).replace("<", "\\u003c")),  # noqa: S704
    )  # fmt: skip


def _environment() -> Environment:
    loader = PackageLoader("duckdb_anon.report.html")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"number": number, "count": "{:,}".format, "percent": "{:.0%}".format}
    return environment


def _conclusion(release: Measured, limit: float) -> str:
    """The verdict on one release; the upper end of the interval decides."""
    if not release.facts["risk"]:
        return f"{release.name}: the re-identification risk was not measured."
    risk = release.facts["risk"][0]
    found = (
        f"{release.name}: the strongest attacker, who knows all quasi-identifiers and the method, re-identifies "
        f"{percent(risk['identity'])} of the records (95% interval {percent(risk['identity_low'])} to "
        f"{percent(risk['identity_high'])}) and infers the sensitive value of {_share(risk['attribute'])}."
    )
    high, meets = percent(risk["identity_high"]), risk["meets_threshold"]
    if meets is None:
        return f"{found} Whether this is within the limit of {percent(limit)} is open: not every attacker was tried."
    if meets:
        return f"{found} The upper end, {high}, is within the limit of {percent(limit)}."
    return f"{found} The upper end, {high}, exceeds the limit of {percent(limit)}."


def _joint(rows: Rows) -> str:
    """What the releases of the register reveal together; '' where it lists fewer than two with a key."""
    if not rows:
        return ""
    (row,) = rows
    return (
        f"The {row['releases']} releases of the original in the register together re-identify "
        f"{percent(row['identity'])} of the records (95% interval {percent(row['identity_low'])} to "
        f"{percent(row['identity_high'])}) and reveal the sensitive value of {percent(row['attribute'])}, by "
        "sequence_risk."
    )


def _share(attribute: float | None) -> str:
    return "no record, as there is none" if attribute is None else percent(attribute)


def _release(drawn: _Charts, facts: Facts, found: Findings, release: Measured) -> dict[str, object]:
    """The section of one release, for the internal edition."""
    marginals = [(f"Counts by {name}", charts.marginal(found, release, name)) for name in found.qi]
    figures = ("identity", "low", "high", "attribute", "baseline", "advantage")
    return {
        "measured": release,
        "row_id": SOURCE.word if any(map(SOURCE.stands_for, release.columns)) else "",
        "columns": Table(("column", "type"), list(release.columns.items())),
        "diversity": table_of(release.charts["diversity"]),
        "attackers": Table(
            ("attacker", *figures, "channel", "method, or why not measured"),
            [list(row.values())[1:] for row in release.charts["attackers"] if row["p_match"] == charts.RISK_AT],
        ),
        "charts": drawn.add(
            ("Sizes of equivalence classes", charts.class_sizes(found, release)),
            ("Change of correlation", charts.correlation_change(found, release)),
            *marginals,
        ),
        "missing": facts.missing(release.missing),
    }
