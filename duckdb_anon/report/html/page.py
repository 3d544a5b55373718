"""The report as one HTML file, readable offline: what the Jinja2 templates in `templates/` fill in.

Texts, headings and tables stand in the templates; here are the charts. Every value is escaped by Jinja2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.report.evidence import tried
from duckdb_anon.report.findings import NOT_PROMISED, RARE, DatabaseFindings, Findings, Rows
from duckdb_anon.report.html import charts
from duckdb_anon.report.html.tables import Facts, columns_of, interval, listed, number, percent
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
    drawn, internal = _Charts(), edition == "internal"
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
    of_release = {
        release.name: drawn.add(
            ("Sizes of equivalence classes", charts.class_sizes(found, release)),
            ("Change of correlation", charts.correlation_change(found, release)),
            *((f"Counts by {name}", charts.marginal(found, release, name)) for name in found.qi),
        )
        for release in (found.releases if internal else ())
    }
    linked = [release.name for release in found.releases if any(map(SOURCE.stands_for, release.columns))]
    return _rendered(
        "page.html", f"Releases of {found.plan.original}", drawn,
        found=found, plan=found.plan, context=found.context, facts=Facts(found), charts=placed, charts_of=of_release,
        internal=internal, short=edition == "short", not_covered=NOT_COVERED, row_id=SOURCE.word, linked=linked,
        rare=RARE, knows_all=charts.RISK_AT,
        missing={what: why for release in found.releases for what, why in release.missing.items()},
    )  # fmt: skip


def database_page(found: DatabaseFindings) -> str:
    """The page on a release of several tables as HTML text."""
    drawn = _Charts()
    by_table: dict[str, Rows] = {}
    for row in found.columns:
        by_table.setdefault(row["table"], []).append({key: row[key] for key in row if key != "table"})
    return _rendered(
        "database.html", f"Release of {found.name}", drawn,
        found=found, not_promised=NOT_PROMISED, columns=by_table,
        smallest=min((row["counted"] for row in found.guarantees if row["guarantee"].startswith("k ")), default=0),
        charts=drawn.add(("Re-identification by the attacker's knowledge", charts.joined_risk(found.risks))),
    )  # fmt: skip


def _rendered(template: str, title: str, drawn: _Charts, **given: object) -> str:
    """A page with its charts; the given values are evaluated before, so that all charts are drawn."""
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    environment = Environment(
        loader=PackageLoader("duckdb_anon.report.html"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )

    def shown(rows: Rows, columns: Mapping[str, str]) -> Rows:
        """A table: titles of its columns, and the expression of a row's values that stands in each."""
        values = {
            title: environment.compile_expression(text, undefined_to_none=False) for title, text in columns.items()
        }
        return [{title: value(row, row=row) for title, value in values.items()} for row in rows]

    environment.filters |= {
        "number": number, "count": "{:,}".format, "percent": percent, "rounded": "{:.0%}".format, "columns": columns_of,
        "to": interval, "listed": listed, "tried": tried, "shown": shown,
    }  # fmt: skip
    return environment.get_template(template).render(
        title=title, **given,
        program=Markup(program),  # noqa: S704 - Vega's own program
        # "</script" would end the element wherever a value contained it, "<!--<script" would keep it from ending
        specs=Markup(json.dumps(drawn.specs).replace("<", "\\u003c")),  # noqa: S704
    )  # fmt: skip
