"""The report as one HTML file, readable offline: what the Jinja2 templates in `templates/` fill in.

Texts and headings stand in the templates; here are the tables and the charts. Every value is escaped by Jinja2.
"""

from __future__ import annotations

import json

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.report.findings import NOT_PROMISED, DatabaseFindings, Findings, Measured, Rows
from duckdb_anon.report.html import charts
from duckdb_anon.report.html.tables import Facts, columns_of, listed, number, percent
from duckdb_anon.report.redaction import NOT_COVERED, Edition


class _Charts:
    """Collects the specifications of the charts under the ids of their elements."""

    def __init__(self) -> None:
        self.specs: dict[str, charts.Spec] = {}

    def add(self, *titled: tuple[str, charts.Spec | None]) -> list[dict[str, str]]:
        """Titles and elements of charts side by side; those without data are left out."""
        added = []
        for title, spec in titled:
            if spec is not None:
                element = f"chart{len(self.specs)}"
                self.specs[element] = spec
                added.append({"title": title, "element": element})
        return added


def page(found: Findings, edition: Edition) -> str:
    """The report as HTML text, of the findings that an edition contains."""
    facts, drawn, internal = Facts(found), _Charts(), edition == "internal"
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
        joint=found.facts["joint"],
        t=facts.tables(), charts=placed, not_covered=NOT_COVERED, releases=releases, queries=facts.answers(),
        unlinked=[(r.name, r.check.note) for r in found.releases if r.check.note.startswith("none")],
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
        found=found, not_promised=NOT_PROMISED,
        smallest=min((row["counted"] for row in found.guarantees if row["guarantee"].startswith("k ")), default=0),
        charts=drawn.add(("Re-identification by the attacker's knowledge", charts.joined_risk(found.risks))),
        t={
            "tables": found.tables, "lost": lost, "risks": risks, "guarantees": found.guarantees,
            "provenance": listed(found.provenance, "fact", "value"),
        },
        columns=list(by_table.items()),
    )  # fmt: skip


def _rendered(template: str, title: str, drawn: _Charts, **given: object) -> str:
    """A page with its charts; the given values are evaluated before, so that all charts are drawn."""
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    environment = Environment(
        loader=PackageLoader("duckdb_anon.report.html"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "number": number, "count": "{:,}".format, "percent": percent, "rounded": "{:.0%}".format, "columns": columns_of,
    }  # fmt: skip
    return environment.get_template(template).render(
        title=title, **given,
        program=Markup(program),  # noqa: S704 - Vega's own program
        # "</script" would end the element wherever a value contained it, "<!--<script" would keep it from ending
        specs=Markup(json.dumps(drawn.specs).replace("<", "\\u003c")),  # noqa: S704
    )  # fmt: skip


def _release(drawn: _Charts, facts: Facts, found: Findings, release: Measured) -> dict[str, object]:
    """The section of one release, for the internal edition."""
    marginals = [(f"Counts by {name}", charts.marginal(found, release, name)) for name in found.qi]
    figures = ("identity", "low", "high", "attribute", "baseline", "advantage")
    titles = ("attacker", *figures, "channel", "method, or why not measured")
    return {
        "measured": release,
        "row_id": SOURCE.word if any(map(SOURCE.stands_for, release.columns)) else "",
        "columns": listed(release.columns, "column", "type"),
        "diversity": release.charts["diversity"],
        "attackers": [
            dict(zip(titles, list(row.values())[1:], strict=True))
            for row in release.charts["attackers"]
            if row["p_match"] == charts.RISK_AT
        ],
        "charts": drawn.add(
            ("Sizes of equivalence classes", charts.class_sizes(found, release)),
            ("Change of correlation", charts.correlation_change(found, release)),
            *marginals,
        ),
        "missing": listed(release.missing, "what", "why"),
    }
