"""The attacker of MuCo's paper: a row is a match when everything known is equal, or inside its box, set or bucket.

Source: Li et al. (2020), arXiv 2008.10771, section 5.1. Where nothing matches she picks any row.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.risk.attacks import Attacker
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.scores import Scoring
from duckdb_anon.model.coded_table import CodeArray, FloatArray


def scoring(release: PublishedRecords) -> Scoring:
    """Score 0 for a match, -1 for everything else."""
    return Scoring([partial(_mismatch, cells) for cells in release.columns], floor=-1.0)


def _mismatch(cells: PublishedCells, values: CodeArray) -> FloatArray:
    return np.where(cells.covered(values), 0.0, -1.0)


EXACT = Attacker("exact", "rows that agree with everything known", scoring)
