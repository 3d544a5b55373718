"""Scores of sliced releases, against plain loops."""

from typing import Any

import numpy as np
import pytest

from duckdb_anon.kernels.attacks.linkage_scores import JoinedCells
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.attacks import JoinedPart, Scores, Scoring

BUCKETS, ROWS, RECORDS = 40, 160, 12
NUMBERS = (7, 3, 5)
PARTS = ([0, 1], [2])


class Release:
    """What `Scores` reads of a sliced release."""

    def __init__(self, rng: np.random.Generator) -> None:
        cuts = np.sort(rng.choice(np.arange(1, ROWS), BUCKETS - 1, replace=False))
        self.start = np.concatenate([[0], cuts, [ROWS]]).astype(np.int64)
        self.size = np.diff(self.start).astype(np.float64)
        self.group_of_unit = np.arange(BUCKETS)
        self.unit_of_row = np.repeat(np.arange(BUCKETS), np.diff(self.start))
        self.cells = [rng.integers(0, n, ROWS).astype(np.int32) for n in NUMBERS]


class Some:
    """What `Scores` reads of targets: a record each, one own row."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.values = np.tile(np.arange(RECORDS, dtype=np.int32)[:, None], 3)
        self.known = rng.random((RECORDS, 3)) < 0.8
        self.start = self.true_start = np.arange(RECORDS + 1)
        self.true_row = rng.integers(0, ROWS, RECORDS)


def parts_of(release: Release) -> list[JoinedPart]:
    found = []
    for columns in PARTS:
        keys = keys_of([release.cells[a] for a in columns])
        cells = np.stack([release.cells[a][keys.first] for a in columns])
        found.append(
            JoinedPart(columns, JoinedCells.of(cells, [NUMBERS[a] for a in columns]), keys.of_row.astype(np.int32))
        )
    return found


def by_hand(release: Release, some: Some, tables: list[Any], skipped: int | None, within_group: bool) -> np.ndarray:
    """Log of the mean of the exponentials, bucket by bucket and part by part."""
    out = np.zeros((RECORDS, BUCKETS))
    for r in range(RECORDS):
        for b in range(BUCKETS):
            rows = range(release.start[b], release.start[b + 1])
            for k, columns in enumerate(PARTS):
                if k != skipped:
                    each = [sum(tables[a][r, release.cells[a][j]] * some.known[r, a] for a in columns) for j in rows]
                    out[r, b] += np.logaddexp.reduce(each) - np.log(len(each))
            if within_group and b != release.unit_of_row[some.true_row[r]]:
                out[r, b] = -np.inf
    return out


@pytest.mark.parametrize("within_group", [False, True])
@pytest.mark.parametrize("spread", [1.0, 40.0, 3000.0])
def test_buckets_score_the_logarithm_of_a_mean_of_exponentials(within_group, spread):
    rng = np.random.default_rng(int(spread))
    release, some = Release(rng), Some(rng)
    tables = [-spread * rng.random((RECORDS, n)).round(1) for n in NUMBERS]
    scoring = Scoring(
        [lambda values, t=t: t[values] for t in tables], share=True, reach=20.0, within_group=within_group
    )
    made: Any = Scores(release, scoring, parts_of(release), some)  # type: ignore[arg-type]
    for part in (-1, 0, 1):
        wanted = by_hand(release, some, tables, None if part < 0 else part, within_group)
        if part >= 0:
            values = [tables[a][:, release.cells[a]] * some.known[:, [a]] for a in PARTS[part]]
            wanted = np.repeat(wanted, np.diff(release.start), axis=1) + sum(values)
        assert np.allclose(made.voters(part), wanted, rtol=0, atol=1e-9)
