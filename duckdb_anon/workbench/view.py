"""What a page is made of: tables, notes and lines of controls as HTML, in which every value is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from duckdb_anon.report.figures import percent

_STYLE = (files("duckdb_anon.workbench") / "page.css").read_text(encoding="utf-8")
HEAD = f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'


def esc(value: object) -> str:
    """A value as text of a page."""
    return html.escape(str(value))


def plain(value: object) -> str:
    """A value inside a text that is read as Markdown: no character of it means anything there."""
    return "".join(char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in str(value))


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
        return f'<td class="n">{value:,}</td>' if isinstance(value, int) else f'<td class="n">{value:.4g}</td>'
    return f"<td>{esc(value)}</td>"


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
