"""What a page is made of: tables, notes and lines of controls as HTML, in which every value is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import altair as alt
import pandas as pd

from duckdb_anon.report.figures import percent

_STYLE = (files("duckdb_anon.workbench") / "page.css").read_text(encoding="utf-8")
HEAD = f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'


def esc(value: object) -> str:
    """A value as text of a page."""
    return html.escape(str(value))


def block(*parts: str) -> str:
    """Parts of a page, one below the other."""
    return f'<div class="anon">{"".join(parts)}</div>'


def table(rows: Sequence[Mapping[str, Any]], caption: str, columns: Mapping[str, str] | None = None) -> str:
    """A table; `columns` gives those that it has, with their titles, and says that its truth values are verdicts."""
    if not rows:
        return ""
    verdicts, columns = columns is not None, columns or {name: name for name in rows[0]}
    head = "".join(f'<th scope="col">{esc(title)}</th>' for title in columns.values())
    body = "".join("<tr>" + "".join(_cell(row[name], verdicts) for name in columns) + "</tr>" for row in rows)
    # what scrolls can be reached by the keyboard
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{esc(caption)}"><table>'
        f"<caption class='note'>{esc(caption)}</caption><thead><tr>{head}</tr></thead><tbody>"
        f"{body}</tbody></table></div>"
    )


def _cell(value: object, verdict: bool) -> str:
    if value is None:
        return "<td>\N{EN DASH}</td>"
    if isinstance(value, bool) and verdict:
        return '<td class="good">\N{CHECK MARK} yes</td>' if value else '<td class="bad">\N{BALLOT X} no</td>'
    if isinstance(value, int | float) and not isinstance(value, bool):
        large = isinstance(value, int) or abs(value) >= 1000
        return f'<td class="n">{value:,.0f}</td>' if large else f'<td class="n">{value:.4g}</td>'
    return f"<td>{esc(_text(value))}</td>"


def _text(value: object) -> str:
    """A value as a reader wants it: intervals, sets and counts of a release too."""
    if isinstance(value, Mapping):
        if set(value) == {"lower", "upper"}:
            ends = [_text(end) for end in value.values() if end is not None]
            return " to ".join(dict.fromkeys(ends)) or "any"
        return ", ".join(f"{_text(key)}: {_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(" 00:00:00")


def line(name: object, facts: Iterable[str], *controls: object) -> str:
    """One line of a form: a name, facts on it (HTML), and controls."""
    what = "<br>".join(facts)
    return (
        f'<div class="line" role="group" aria-label="{esc(name)}"><div><strong>{esc(name)}</strong></div>'
        f"<div>{what}</div><div>{''.join(map(format, controls))}</div></div>"
    )


def note(text: str) -> str:
    """A remark; `text` is HTML."""
    return f'<p class="note">{text}</p>'


def warning(text: object) -> str:
    """What a reader must see."""
    return f'<p class="warning" role="alert">{esc(text)}</p>'


def progress(text: str, share: float | None) -> str:
    """How far work in the background has come."""
    done = 0 if share is None else round(100 * share)
    return (
        f'<p role="status">{esc(text)}</p><div class="bar" role="progressbar" aria-label="progress" aria-valuemin="0" '
        f'aria-valuemax="100" aria-valuenow="{done}"><div style="width: {done}%"></div></div>'
    )


def problems(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Facts on the problems of a column."""
    lines = [f"{esc(row['problem'])}: {row['records']:,} records" for row in found]
    lost = sum(row["lost"] for row in found)
    if lost:
        lines.append(f'<span class="bad">the proposed cleaning makes {lost:,} values NULL that it cannot read</span>')
    return lines


