"""The report as one HTML file, readable offline: what the Jinja2 templates in `templates/` fill in.

Texts, headings, tables and charts stand in the templates, which take the facts and filters of this module. Every value
is escaped by Jinja2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.report.evidence import tried
from duckdb_anon.report.figures import percent, risk_sentence
from duckdb_anon.report.findings import RARE, DatabaseFindings, Evidence, Findings, Row, Rows
from duckdb_anon.report.html import charts
from duckdb_anon.report.redaction import Edition

_RISK = ("identity", "identity_low", "identity_high", "attribute", "meets_threshold")


def page(found: Evidence, facts: str, edition: Edition = "internal") -> str:
    """A page as HTML text, of the findings that an edition contains and their JSON, whose digest is signed."""
    signed = hashlib.sha256(facts.encode()).hexdigest()
    given = {
        "signed": signed,
        "found": found,
        "context": found.context,
        "edition": edition,
        "internal": edition == "internal",
    }
    if isinstance(found, DatabaseFindings):
        by_table: dict[str, Rows] = {}
        for row in found.columns:
            by_table.setdefault(row["table"], []).append({key: row[key] for key in row if key != "table"})
        return _rendered("database.html", columns=by_table, **given)
    if not isinstance(found, Findings):
        raise TypeError(type(found).__name__)
    return _rendered(
        "page.html",
        plan=found.plan, facts=Facts(found), short=edition == "short", row_id=SOURCE.word, rare=RARE,
        linked=[release.name for release in found.releases if any(map(SOURCE.stands_for, release.columns))],
        missing={what: why for release in found.releases for what, why in release.missing.items()},
        **given,
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
        "number": number, "count": "{:,}".format, "percent": percent, "columns": columns_of,
        "to": interval, "listed": listed, "tried": tried, "shown": shown, "draw": draw,
    }  # fmt: skip
    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    return environment.get_template(template).render(
        given, charts=charts, specs=specs, risk_sentence=risk_sentence,
        program=Markup(program),  # noqa: S704 - Vega's own program
    )  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """The findings across releases; a table is a list of its rows."""

    found: Findings

    def across(self, name: str) -> Rows:
        """Rows of a fact of the original and of each release, with the table they belong to."""
        of_original = [{**row, "release": "the original"} for row in self.found.facts.get(name, [])]
        releases = self.found.releases
        return of_original + [{**row, "release": r.name} for r in releases for row in r.facts.get(name, [])]

    def utility(self) -> Rows:
        """Measures of utility, releases side by side."""
        rows = self.across("utility")
        order = list(dict.fromkeys(row["measure"] for row in rows))
        return sorted(rows, key=lambda row: order.index(row["measure"]))

    def safe_harbor(self) -> Rows:
        """What each release does with each identifier."""
        of_identifier: dict[str, Row] = {}
        for row in self.across("safe_harbor"):
            item = of_identifier.setdefault(row["identifier"], {name: row[name] for name in ("identifier", "columns")})
            item[row["release"]] = row["state"]
        return list(of_identifier.values())

    def answers(self) -> dict[str, Rows]:
        """The answers of all releases to each query of the analyst, the groups of an answer one after the other."""
        by_query: dict[str, Rows] = {}
        for row in self.across("queries"):
            by_query.setdefault(row["query"], []).append({**row, "group": _group(row["keys"])})
        return {
            query: sorted(rows, key=lambda row: (row["group"], str(row["measure"]))) for query, rows in by_query.items()
        }

    def overview(self) -> Rows:
        """The main figures of each release."""
        rows = []
        for release in self.found.releases:
            charts = release.charts
            risk = next(iter(release.facts["risk"]), dict.fromkeys(_RISK))
            frequency = (row["value"] for row in charts["diversity"] if row["measure"] == "frequency")
            loss = (row["iloss"] for row in charts["loss"] if row["attribute"] == "(all)")
            rows.append({
                "release": release.name, "rows": release.rows, **{name: risk[name] for name in _RISK},
                "k": min((row["size"] for row in charts["class_sizes"]), default=None),
                "frequency": next(frequency, None), "loss": next(loss, None), "error": release.mean_error,
            })  # fmt: skip
        return rows


def listed(facts: Mapping[str, object], name: str, value: str) -> Rows:
    """A table of two columns."""
    return [{name: key, value: fact} for key, fact in facts.items()]


def columns_of(rows: Rows) -> list[tuple[str, bool]]:
    """Title of each column of a table, and whether some row has a number there: those are aligned to the right.

    >>> columns_of([{"safe_harbor": 1}])
    [('safe harbor', True)]
    """

    def has_number(name: str) -> bool:
        return any(isinstance(row[name], (int, float)) and not isinstance(row[name], bool) for row in rows)

    return [(name.replace("_", " "), has_number(name)) for name in (rows[0] if rows else ())]


def interval(low: object, high: object) -> str | None:
    """Two ends as one text.

    >>> interval(0.04986, 0.0946), interval(993, 1422)
    ('0.0499 to 0.0946', '993 to 1,422')
    """
    if low is None or high is None:
        return None
    return f"{number(low)} to {number(high)}"


def number(value: object) -> str:
    """A number as a reader wants it.

    >>> number(15020.3), number(1e-19), number(0.068936), number(7)
    ('15,020', '0', '0.0689', '7')
    """
    try:
        amount = float(str(value))
    except ValueError:
        return str(value)
    if isinstance(value, int) or abs(amount) >= 1000:
        return f"{amount:,.0f}"
    return "0" if abs(amount) < 1e-9 else f"{amount:.3g}"


def _group(keys: Mapping[str, object] | None) -> str:
    """The group a row of an answer belongs to."""
    return ", ".join("NULL" if value is None else str(value) for value in (keys or {}).values()) or "(all)"
