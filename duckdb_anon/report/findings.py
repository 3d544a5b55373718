"""What a report contains: the figures on an original and its releases, and the reasons of those that are missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import duckdb

from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.model import progress
from duckdb_anon.model.errors import without_code
from duckdb_anon.model.release_comment import Description
from duckdb_anon.report.checklist import Figure, answers
from duckdb_anon.report.linked_release import Check
from duckdb_anon.report.release_context import HoldersContext

Row = dict[str, Any]
Rows = list[Row]
P_MATCH = (0.4, 0.7, 1.0)
"""Probabilities that an attacker knows a quasi-identifier."""
RARE = 10
"""Groups of fewer individuals are small cells; they are left out of the tables of suppression and of subgroups."""


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    original: str  # the original's name, with roles in its comments
    releases: tuple[str, ...]  # names of its releases
    targets: int = 2000  # individuals an attacker is tried on
    queries: int = 300  # queries of the workload
    seed: int = 1  # makes targets and queries repeatable, and the same for every release
    few: int = 0  # targets of attacks that no limit judges, whose cost is targets times rows; set when it is measured


@dataclass
class Measured:
    """One release."""

    name: str
    rows: int
    columns: dict[str, str]
    comment: str
    description: Description | None
    sha256: str
    check: Check
    charts: dict[str, Rows] = field(default_factory=dict)  # what the internal edition draws and lists, by name
    # what every edition contains, by name; an edition leaves some out (`redaction`)
    facts: dict[str, Rows] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # what could not be measured, and why

    @property
    def mean_error(self) -> float | None:
        """Mean relative error of the queries of the workload."""
        errors = [row["error"] for row in self.charts["errors"]]
        return sum(errors) / len(errors) if errors else None


@dataclass(kw_only=True)
class Evidence:
    """What every page contains, of a release of one table or of a database."""

    title: str
    context: HoldersContext
    not_covered: tuple[str, ...]  # what the guarantees say nothing about
    columns: Rows = field(default_factory=list)  # columns of the originals, their labels and what is done to them
    unchanged: Rows = field(default_factory=list)  # columns that leave as they are, with the records that they identify
    figures: dict[str, Figure] = field(default_factory=dict)  # answers to the checklist, by name
    unanswered: dict[str, str] = field(default_factory=dict)  # why other figures are missing
    facts: dict[str, Rows] = field(default_factory=dict)  # tables of the page, by name

    @property
    def checklist(self) -> list[dict[str, str]]:
        """One row for each point of the guidelines, the open ones first."""
        context = self.context
        return answers(context.checklist, self.figures, self.unanswered, context.statements)

    @property
    def warnings(self) -> list[str]:
        """What a reader must see before anything else: labels that are weaker than the proposed ones."""
        return [row["warning"] for row in self.columns if row.get("warning") and not row.get("accepted because")]


@dataclass(kw_only=True)
class Findings(Evidence):
    """The original and its releases; `facts` and `missing` are those of the original."""

    plan: Plan
    rows: int
    sha256: str
    qi: list[str]
    sensitive: list[str]
    missing: dict[str, str] = field(default_factory=dict)
    releases: list[Measured] = field(default_factory=list)


@dataclass(kw_only=True)
class DatabaseFindings(Evidence):
    """One release of a database; `facts` are tables, lost, guarantees, risks and provenance."""

    individuals: int  # number of individuals of the original
    smallest: int  # least number of released individuals with one known record
    linked: bool  # whether the released tables join
    permuted: bool = False  # whether known values are permuted in groups, not generalized
    limit: float | None  # largest identity that the plan allows; None where it says none

    @property
    def shared(self) -> str:
        """What so many individuals share."""
        if self.permuted:
            return "Known values are permuted in groups of"
        return "Every known record of the release is that of"

    @property
    def worst(self) -> Row:
        """The largest risk by attackers who know what is labelled quasi; those of other attackers are not judged."""
        return max((row for row in self.facts["risks"] if row["judged"]), key=lambda row: row["high"])

    @property
    def beyond(self) -> Row | None:
        """The largest risk by attackers who know more than that; None where none was measured."""
        return max((r for r in self.facts["risks"] if not r["judged"]), key=lambda row: row["high"], default=None)


class QueryRunner:
    """Runs the queries of a report, with their progress and the reasons of those that fail."""

    def __init__(self, con: duckdb.DuckDBPyConnection, total: int) -> None:
        """Expect about `total` queries."""
        self.con, self.total, self.done = con, total, 0
        self.missing: dict[str, str] = {}

    def rows(self, what: str, question: str) -> Rows:
        """Rows of a query; none, and a reason, where it fails."""
        share = min(self.done / self.total, 0.99)
        self.done += 1
        try:
            with progress.running(f"report {share:.0%}"), stoppable():
                cursor = self.con.execute(question)
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except duckdb.Error as error:
            self.missing[what] = without_code(error)
            return []
