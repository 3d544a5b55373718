"""Permutations inside buckets."""

from __future__ import annotations

from collections import Counter

import numpy as np

from duckdb_anon.kernels.slicing.bucket_permutation import bucket_slots, is_bucket_permutation, shuffled_slots


def test_records_stay_in_their_buckets() -> None:
    bucket = np.array([2, 0, 1, 0, 2, 2])
    order = shuffled_slots(bucket, np.random.default_rng(0))
    assert is_bucket_permutation(order, bucket)
    assert bucket[order].tolist() == [0, 0, 1, 2, 2, 2]


def test_every_permutation_of_a_bucket_is_equally_likely() -> None:
    bucket = np.zeros(3, dtype=np.int64)
    rng = np.random.default_rng(1)
    seen = Counter(tuple(shuffled_slots(bucket, rng).tolist()) for _ in range(6000))
    assert len(seen) == 6
    expected = 1000
    chi2 = sum((count - expected) ** 2 / expected for count in seen.values())
    assert chi2 < 20.5  # 0.999 quantile with 5 degrees of freedom


def test_what_is_not_a_permutation_inside_buckets_is_noticed() -> None:
    bucket = np.array([0, 0, 1, 1])
    assert is_bucket_permutation(bucket_slots(bucket), bucket)
    assert not is_bucket_permutation(np.array([0, 2, 1, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 0, 2, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2, 4]), bucket)