def facts_of(row: Mapping[str, Any]) -> list[str]:
    """Facts on the content of a column."""
    alone = f"{percent(row['uniqueness'])} of its values are unique" if row["uniqueness"] else "no value is unique"
    return [
        f"proposed: <strong>{esc(row['role'] or 'none')}</strong>, {esc(row['reason'])}",
        f'<span class="note">{esc(row["looks_like"] or row["type"])}; {row["distinct_values"]:,} values, '
        f"{alone}</span>",
    ]


def uniques(row: Mapping[str, Any] | None) -> str:
    """Records that the chosen quasi-identifiers make unique."""
    if row is None:
        return warning("No column is a quasi-identifier, so no record is protected.")
    return (
        f'<p role="status"><span class="big">{row["sample_uniques"]:,}</span> of {row["rows"]:,} records are unique on '
        "the chosen quasi-identifiers: who knows these columns of an individual finds the record.</p>"
    )


def tree(rows: Sequence[Mapping[str, Any]], why_not: str) -> str:
    """A hierarchy as nested lists, from the root down; of each node the first few."""
    levels = list(rows[0]) if rows else []

    def below(part: Sequence[Mapping[str, Any]], depth: int) -> str:
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in part:
            groups.setdefault(str(row[levels[depth]]), []).append(row)
        items = [
            f"<li>{esc(label)}{below(inside, depth - 1) if depth else ''}</li>"
            for label, inside in list(groups.items())[:3]
        ]
        more = f"<li>and {len(groups) - 3} more</li>" if len(groups) > 3 else ""
        return f"<ul>{''.join(items)}{more}</ul>"

    if not levels:
        return f'<span class="note">No hierarchy: {esc(why_not)}</span>' if why_not else ""
    return f"<details><summary>Proposed hierarchy</summary>{below(rows, len(levels) - 1)}</details>"


def risk_of(row: Mapping[str, Any]) -> float:
    """The risk of a trial: re-identification, or inference beyond that of a model, the larger one."""
    return max(row["identity"] or 0.0, row["advantage"] or 0.0)


def label_of(row: Mapping[str, Any]) -> str:
    """A trial in one line, without its table and roles."""
    arguments = re.sub(r"^FROM \w+\((?:'[^']*'|\"[^\"]*\")(?:, )?|\)$", "", row["call"])
    shown = re.sub(r", (columns|sensitive|categorical|l_except) := (\[\[.*?\]\]|\[.*?\]|'[^']*')", "", arguments)
    error = "not measured" if row["query_error"] is None else percent(row["query_error"])
    return f"{row['method']} {shown}: risk {percent(risk_of(row))}, error of answers {error}"


