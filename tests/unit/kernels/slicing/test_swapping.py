"""Swapping cells inside buckets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from duckdb_anon.kernels.slicing.bucket_permutation import is_bucket_permutation, shuffled_slots
from duckdb_anon.kernels.slicing.swapping import swapped
from duckdb_anon.model.coded_table import IntArray


@pytest.mark.parametrize("seed", range(20))
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


def test_a_bucket_of_one_row_is_left_as_it_is() -> None:
    orders = [np.array([0, 1]), np.array([0, 1])]
    kept = swapped(
        orders, np.array([0, 1]), lambda trial: np.ones(len(trial[0]), dtype=bool), 5, np.random.default_rng(0)
    )
    assert [order.tolist() for order in kept] == [[0, 1], [0, 1]]
