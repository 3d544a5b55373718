"""The tables of the report, as an edition of the page contains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from duckdb_anon.report.evidence import tried
from duckdb_anon.report.findings import RARE, Findings, Measured, Row, Rows
from duckdb_anon.report.redaction import Edition, check_text, reasons, roles_of, visible_rows
from duckdb_anon.report.release_context import TEXTS

_RANDOMNESS = "entropy of the operating system, expanded by ChaCha20; releases accept no seed below 2^64"
Show = str | Callable[[Row], object]


@dataclass(frozen=True)
class Table:
    """A table of the page; columns that hold a number are aligned to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds a number."""
        return [any(_is_number(row[column]) for row in self.rows) for column in range(len(self.head))]


def _interval(figure: str) -> Show:
    return lambda row: interval(row[f"{figure}_low"], row[f"{figure}_high"])


_OF_BOTH: dict[str, dict[str, Show]] = {
    "risk": {
        "identity": "identity", "95% interval": _interval("identity"), "attribute": "attribute",
        "baseline": "baseline", "advantage": "advantage", "within the limit": "meets_threshold",
        "strongest attackers": lambda row: "; ".join(tried(str(row["note"]))),
    },
    "classes": {
        "prosecutor and journalist risk": "prosecutor", "marketer risk": "marketer",
        "records above the limit": "above_threshold", "unique records": "sample_uniques",
        f"records in classes of fewer than {RARE}": "small_cells",
    },
    "population": {"figure": "figure", "value": "value"},
}  # fmt: skip
"""Facts of the original and of each release: titles of the columns, and what they show of a row."""
_OF_RELEASES: dict[str, dict[str, Show]] = {
    "subgroups": {
        "column": "column", "group": "value", "individuals": "people", "identity": "identity",
        "95% interval": _interval("identity"), "attribute": "attribute", "advantage": "advantage",
    },
    "wp29": {
        "criterion": lambda row: str(row["criterion"]).replace("_", " "), "risk": "risk",
        "95% interval": _interval("risk"), "verdict": "verdict", "baseline": "baseline", "attacks": "attacks",
        "note": "note",
    },
    "guarantee": {"guarantee": "promise", "measured": "found", "holds": "holds", "checked by": "checked by"},
    "utility": {"measure": "measure", "value": "value", "for comparison": "compare"},
    "impossible": {
        "condition": "condition", "original": "original", "estimate": "estimate", "at least": "low", "at most": "high",
    },
    "suppression": {
        "column": "column_name", "group": "value", "original": "original", "released": "released",
        "suppressed": "left_out",
    },
}  # fmt: skip
"""Facts of each release."""
_ANSWERS: dict[str, Show] = {
    "group": lambda row: _group(row["keys"]), "measure": "measure", "release": "release", "original": "original",
    "estimate": "estimate", "bounds": lambda row: interval(row["low"], row["high"]), "relative error": "relative_error",
}  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """The findings as an edition of the page contains them."""

    found: Findings
    edition: Edition

    def across(self, name: str) -> Rows:
        """Rows of a fact, each with the release it belongs to."""
        return [
            {**row, "release": release.name}
            for release in self.found.releases
            for row in visible_rows(self.edition, name, release.facts)
        ]

    def tables(self) -> dict[str, Table]:
        """Every table of the page but those of the single releases."""
        tables = {name: _table(columns, self._ordered(name), "release") for name, columns in _OF_RELEASES.items()}
        for name, columns in _OF_BOTH.items():
            of_original = visible_rows(self.edition, name, self.found.facts) if self._has_original(name) else []
            rows = [{**row, "release": "the original"} for row in of_original]
            tables[name] = _table(columns, [*rows, *self.across(name)], "table")
        missing = {what: why for release in self.found.releases for what, why in release.missing.items()}
        tables["overview"] = self._overview()
        tables["decision"] = self._decision()
        tables["safe_harbor"] = self._safe_harbor()
        tables["roles"] = table_of(roles_of(self.found, self.edition))
        tables["missing"] = self.missing(self.found.missing)
        tables["missing_of_releases"] = self.missing(missing)
        return tables

    def _ordered(self, name: str) -> Rows:
        """Rows of a fact; for utility the releases stand together, measure by measure."""
        rows = self.across(name)
        if name != "utility":
            return rows
        order = list(dict.fromkeys(row["measure"] for row in rows))
        return sorted(rows, key=lambda row: order.index(row["measure"]))

    def _has_original(self, name: str) -> bool:
        return self.edition == "internal" or name == "population"

    def missing(self, missing: Mapping[str, str]) -> Table:
        """What could not be measured, and why."""
        return Table(("what", "why"), list(reasons(missing, self.edition).items()))

    def answers(self) -> list[tuple[str, Table]]:
        """Each query of the analyst with the answers of all releases."""
        by_query: dict[str, Rows] = {}
        for row in self.across("queries"):
            by_query.setdefault(row["query"], []).append(row)
        return [
            (query, _table(_ANSWERS, sorted(rows, key=lambda row: (_group(row["keys"]), str(row["measure"])))))
            for query, rows in by_query.items()
        ]

    def provenance(self, release: Measured) -> Table:
        """Method, date, randomness and hash of a release."""
        description = release.description
        recorded = description is not None and bool(description.method)
        made = (
            f"{description.date or 'date not recorded'}, duckdb-anon {description.version or 'unknown'}"
            if description
            else "not recorded"
        )
        rows = {
            "method and parameters": description.call if description and recorded else "not recorded in the release",
            "made on, with": made,
            "randomness": _RANDOMNESS if recorded else "unknown",
            "rows": f"{release.rows:,}",
            "SHA-256 of its rows": release.sha256,
            "check release": check_text(release, self.edition),
        }
        return Table(("fact", "value"), list(rows.items()))

    def _overview(self) -> Table:
        """One row per release with its main figures."""
        limit = f"within the limit of {number(self.found.context.threshold)}"
        rows = []
        for release in self.found.releases:
            risk = next(iter(release.facts["risk"]), {})
            sizes = [row["size"] for row in release.charts["class_sizes"]]
            frequency = [row["value"] for row in release.charts["diversity"] if row["measure"] == "frequency"]
            loss = [row["iloss"] for row in release.charts["loss"] if row["attribute"] == "(all)"]
            rows.append({
                "release": release.name, "rows": release.rows, "k": min(sizes, default=None),
                "frequency l": next(iter(frequency), None), "identity": risk.get("identity"),
                "95% interval": interval(risk.get("identity_low"), risk.get("identity_high")),
                limit: risk.get("meets_threshold"), "attribute": risk.get("attribute"),
                "information loss": next(iter(loss), None),
                "query error": release.mean_error,
            })  # fmt: skip
        return table_of(rows)

    def _decision(self) -> Table:
        context = self.found.context
        stated = [[name.replace("_", " "), getattr(context, name) or "not given"] for name in TEXTS]
        limit = ["largest acceptable risk", f"{context.threshold:g} (EMA policy 0070: 0.09)"]
        return Table(("item", "statement of the data holder"), [*stated, limit])

    def _safe_harbor(self) -> Table:
        """A row an identifier, with what each release does with its columns."""
        rows: dict[str, Row] = {}
        for row in self.across("safe_harbor"):
            item = rows.setdefault(row["identifier"], {"identifier": row["identifier"], "columns": row["columns"]})
            item[row["release"]] = row["state"]
        return table_of(list(rows.values()))


def table_of(rows: Rows) -> Table:
    """Rows of the same keys as a table.

    >>> table_of([{"safe_harbor": 1}])
    Table(head=['safe harbor'], rows=[[1]])
    """
    head = [name.replace("_", " ") for name in rows[0]] if rows else []
    return Table(head, [list(row.values()) for row in rows])


def _table(columns: Mapping[str, Show], rows: Rows, first: str = "") -> Table:
    """A table of what `columns` show of rows; with `first`, the release they belong to stands in front."""
    columns = {**({first: "release"} if first else {}), **columns}
    cells = [[row[show] if isinstance(show, str) else show(row) for show in columns.values()] for row in rows]
    return Table(list(columns), cells)


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
    if not _is_number(value):
        try:
            value = float(str(value))
        except ValueError:
            return str(value)
    amount = float(str(value))
    if isinstance(value, int) or abs(amount) >= 1000:
        return f"{amount:,.0f}"
    return "0" if abs(amount) < 1e-9 else f"{amount:.3g}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _group(keys: Mapping[str, object] | None) -> str:
    """The group a row of an answer belongs to."""
    return ", ".join("NULL" if value is None else str(value) for value in (keys or {}).values()) or "(all)"