def measured(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Trials of which risk and error are known."""
    return [row for row in rows if row["query_error"] is not None and row["identity"] is not None]


def points(rows: Sequence[Mapping[str, Any]], limit: float) -> Any:
    """Risk against error of the trials, and the limit."""
    data = pd.DataFrame([
        {"call": row["call"], "method": row["method"], "risk": risk_of(row), "error": row["query_error"],
         "holds": "within the limit" if row["meets_max_risk"] else "above it"} for row in rows
    ])  # fmt: skip
    base = alt.Chart(data, description="Each point is a call of a method: risk and error of answers").encode(
        x=alt.X("risk:Q", title="risk by the strongest attacker", axis=alt.Axis(format="%", tickCount=8)),
        y=alt.Y("error:Q", title="mean relative error of answers", axis=alt.Axis(format="%")),
    )
    drawn = base.mark_point(filled=True, size=140).encode(
        color=alt.Color("method:N", legend=alt.Legend(orient="bottom", columns=3)),
        shape=alt.Shape("holds:N", legend=alt.Legend(orient="bottom", title=None)),
        tooltip=["call", "risk", "error"],
    )
    line_at = alt.Chart(pd.DataFrame({"limit": [limit]})).mark_rule(strokeDash=[4, 4]).encode(x="limit:Q")
    return _fitting(alt.layer(drawn, line_at))


def overlaid(marginals: Sequence[Mapping[str, Any]]) -> Any:
    """Distributions of the original and of the release, laid over each other, a chart a column."""
    charts = []
    by_column: dict[str, list[Mapping[str, Any]]] = {}
    for row in marginals:
        by_column.setdefault(row["column"], []).append(row)
    for column, rows in by_column.items():
        top = sorted(rows, key=lambda row: -row["original"])[:12]
        data = pd.DataFrame([
            {"value": _text(row["value"]), "table": side, "records": row[name]}
            for row in top for side, name in (("original", "original"), ("release", "estimate"))
        ])  # fmt: skip
        chart = alt.Chart(data, title=column, description=f"Records by value of {column}").mark_bar(opacity=0.6)
        charts.append(chart.encode(
            x=alt.X("records:Q", stack=None, title="records"), y=alt.Y("value:N", title=None, sort=None),
            color=alt.Color("table:N", title=None, scale=alt.Scale(range=["#98a1ad", "#1f6391"]),
                            legend=alt.Legend(orient="bottom")),
        ).properties(width=250))  # fmt: skip
    return alt.vconcat(*charts) if charts else None


def _fitting(chart: Any) -> Any:
    return chart.properties(width="container", height=300)


def attacked(rows: Sequence[Mapping[str, Any]], limit: float) -> str:
    """What the strongest attacker finds."""
    lines = []
    for row in rows:
        if row["identity"] is not None:
            lines.append(
                f"The strongest attacker, who knows all quasi-identifiers and the method, finds the records of "
                f"{percent(row['identity'])} of the individuals ({percent(row['identity_low'])} to "
                f"{percent(row['identity_high'])}); the limit is {percent(limit)}."
            )
        if row["attribute"] is not None:
            lines.append(
                f"The attacker names the sensitive value of {percent(row['attribute'])}; {percent(row['baseline'])} "
                "are guessed without the release."
            )
    return said("What an attacker finds", lines or ["How often a record is found was not measured."])


def answers(rows: Sequence[Mapping[str, Any]]) -> str:
    """Questions, answered by the original and by the release."""
    shown = [
        {
            "question": row["query"],
            "group": ", ".join(map(str, (row["keys"] or {}).values()))
            if isinstance(row["keys"], dict)
            else row["keys"],
            **{name: row[name] for name in ("measure", "original", "estimate", "relative_error")},
        }
        for row in rows
    ]
    return table(shown, "Questions, answered by the original and by the release")


def said(title: str, sentences: Iterable[object]) -> str:
    """Sentences under a title."""
    items = "".join(f"<li>{esc(text)}</li>" for text in sentences)
    return f"<h3>{esc(title)}</h3><ul>{items}</ul>" if items else ""


def code(text: str, title: str) -> str:
    """Text to copy."""
    return f'<h3>{esc(title)}</h3><pre tabindex="0" role="region" aria-label="{esc(title)}">{esc(text)}</pre>'


def outcome(done: Mapping[str, Any]) -> str:
    """What became of a release: its checks, and what was verified on the file."""
    checks = [line for line in done["lines"] if "is required" in line]
    if done["code"] != 0:
        return block(warning("Nothing was written: a check does not hold. Choose a stronger point in step 3."),
                     said("Checks", [line for line in checks if "does not hold" in line] or done["lines"]))  # fmt: skip
    verdicts = {"check": "check", "promised": "promised", "measured": "measured", "holds": "holds", "note": "note"}
    return block(
        f'<p class="good" role="status">Written and verified: {esc(done["file"])}. The page of evidence is '
        f"{esc(done['page'])}; it has figures of the original, so do not publish it.</p>",
        said("Checks of the plan", checks),
        *(warning(text) for text in done["warnings"]),
        table([{**row, "promised": (row["promised"] or "")[:12]} for row in done["verified"]], "Verified on the file",
              verdicts),
        said("Re-identified by the strongest attacker", done["risk"]),
    )  # fmt: skip
