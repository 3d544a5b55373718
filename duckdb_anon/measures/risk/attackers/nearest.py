"""Record linkage by distance: the row nearest to what is known, 0 inside a box, else to its nearer end.

Source: Pagliuca and Seri (1999); Domingo-Ferrer and Torra (2001), distance-based record linkage; distances as
Gower (1971).
"""

from __future__ import annotations

from functools import partial

from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.risk.attacks import Attacker
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.scores import Scoring
from duckdb_anon.model.coded_table import CodeArray, FloatArray


def scoring(release: PublishedRecords) -> Scoring:
    """Score minus the sum of distances."""
    return Scoring([partial(_closeness, cells) for cells in release.columns])


def _closeness(cells: PublishedCells, values: CodeArray) -> FloatArray:
    return -cells.distance(values)


NEAREST = Attacker("nearest", "the rows nearest to what is known", scoring)
