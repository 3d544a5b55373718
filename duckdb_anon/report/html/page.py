"""The page itself: one HTML file with its charts' program and data inside, readable offline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import vl_convert

from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.report.evidence import PageEvidence, ReleaseEvidence
from duckdb_anon.report.html import charts
from duckdb_anon.report.html.evidence_page import Sections, interval, number
from duckdb_anon.report.html.style import CSS, DRAW
from duckdb_anon.report.metrics import Findings, Measured
from duckdb_anon.report.redaction import Edition

_INTERNAL = (
    '<p class="warning">For the data holder: this page holds figures on the original (counts of values, exact '
    "query answers). It is no release itself.</p>"
)
_EXTERNAL = (
    '<p class="warning">External edition: values and counts of the original that the releases do not show are left '
    "out, such as groups, answers to queries and rare categories. The holder has the internal edition.</p>"
)
_WIDE, _LONG = 4, 28
_SHOWN = ("identity", "identity_low", "identity_high", "attribute", "meets_threshold")


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
        """A table; on a phone one of many columns becomes a card a row."""
        drawn = [list(row) for row in rows]
        right = [any(_is_number(row[k]) for row in drawn) for k in range(len(head))]
        titles = "".join(f"<th{' class=n' if n else ''}>{escape(t)}</th>" for t, n in zip(head, right, strict=True))
        cells = "".join(
            f"<tr>{''.join(_cell(*cell) for cell in zip(row, head, right, strict=True))}</tr>" for row in drawn
        )
        kind = ' class="stack"' if len(head) >= _WIDE else ""
        self.add(f'<div class="wide"><table{kind}><thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table></div>')


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: object, label: str, right: bool) -> str:
    told = f' data-label="{escape(label)}"'
    if isinstance(value, bool):
        mark, word = ("good", "\N{CHECK MARK} yes") if value else ("bad", "\N{BALLOT X} no")
        return f'<td{told} class="{mark}">{word}</td>'
    if value is None:
        return f"<td{told}{' class=n' if right else ''}>\N{EN DASH}</td>"
    if _is_number(value):
        return f"<td{told} class=n>{number(value)}</td>"
    text = str(value)
    long = " class=long" if len(text) > _LONG and " " in text else ""
    return f"<td{told}{long}>{escape(text)}</td>"


def page(report: Findings, evidence: PageEvidence, edition: Edition = "internal") -> str:
    """The report as HTML text.

    Args:
        report: what was measured for the charts.
        evidence: what was measured for the decision.
        edition: 'external' leaves out what tells values or counts of the original that no release does.
    """
    made = _Page()
    sections = Sections(evidence, edition, made.add, made.table)
    made.add(f"<h1>Releases of {escape(report.plan.original)}</h1>")
    made.add(_INTERNAL if edition == "internal" else _EXTERNAL)
    _overview(made, report, evidence, edition)
    sections.decision()
    made.add("<h2>Risk</h2>")
    made.figures(
        [
            ("Finding somebody's row", charts.risk_over_knowledge(report, "identity")),
            ("Learning the sensitive value", charts.risk_over_knowledge(report, "attribute")),
        ]
    )
    sections.risk()
    made.add("<h2>Promises</h2>")
    sections.promise()
    made.add("<h2>Utility</h2>")
    rounded = edition == "external"
    made.figures(
        [
            ("Query error", charts.query_errors(report, rounded=rounded)),
            ("Information loss by column", charts.losses(report)),
        ]
    )
    sections.utility()
    sections.provenance()
    for release, known in zip(report.releases, evidence.releases, strict=True) if edition == "internal" else ():
        _release(made, report, release, known)
        sections.reasons(known.missing)
    if edition == "external":
        sections.reasons({what: why for known in evidence.releases for what, why in known.missing.items()})
    # "</script" would end the element wherever a value held it, "<!--<script" would keep it from ending
    data = json.dumps(made.charts).replace("<", "\\u003c")
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Releases of {escape(report.plan.original)}</title><style>{CSS}</style></head>\n"
        f"<body>{''.join(made.body)}\n<script>{program}</script>\n"
        f"<script>const CHARTS = {data};\n{DRAW}</script></body></html>\n"
    )


def _overview(made: _Page, report: Findings, evidence: PageEvidence, edition: Edition) -> None:
    plan = report.plan
    alone = f" {report.uniques:,} rows are alone with their quasi-identifiers in the original."
    made.add(
        f"<p>{report.rows:,} rows; quasi-identifiers {escape(', '.join(report.qi))}; sensitive "
        f"{escape(', '.join(report.sensitive) or 'none labelled')}.{alone if edition == 'internal' else ''}</p>"
    )
    limit = f"within the limit of {number(evidence.context.threshold)}"
    head = [
        "release",
        "rows",
        "k",
        "frequency l",
        "identity",
        "95%",
        limit,
        "attribute",
        "information loss",
        "query error",
    ]
    made.table(head, map(_summary, report.releases, evidence.releases))
    made.add(
        f'<p class="note">k and l: of the smallest and least diverse set of rows with equal published '
        "quasi-identifiers; a release of drawn values promises neither. identity and attribute: how often the "
        "strongest attacker of linkage_risk, who knows all quasi-identifiers, points at the right row and names the "
        f"sensitive value, over {plan.targets:,} people. query error: mean of {plan.queries:,} COUNT queries over "
        f"quasi-identifiers and the sensitive column, the same for each release. A dash: not measured, reasons "
        "below.</p>"
    )
    made.figures([("Risk and utility", charts.risk_utility_map(report))])


def _summary(release: Measured, known: ReleaseEvidence) -> list[object]:
    risk = known.facts["risk"][0] if known.facts["risk"] else dict.fromkeys(_SHOWN)
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


def _release(made: _Page, report: Findings, release: Measured, known: ReleaseEvidence) -> None:
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
            ("Class sizes", charts.class_sizes(report, release)),
            ("Change of correlation", charts.correlation_change(report, release)),
            *((f"Counts by {name}", charts.marginal(report, release, name)) for name in report.qi),
        ]
    )
