"""The page itself: one HTML file with its charts' program and data inside, readable offline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import vl_convert

from duckdb_anon.model.shapes import SOURCE
from duckdb_anon.report import charts
from duckdb_anon.report.evidence import Evidence
from duckdb_anon.report.evidence_page import Edition, add_sections
from duckdb_anon.report.gather import Measured, Report

_STYLE = """
:root { --ink: #1d232b; --soft: #5b6470; --line: #d9dde3; --paper: #fff; --warn: #fff6e0; --edge: #d99a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #a3adba; --line: #3a424d; --paper: #14181d;
--warn: #3a2f12; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1080px;
margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); } h3 { margin-top: 1.8rem; }
.wide { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; }
th, td { padding: .3rem .8rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
overflow-wrap: break-word; max-width: 32rem; } th { white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr)); gap: 1.5rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 4rem; } .tables > div { max-width: 100%; }
figure { margin: 0; padding: .6rem; overflow-x: auto; background: #fff; color: #1d232b; border-radius: 6px; }
figcaption { font-weight: 600; } .note { color: var(--soft); } code { font-size: .9em; }
.warning { background: var(--warn); border-left: 4px solid var(--edge); padding: .6rem 1rem; }
@media (max-width: 600px) { body { margin: 1rem auto; } th, td { padding: .3rem .5rem; } }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --warn: #fff; } body { margin: 0;
max-width: none; font-size: 10pt; } .wide { overflow: visible; } h2, h3, figcaption { break-after: avoid; }
figure, tr { break-inside: avoid; } }
"""
_INTERNAL = (
    '<p class="warning">For the data holder: this page holds figures on the original (counts of values, exact '
    "query answers). It is no release itself.</p>"
)
_EXTERNAL = (
    '<p class="warning">External edition: values and counts of the original that the releases do not show are left '
    "out, such as groups, answers to queries and rare categories. The holder has the internal edition.</p>"
)
_DRAW = "for (const [place, spec] of Object.entries(CHARTS)) vegaEmbed('#' + place, spec, {actions: false});"


class _Page:
    """Collects the body's pieces and the charts they have room for."""

    def __init__(self) -> None:
        self.body: list[str] = []
        self.charts: dict[str, charts.Spec] = {}

    def add(self, html: str) -> None:
        self.body.append(html)

    def figures(self, titled: Iterable[tuple[str, charts.Spec | None]]) -> None:
        """Room for charts side by side; those there is nothing to draw for are left out."""
        figures = []
        for title, spec in titled:
            if spec is not None:
                place = f"chart{len(self.charts)}"
                self.charts[place] = spec
                figures.append(f'<figure><figcaption>{escape(title)}</figcaption><div id="{place}"></div></figure>')
        self.add(f'<div class="charts">{"".join(figures)}</div>')

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        cells = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
        titles = "".join(f"<th>{escape(title)}</th>" for title in head)
        self.add(f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table></div>')


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, float):
        return f'<td class="n">{value:.4g}</td>'
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    if value is None:
        return '<td class="n">\N{EN DASH}</td>'
    return f"<td>{escape(str(value))}</td>"


def page(report: Report, evidence: Evidence, edition: Edition = "internal") -> str:
    """The report as HTML text.

    Args:
        report: what was measured for the charts.
        evidence: what was measured for the decision.
        edition: 'external' leaves out what tells values or counts of the original that no release does.
    """
    made = _Page()
    _overview(made, report, edition)
    add_sections(evidence, edition, made.add, made.table, escape)
    made.add("<h2>Risk</h2>")
    made.figures(
        [
            ("Finding somebody's row", charts.risk_over_knowledge(report, "identity")),
            ("Learning the sensitive value", charts.risk_over_knowledge(report, "attribute")),
        ]
    )
    made.add("<h2>Utility</h2>")
    made.figures([("Query error", charts.query_errors(report)), ("Information loss by column", charts.losses(report))])
    for release in report.releases if edition == "internal" else ():
        _release(made, report, release)
    # "</script" would end the element wherever a value held it, "<!--<script" would keep it from ending
    data = json.dumps(made.charts).replace("<", "\\u003c")
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Releases of {escape(report.plan.original)}</title><style>{_STYLE}</style></head>\n"
        f"<body>{''.join(made.body)}\n<script>{program}</script>\n"
        f"<script>const CHARTS = {data};\n{_DRAW}</script></body></html>\n"
    )


