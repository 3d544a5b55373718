"""Permutations inside buckets, and swapping cells of rows that violate a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from duckdb_anon.kernels.slicing.bucket_permutation import is_bucket_permutation, shuffled_slots, swapped
from duckdb_anon.model.coded_table import IntArray


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
    assert is_bucket_permutation(np.argsort(bucket, kind="stable"), bucket)
    assert not is_bucket_permutation(np.array([0, 2, 1, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 0, 2, 3]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2]), bucket)
    assert not is_bucket_permutation(np.array([0, 1, 2, 4]), bucket)


@pytest.mark.parametrize("seed", range(6))
def test_columns_stay_permutations_and_no_bucket_gets_worse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bucket = rng.integers(0, 6, 60)
    qi, secret = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    slots = np.sort(bucket)

    def violates(orders: Sequence[IntArray]) -> np.ndarray:
        return qi[orders[0]] == secret[orders[1]]

    orders = [shuffled_slots(bucket, rng) for _ in range(2)]
    before = np.bincount(slots, weights=violates(orders), minlength=6)
    given = [order.copy() for order in orders]
    after = swapped(orders, slots, violates, int(rng.integers(0, 30)), rng)
    assert all(is_bucket_permutation(order, bucket) for order in after)
    assert all(np.array_equal(order, own) for order, own in zip(orders, given, strict=True))
    assert (np.bincount(slots, weights=violates(after), minlength=6) <= before).all()


def test_the_only_valid_arrangement_of_a_small_bucket_is_found() -> None:
    # record 0 may stand beside the secret of record 0 alone, record 1 beside that of record 1
    def violates(orders: Sequence[IntArray]) -> np.ndarray:
        return orders[0] != orders[1]

    rng = np.random.default_rng(0)
    for bucket in (np.zeros(2, dtype=np.int64), np.zeros(7, dtype=np.int64)):
        orders = [np.arange(len(bucket)), np.arange(len(bucket))[::-1].copy()]
        first, second = swapped(orders, bucket, violates, 200, rng)
        assert np.array_equal(first, second)
