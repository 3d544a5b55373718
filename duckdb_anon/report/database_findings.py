"""What the page on a release of several tables contains: `database.evidence` collects it, `html.page` writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from duckdb_anon.report.findings import Rows

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
