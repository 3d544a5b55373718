"""Permutations inside buckets, and swapping cells of rows that violate a rule."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.slicing.bucket_permutation import is_bucket_permutation, shuffled_slots, swapped
from duckdb_anon.methods.anatomy import anatomize
from duckdb_anon.model.coded_table import IntArray


def test_every_permutation_of_a_bucket_is_equally_likely():
    bucket = np.zeros(3, dtype=np.int64)
    rng = np.random.default_rng(1)
    seen = Counter(tuple(shuffled_slots(bucket, rng).tolist()) for _ in range(6000))
    assert len(seen) == 6
    expected = 1000
    chi2 = sum((count - expected) ** 2 / expected for count in seen.values())
    assert chi2 < 20.5  # 0.999 quantile with 5 degrees of freedom


def test_what_is_not_a_permutation_inside_buckets_is_noticed():
    bucket = np.array([0, 0, 1, 1])
    assert is_bucket_permutation(np.argsort(bucket, kind="stable"), bucket)
    assert not is_bucket_permutation(np.array([0, 2, 1, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 0, 2, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2, 4]), bucket)


def test_the_only_valid_arrangement_of_a_small_bucket_is_found():
    # record 0 may stand beside the secret of record 0 alone, record 1 beside that of record 1
    def violates(orders: Sequence[IntArray]) -> np.ndarray:
        return orders[0] != orders[1]

    rng = np.random.default_rng(0)
    for bucket in (np.zeros(2, dtype=np.int64), np.zeros(7, dtype=np.int64)):
        orders = [np.arange(len(bucket)), np.arange(len(bucket))[::-1].copy()]
        first, second = swapped(orders, bucket, violates, 200, rng)
        assert np.array_equal(first, second)


def test_which_records_share_a_bucket_is_left_to_chance():
    codes = np.repeat(np.arange(4, dtype=np.int32), 6)
    together = Counter(
        (bucket[6:12] == bucket[0]).argmax()
        for bucket in (anatomize(codes, 4, np.random.default_rng(seed)) for seed in range(1200))
    )
    chi2 = sum((count - 200) ** 2 / 200 for count in together.values())
    assert len(together) == 6
    assert chi2 < 20.5  # 0.999 quantile with 5 degrees of freedom
