"""The evidence as sections of the page: question by question, the releases side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from duckdb_anon.report.evidence import PageEvidence, ReleaseEvidence
from duckdb_anon.report.redaction import NOT_COVERED, Edition, reasons, roles_of, shown, shown_check
from duckdb_anon.report.release_context import TEXTS

Table = Callable[[Sequence[str], Sequence[Sequence[object]]], None]
_SAFE = {
    "removed": "\N{CHECK MARK} removed",
    "not in the table": "\N{CHECK MARK} not in the table",
    "in the release, coarser": "\N{BALLOT X} in it, coarser",
    "in the release, as it is": "\N{BALLOT X} in it, as it is",
}


@dataclass(frozen=True)
class Sections:
    """Where sections go: `add` takes HTML, `table` the head and the rows of a table."""

    evidence: PageEvidence
    edition: Edition
    add: Callable[[str], None]
    table: Table

    def decision(self) -> None:
        """What the holder says, and what was checked."""
        context = self.evidence.context
        self.add("<h2>The decision</h2>")
        if context.title:
            self.add(f"<p><strong>{escape(context.title)}</strong></p>")
        said = [[name.replace("_", " "), getattr(context, name) or "not given"] for name in TEXTS]
        limit = [["largest acceptable risk", f"{context.threshold:g} (EMA policy 0070: 0.09)"]]
        self.table(["asked", "said"], said + limit)
        for release in self.evidence.releases:
            if release.check.startswith("none"):
                told = escape(shown_check(release, self.edition))
                self.add(f'<p class="warning">{escape(release.name)}, check release: {told}</p>')

    def risk(self) -> None:
        """Risk before and after, by subgroup, by WP29, in the population."""
        before = self.evidence.facts["risk"] if self.edition == "internal" else []
        rows = [["the original", *_risk_cells(row)] for row in before]
        rows += [[release.name, *_risk_cells(row)] for release, row in self._across("risk")]
        if rows:
            self.add("<h3>Risk before and after, by the strongest attacker</h3>")
            head = ["table", "identity", "95%", "attribute", "baseline", "advantage", "within the limit", "by"]
            self.table(head, rows)
        groups = [
            [release.name, row["column"], row["value"], row["people"], row["identity"],
             interval(row["identity_low"], row["identity_high"]), row["attribute"], row["advantage"]]
            for release, row in self._across("subgroups")
        ]  # fmt: skip
        if groups:
            self.add("<h3>Risk by subgroup</h3>")
            self.table(["release", "column", "group", "people", "identity", "95%", "attribute", "advantage"], groups)
        wp29 = [
            [release.name, str(row["criterion"]).replace("_", " "), row["risk"],
             interval(row["risk_low"], row["risk_high"]), row["baseline"], row["attacks"], row["note"]]
            for release, row in self._across("wp29")
        ]  # fmt: skip
        if wp29:
            self.add("<h3>WP29's three criteria: singling out, linkability, inference</h3>")
            self.table(["release", "criterion", "risk", "95%", "baseline", "attacks", "note"], wp29)
        population = [["the original", row["figure"], row["value"]] for row in self._own("population")]
        population += [[release.name, row["figure"], row["value"]] for release, row in self._across("population")]
        if population:
            self.add("<h3>Population risk</h3>")
            self.table(["table", "figure", "value"], population)

    def promise(self) -> None:
        """The promise checked again, Safe Harbor, columns, and what nothing here covers."""
        self.add("<h3>The promise, checked once more on the released table by other code</h3>")
        rows = [[release.name, *row.values()] for release, row in self._across("guarantee")]
        self.table(["release", "promise", "found", "holds", "checked by"], rows)
        lines = "".join(f"<li>{line}</li>" for line in NOT_COVERED)
        self.add(f"<h3>What no promise here covers</h3><ul>{lines}</ul>")
        self.add("<h3>HIPAA Safe Harbor: the 18 identifiers</h3>")
        states = [
            {row["identifier"]: row for row in release.facts["safe_harbor"]} for release in self.evidence.releases
        ]
        if states:
            self.table(
                ["identifier", "columns", *(release.name for release in self.evidence.releases)],
                [
                    [item, row["columns"], *(_SAFE[of[item]["state"]] for of in states)]
                    for item, row in states[0].items()
                ],
            )
        self.add("<h3>Columns and their roles</h3>")
        roles = roles_of(self.evidence, self.edition)
        if roles:
            self.table([name.replace("_", " ") for name in roles[0]], [list(row.values()) for row in roles])

    def utility(self) -> None:
        """NIST's measures, the analyst's queries, impossible combinations, suppression."""
        measures = list(dict.fromkeys(row["measure"] for _, row in self._across("utility")))
        if measures:
            self.add("<h3>By NIST's measures</h3>")
            rows = [
                [release.name, row["measure"], row["value"], row.get("compare")]
                for measure in measures
                for release, row in self._across("utility")
                if row["measure"] == measure
            ]
            self.table(["release", "measure", "value", "to compare"], rows)
        self._queries()
        impossible = [[release.name, *row.values()] for release, row in self._across("impossible")]
        if impossible:
            self.add("<h3>Impossible combinations</h3>")
            self.table(["release", "condition", "original", "release tells", "at least", "at most"], impossible)
        left_out = [[release.name, *row.values()] for release, row in self._across("suppression")]
        if left_out:
            self.add("<h3>Suppression by group</h3>")
            self.table(["release", "column", "group", "original", "released", "left out"], left_out)

    def provenance(self) -> None:
        """By what each release was made, when, with which randomness, and hashes."""
        self.add("<h2>How it was made</h2>")
        if self.edition == "internal":
            self.add(f'<p class="note">SHA-256 of the original\'s rows: <code>{self.evidence.sha256}</code></p>')
        for release in self.evidence.releases:
            said = release.description
            self.add(f"<h3>{escape(release.name)}</h3>")
            made = said.call if said and said.method else "not said by the release"
            drawn = "the system's entropy through ChaCha20; a seed below 2^64 is refused for releases"
            day = f"{said.date or 'day not said'}, duckdb-anon {said.version or 'unknown'}" if said else "not said"
            facts = [
                ["method and parameters", made], ["made on, with", day],
                ["randomness", drawn if said and said.method else "not known"],
                ["rows", f"{release.rows:,}"], ["SHA-256 of its rows", release.sha256],
                ["check release", shown_check(release, self.edition)],
            ]  # fmt: skip
            self.table(["fact", "value"], facts)
        self.reasons(self.evidence.missing, "Not measured for this evidence")

    def reasons(self, missing: Mapping[str, str], title: str = "Not measured") -> None:
        """What could not be measured, and why."""
        if told := reasons(missing, self.edition):
            self.add(f"<h3>{title}</h3>")
            self.table(["what", "why"], [[what, why] for what, why in told.items()])

    def _queries(self) -> None:
        answered = self._across("queries")
        if answered:
            self.add("<h3>The analyst's own queries, with bounds</h3>")
        for query in dict.fromkeys(row["query"] for _, row in answered):
            self.add(f"<pre>{escape(query)}</pre>")
            self.table(
                ["group", "measure", "release", "original", "estimate", "bounds", "relative error"],
                [[_keys(row["keys"]), row["measure"], release.name, row["original"], row["estimate"],
                  interval(row["low"], row["high"]), row["relative_error"]]
                 for release, row in sorted(
                     (pair for pair in answered if pair[1]["query"] == query),
                     key=lambda pair: (_keys(pair[1]["keys"]), str(pair[1]["measure"])))],
            )  # fmt: skip

    def _across(self, name: str) -> list[tuple[ReleaseEvidence, Mapping[str, Any]]]:
        return [
            (release, row) for release in self.evidence.releases for row in shown(self.edition, name, release.facts)
        ]

    def _own(self, name: str) -> list[dict[str, Any]]:
        return shown(self.edition, name, self.evidence.facts)


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
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        try:
            value = float(str(value))
        except ValueError:
            return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return "0" if abs(value) < 1e-9 else f"{value:.3g}"


def _risk_cells(row: Mapping[str, Any]) -> list[object]:
    by = "; ".join(part for part in str(row["note"]).split("; ") if not part.startswith("not asked"))
    within = row["meets_threshold"]
    return [
        row["identity"], interval(row["identity_low"], row["identity_high"]), row["attribute"], row["baseline"],
        row["advantage"], within, by,
    ]  # fmt: skip


def _keys(keys: Any) -> str:
    """The group a row of an answer is of."""
    told = dict(keys or {})
    return ", ".join("NULL" if value is None else str(value) for value in told.values()) or "(all)"