def _overview(made: _Page, report: Report, edition: Edition) -> None:
    plan = report.plan
    made.add(f"<h1>Releases of {escape(plan.original)}</h1>")
    made.add(_INTERNAL if edition == "internal" else _EXTERNAL)
    alone = f" {report.uniques:,} rows are alone with their quasi-identifiers in the original."
    made.add(
        f"<p>{report.rows:,} rows; quasi-identifiers {escape(', '.join(report.qi))}; sensitive "
        f"{escape(', '.join(report.sensitive) or 'none labelled')}.{alone if edition == 'internal' else ''}</p>"
    )
    head = ["release", "rows", "k", "frequency l", "identity", "attribute", "information loss", "mean query error"]
    made.table(head, (_summary(release) for release in report.releases))
    made.add(
        f'<p class="note">k and l: of the smallest and least diverse set of rows with equal published '
        "quasi-identifiers; a release of drawn values promises neither. identity and attribute: how often the "
        "strongest attacker of linkage_risk, who knows all quasi-identifiers, points at the right row and names the "
        f"sensitive value, over {plan.targets:,} people. query error: {plan.queries:,} COUNT queries over "
        f"quasi-identifiers and the sensitive column, the same for each release (seed {plan.seed}). A dash: not "
        "measured, reasons below.</p>"
    )
    made.figures([("Risk and utility", charts.risk_utility_map(report))])


def _summary(release: Measured) -> list[object]:
    at: dict[float, tuple[object, object]] = {p: (identity, attribute) for p, identity, attribute in release.risk}
    identity, attribute = at.get(charts.RISK_AT, (None, None))
    loss = {name: value for name, value, _ in release.loss}
    diversity: dict[str, object] = {measure: value for measure, value in release.diversity}
    return [
        release.name,
        release.rows,
        min((size for size, _ in release.classes), default=None),
        diversity.get("frequency"),
        identity,
        attribute,
        loss.get("(all)"),
        float(np.mean(np.abs(release.errors))) if release.errors else None,
    ]


def _release(made: _Page, report: Report, release: Measured) -> None:
    made.add(f"<h2>{escape(release.name)}</h2>")
    if release.comment:
        made.add(f"<p>{escape(release.comment)}</p>")
    if any(SOURCE.stands_for(name) for name, *_ in release.columns):
        made.add(
            f'<p class="warning">It has the column {SOURCE.word}, which ties rows to the original: '
            "not for publication.</p>"
        )
    made.add('<div class="tables"><div><h3>What was released</h3>')
    made.table(["column", "type"], release.columns)
    if release.diversity:
        made.add("</div><div><h3>Least diverse class</h3>")
        made.table(["measure", "value"], release.diversity)
    made.add("</div></div>")
    if release.attackers:
        made.add("<h3>Attackers who know all quasi-identifiers</h3>")
        made.table(
            ["attacker", "identity", "low", "high", "attribute", "baseline", "advantage", "how, or why not"],
            release.attackers,
        )
    for rate, predicates, note in release.singled:
        made.add(
            f"<p>Univariate singling out: of {predicates:,} values and ends that occur once in the release, "
            f"{rate:.0%} hold for exactly one person ({escape(note)}). A column that is published as it is singles out "
            "everybody whose value is rare, whatever is done to the others.</p>"
        )
    made.figures(
        [
            ("Class sizes", charts.class_sizes(release)),
            ("Change of correlation", charts.correlation_change(release)),
            *((f"Counts by {name}", charts.marginal(release, name)) for name in report.qi),
        ]
    )
    if release.missing:
        made.add("<h3>Not measured</h3>")
        made.table(["measure", "why"], release.missing.items())
