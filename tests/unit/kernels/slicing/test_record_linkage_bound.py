"""The general diversity test against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.kernels.slicing import record_linkage_bound
from duckdb_anon.kernels.slicing.record_linkage_bound import record_association
from tests.reference.merging import HOSPITAL_A, HOSPITAL_B, association, hospital
from tests.reference.plain_slices import plain_shares


def _fast(parts: list[np.ndarray], sensitive: np.ndarray, bucket: np.ndarray) -> np.ndarray:
    return record_association(plain_shares(parts, sensitive, bucket), parts)


def test_hospital_buckets_have_the_published_associations() -> None:
    for rows, expected in ((HOSPITAL_A, [0.25] * 4 + [0.5] * 4), (HOSPITAL_B, [0.25] * 8)):
        table = hospital(rows)
        bucket = np.repeat([0, 1], 4)
        age_sex = compact(table.qi[1].codes.astype(np.int64) * 10 + table.qi[2].codes)
        parts = [age_sex, table.qi[0].codes.astype(np.int64), np.zeros(8, dtype=np.int64)]
        assert _fast(parts, table.sensitive[0].codes, bucket) == pytest.approx(expected)


@pytest.mark.parametrize("chunk", [1 << 21, 3])
def test_random_sliced_tables_agree_with_the_definition(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_linkage_bound, "_CHUNK", chunk)
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(1, 25))
        alone = rng.random() < 0.5
        parts = [compact(rng.integers(0, 3, n)) for _ in range(int(rng.integers(1, 3)))]
        parts.append(np.zeros(n, dtype=np.int64) if alone else compact(rng.integers(0, 3, n)))
        sensitive, bucket = compact(rng.integers(0, 4, n)), compact(rng.integers(0, 5, n))
        slow = association([p.tolist() for p in parts], sensitive.tolist(), bucket.tolist())
        assert _fast(parts, sensitive, bucket) == pytest.approx(slow, abs=1e-12)


def test_after_cuts_that_keep_equal_values_together_the_bucket_alone_decides() -> None:
    rng = np.random.default_rng(6)
    table = hospital([HOSPITAL_A[i] for i in rng.integers(0, 8, 60)])
    bucket = partition(table.qi, None, KAnonymity(3))
    assert bucket.max() > 3
    age_sex = compact(table.qi[1].codes.astype(np.int64) * 10 + table.qi[2].codes)
    parts = [age_sex, table.qi[0].codes.astype(np.int64), np.zeros(60, dtype=np.int64)]
    counts = np.zeros((bucket.max() + 1, table.sensitive[0].domain))
    np.add.at(counts, (bucket, table.sensitive[0].codes), 1)
    share = counts.max(axis=1) / counts.sum(axis=1)
    assert _fast(parts, table.sensitive[0].codes, bucket) == pytest.approx(share[bucket])


def test_a_record_nobody_shows_has_no_association() -> None:
    parts = [np.array([0, 1]), np.zeros(2, dtype=np.int64)]
    table = plain_shares(parts, np.array([0, 1]), np.array([0, 1]))
    assert record_association(table, [np.array([5]), np.array([0])]).tolist() == [0.0]
