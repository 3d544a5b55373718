"""What a report contains: the figures on an original and its releases, and the reasons of those that are missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import duckdb

from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.model import progress
from duckdb_anon.model.errors import without_code
from duckdb_anon.model.release_comment import Description
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


@dataclass
class Findings:
    """The original and its releases; `facts` and `missing` are those of the original."""

    plan: Plan
    context: HoldersContext
    rows: int
    sha256: str
    qi: list[str]
    sensitive: list[str]
    roles: Rows = field(default_factory=list)
    facts: dict[str, Rows] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    releases: list[Measured] = field(default_factory=list)


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


NOT_PROMISED = (
    "Columns that are not labelled quasi are assumed to be unknown to an attacker. Sensitive and insensitive columns "
    "are released unchanged, and a rare value in one of them can identify its holder.",
    "Treatments alone promise nothing about individuals. Intervals between shifted dates of an individual are exact.",
    "The number of rows of an individual in a table without quasi-identifiers is not bounded.",
    "Individuals with one known record may have the same sensitive value, unless the plan says l.",
    "Other releases about the same individuals add up with this one.",
)  # fmt: skip


@dataclass(frozen=True)
class DatabaseFindings:
    """The facts of one release of a database."""

    name: str  # the file or schema that was written
    made: str  # the day
    version: str  # of the package
    individuals: int  # number of individuals of the original
    linked: bool  # whether the released tables join
    limit: float | None  # largest identity that the plan allows; None where it says none
    tables: Rows  # one row for each table
    columns: Rows  # one row for each column of the originals
    guarantees: Rows  # each promise, and what was counted on the finished tables
    risks: Rows  # re-identification on the join by what an attacker knows; empty where the tables do not join
    lost: Rows  # rows that were dropped, with reasons
    provenance: Mapping[str, str]  # how the release was made

    def as_json(self) -> str:
        """The facts for machines."""
        return json.dumps({**asdict(self), "not_promised": NOT_PROMISED}, indent=2) + "\n"
