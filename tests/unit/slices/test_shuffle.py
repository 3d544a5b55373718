"""Permutations inside buckets."""

from __future__ import annotations

from collections import Counter

import numpy as np

from duckdb_anon.slices.shuffle import bucket_slots, is_bucket_permutation, random_pairs, shuffled_slots


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


def test_slots_are_paired_inside_their_buckets() -> None:
    bucket = np.array([0, 0, 0, 1, 2, 2, 2, 2])
    rng = np.random.default_rng(2)
    seen = Counter()
    for _ in range(300):
        left, right = random_pairs(bucket, rng)
        assert len(left) == 3 and len({*left.tolist(), *right.tolist()}) == 6
        assert np.array_equal(bucket[left], bucket[right])
        seen.update(frozenset(pair) for pair in zip(left.tolist(), right.tolist(), strict=True))
    assert len(seen) == 3 + 6
    assert all(70 < count < 130 for count in seen.values())  # each pair in a third of the draws


def test_what_is_not_a_permutation_inside_buckets_is_noticed() -> None:
    bucket = np.array([0, 0, 1, 1])
    assert is_bucket_permutation(bucket_slots(bucket), bucket)
    assert not is_bucket_permutation(np.array([0, 2, 1, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 0, 2, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2, 4]), bucket)
