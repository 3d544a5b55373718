"""How values move in a release whose method is unknown, learnt by a bootstrap of the release.

Records that a resample with replacement leaves out stand for individuals, and the nearest resampled record (Gower's
distance) for what a method makes of them (Efron 1979): columns in which near records differ say little. Nothing is
learnt of the original.
Cost: `MOST_LEFT_OUT` times `MOST_RESAMPLED` times columns.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.attacks.record_matching import nearest_rows
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, Replay
from duckdb_anon.model.progress import stop_flag

MOST_LEFT_OUT, MOST_RESAMPLED = 4_000, 20_000


def bootstrapped(release: PublishedRecords, rng: np.random.Generator) -> Replay | None:
    """Pairs of a record and its nearest in a resample, as if a call had made the second of the first.

    Returns:
        None where the resample leaves out no record.
    """
    rows = len(release.unit_of_row)
    resampled = np.unique(rng.integers(0, rows, rows))
    left_out = np.setdiff1d(np.arange(rows), resampled)
    if not len(left_out):
        return None
    resampled = rng.permutation(resampled)[:MOST_RESAMPLED]
    left_out = rng.permutation(left_out)[:MOST_LEFT_OUT]
    codes = np.stack([cells.codes[cells.of_row] for cells in release.columns])
    values = np.stack([cells.middles()[cells.of_row] for cells in release.columns])
    domains = [cells.domain for cells in release.columns]
    nearest = np.zeros((len(left_out), 1), dtype=np.int64)
    nearest_rows(
        np.ascontiguousarray(values[:, left_out]), np.ascontiguousarray(values[:, resampled]),
        np.array([domain.kind != "ordered" for domain in domains]),
        np.array([domain.span or 1.0 for domain in domains]),
        np.arange(len(resampled)), nearest, stop_flag(),
    )  # fmt: skip
    return Replay(codes[:, left_out], codes[:, resampled[nearest[:, 0]]], None, of_call=False)
