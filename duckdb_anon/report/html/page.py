"""The report as one HTML file, readable offline: what the Jinja2 templates in `templates/` fill in.

Texts, headings, tables and charts stand in the templates. Every value is escaped by Jinja2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.report.evidence import tried
from duckdb_anon.report.findings import NOT_PROMISED, RARE, DatabaseFindings, Findings, Rows
from duckdb_anon.report.html import charts
from duckdb_anon.report.html.tables import Facts, columns_of, interval, listed, number, percent
from duckdb_anon.report.redaction import NOT_COVERED, Edition


def page(found: Findings, edition: Edition) -> str:
    """The report as HTML text, of the findings that an edition contains."""
    return _rendered(
        "page.html",
        title=f"Releases of {found.plan.original}", found=found, plan=found.plan, context=found.context,
        facts=Facts(found), internal=edition == "internal", short=edition == "short", not_covered=NOT_COVERED,
        row_id=SOURCE.word, rare=RARE,
        linked=[release.name for release in found.releases if any(map(SOURCE.stands_for, release.columns))],
        missing={what: why for release in found.releases for what, why in release.missing.items()},
    )  # fmt: skip


def database_page(found: DatabaseFindings) -> str:
    """The page on a release of several tables as HTML text."""
    by_table: dict[str, Rows] = {}
    for row in found.columns:
        by_table.setdefault(row["table"], []).append({key: row[key] for key in row if key != "table"})
    return _rendered(
        "database.html",
        title=f"Release of {found.name}", found=found, not_promised=NOT_PROMISED, columns=by_table,
        smallest=min((row["counted"] for row in found.guarantees if row["guarantee"].startswith("k ")), default=0),
    )  # fmt: skip


def _rendered(template: str, **given: object) -> str:
    """A page with the charts that its template draws."""
    specs: dict[str, charts.Spec] = {}
    environment = Environment(
        loader=PackageLoader("duckdb_anon.report.html"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )

    def draw(titled: Sequence[tuple[str, charts.Spec | None]]) -> list[tuple[str, str]]:
        """Titles and elements of charts; those without data are left out."""
        added = []
        for title, spec in titled:
            if spec is not None:
                element = f"chart{len(specs)}"
                specs[element] = spec
                added.append((title, element))
        return added

    def shown(rows: Rows, columns: Mapping[str, str]) -> Rows:
        """A table: titles of its columns, and the expression of a row's values that stands in each."""
        values = {
            title: environment.compile_expression(text, undefined_to_none=False) for title, text in columns.items()
        }
        return [{title: value(row, row=row) for title, value in values.items()} for row in rows]

    environment.filters |= {
        "number": number, "count": "{:,}".format, "percent": percent, "rounded": "{:.0%}".format, "columns": columns_of,
        "to": interval, "listed": listed, "tried": tried, "shown": shown, "draw": draw,
    }  # fmt: skip
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    return environment.get_template(template).render(
        given, charts=charts, specs=specs,
        program=Markup(program),  # noqa: S704 - Vega's own program
    )  # fmt: skip
