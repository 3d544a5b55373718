"""The tables of the report, as an edition of the page contains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from duckdb_anon.report.evidence import tried
from duckdb_anon.report.findings import RARE, Findings, Measured, Row, Rows
from duckdb_anon.report.release_context import TEXTS

_RANDOMNESS = "entropy of the operating system, expanded by ChaCha20; releases accept no seed below 2^64"
Show = str | Callable[[Row], object]


def _interval(figure: str) -> Show:
    return lambda row: interval(row[f"{figure}_low"], row[f"{figure}_high"])


_TABLES: dict[str, dict[str, Show]] = {
    "risk": {
        "table": "release", "identity": "identity", "95% interval": _interval("identity"), "attribute": "attribute",
        "baseline": "baseline", "advantage": "advantage", "within the limit": "meets_threshold",
        "strongest attackers": lambda row: "; ".join(tried(str(row["note"]))),
    },
    "classes": {
        "table": "release", "prosecutor and journalist risk": "prosecutor", "marketer risk": "marketer",
        "records above the limit": "above_threshold", "unique records": "sample_uniques",
        f"records in classes of fewer than {RARE}": "small_cells",
    },
    "population": {"table": "release", "figure": "figure", "value": "value"},
    "subgroups": {
        "release": "release", "column": "column", "group": "value", "individuals": "people", "identity": "identity",
        "95% interval": _interval("identity"), "attribute": "attribute", "advantage": "advantage",
    },
    "wp29": {
        "release": "release", "criterion": lambda row: str(row["criterion"]).replace("_", " "), "risk": "risk",
        "95% interval": _interval("risk"), "verdict": "verdict", "baseline": "baseline", "attacks": "attacks",
        "note": "note",
    },
    "guarantee": {
        "release": "release", "guarantee": "promise", "measured": "found", "holds": "holds", "checked by": "checked by",
    },
    "utility": {"release": "release", "measure": "measure", "value": "value", "for comparison": "compare"},
    "impossible": {
        "release": "release", "condition": "condition", "original": "original", "estimate": "estimate",
        "at least": "low", "at most": "high",
    },
    "suppression": {
        "release": "release", "column": "column_name", "group": "value", "original": "original", "released": "released",
        "suppressed": "left_out",
    },
}  # fmt: skip
"""Facts of each release, some of the original too: titles of the columns, and what stands in them of a row."""
_ANSWERS: dict[str, Show] = {
    "group": "group", "measure": "measure", "release": "release", "original": "original",
    "estimate": "estimate", "bounds": lambda row: interval(row["low"], row["high"]), "relative error": "relative_error",
}  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """The findings as the page contains them; a table is a list of its rows by the titles of columns."""

    found: Findings

    def across(self, name: str) -> Rows:
        """Rows of a fact, each with the release it belongs to."""
        return [
            {**row, "release": release.name} for release in self.found.releases for row in release.facts.get(name, [])
        ]

    def tables(self) -> dict[str, Rows]:
        """Every table of the page but those of the single releases."""
        tables = {}
        for name, columns in _TABLES.items():
            of_original = [{**row, "release": "the original"} for row in self.found.facts.get(name, [])]
            tables[name] = _table(columns, [*of_original, *self.across(name)])
        order = list(dict.fromkeys(row["measure"] for row in tables["utility"]))
        tables["utility"].sort(key=lambda row: order.index(row["measure"]))  # releases stand together
        missing = {what: why for release in self.found.releases for what, why in release.missing.items()}
        of_identifier: dict[str, Row] = {}
        for row in self.across("safe_harbor"):
            item = of_identifier.setdefault(row["identifier"], {name: row[name] for name in ("identifier", "columns")})
            item[row["release"]] = row["state"]
        return tables | {
            "overview": self._overview(), "decision": self._decision(), "safe_harbor": list(of_identifier.values()),
            "roles": self.found.roles, "missing": listed(self.found.missing, "what", "why"),
            "missing_of_releases": listed(missing, "what", "why"),
        }  # fmt: skip

    def answers(self) -> list[tuple[str, Rows]]:
        """Each query of the analyst with the answers of all releases."""
        by_query: dict[str, Rows] = {}
        for row in self.across("queries"):
            by_query.setdefault(row["query"], []).append({**row, "group": _group(row["keys"])})
        return [
            (query, _table(_ANSWERS, sorted(rows, key=lambda row: (row["group"], str(row["measure"])))))
            for query, rows in by_query.items()
        ]

    def provenance(self, release: Measured) -> Rows:
        """Method, date, randomness and hash of a release."""
        made, call, randomness = "not recorded", "not recorded in the release", "unknown"
        if release.description:
            about = release.description
            made = f"{about.date or 'date not recorded'}, duckdb-anon {about.version or 'unknown'}"
            if about.method:
                call, randomness = about.call, _RANDOMNESS
        rows = {
            "method and parameters": call, "made on, with": made, "randomness": randomness, "rows": f"{release.rows:,}",
            "SHA-256 of its rows": release.sha256, "check release": release.check.note,
        }  # fmt: skip
        return listed(rows, "fact", "value")

    def _overview(self) -> Rows:
        """One row per release with its main figures."""
        limit = f"within the limit of {number(self.found.context.threshold)}"
        rows = []
        for release in self.found.releases:
            risk = next(iter(release.facts["risk"]), {})
            charts = release.charts
            frequency = (row["value"] for row in charts["diversity"] if row["measure"] == "frequency")
            loss = (row["iloss"] for row in charts["loss"] if row["attribute"] == "(all)")
            rows.append({
                "release": release.name, "rows": release.rows,
                "k": min((row["size"] for row in charts["class_sizes"]), default=None),
                "frequency l": next(frequency, None), "identity": risk.get("identity"),
                "95% interval": interval(risk.get("identity_low"), risk.get("identity_high")),
                limit: risk.get("meets_threshold"), "attribute": risk.get("attribute"),
                "information loss": next(loss, None), "query error": release.mean_error,
            })  # fmt: skip
        return rows

    def _decision(self) -> Rows:
        context = self.found.context
        rows = {name.replace("_", " "): getattr(context, name) or "not given" for name in TEXTS}
        rows["largest acceptable risk"] = f"{context.threshold:g} (EMA policy 0070: 0.09)"
        return listed(rows, "item", "statement of the data holder")


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


def _table(columns: Mapping[str, Show], rows: Rows) -> Rows:
    """A table with the titles of `columns`, and what each of them takes from a row."""
    return [
        {title: row[show] if isinstance(show, str) else show(row) for title, show in columns.items()} for row in rows
    ]


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.0914), percent(0.09), percent(1.0), percent(0.00012)
    ('9.14%', '9%', '100%', '0.012%')
    """
    return f"{100 * share:.3g}%"


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
