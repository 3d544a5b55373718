"""Swapping cells inside buckets until fewer rows violate a rule, instead of generalizing them.

Hasan, Jiang, Luo, Li and Chen (2016) swap values to rid a sliced table of invalid rows; only their abstract was
available, so this is a reading: each row that violates a rule exchanges its cell of one column with a random row of
its bucket, and keeps it if of the two rows fewer violate a rule then. Columns stay permutations of the bucket's
records. Cost: linear in the slots once, then in the violating rows a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import run_starts
from duckdb_anon.model.coded_table import IntArray


def swapped(
    orders: Sequence[IntArray],
    bucket: IntArray,
    violates: Callable[[Sequence[IntArray]], BoolArray],
    rounds: int,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Swap cells for a number of rounds, or until no row violates a rule.

    Args:
        orders: record of each slot, column by column, the sensitive one last, each of shape (n,).
        bucket: bucket of each slot, non-decreasing.
        violates: whether rows made of the given records, column by column, violate a rule.
        rounds: largest number of rounds.
        rng: source of randomness.

    Returns:
        Record of each slot, column by column.
    """
    orders = [order.copy() for order in orders]
    violating = violates(orders) if rounds else np.zeros(len(bucket), dtype=bool)
    for number in range(rounds):
        if not violating.any():
            break
        left, right = _pairs(np.flatnonzero(violating), bucket, rng)
        lowest = len(orders) - 1 if number % 2 == 0 else 0  # most rules name the sensitive value, the last column
        column = np.tile(rng.integers(lowest, len(orders), len(left)), 2)
        slots, others = np.concatenate([left, right]), np.concatenate([right, left])
        trial = [np.where(column == c, order[others], order[slots]) for c, order in enumerate(orders)]
        after = violates(trial)
        before = violating[slots]
        gain = before.astype(np.int64) - after
        helps = gain + np.roll(gain, len(left)) > 0  # the two slots of a pair lie half the array apart
        for order, cells in zip(orders, trial, strict=True):
            order[slots[helps]] = cells[helps]
        violating[slots[helps]] = after[helps]
    return orders


def _pairs(violating: IntArray, bucket: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Pair violating slots with random other slots of their buckets; no slot is in two pairs."""
    violating = rng.permutation(violating)
    first = run_starts(bucket)
    size = np.diff(np.append(first, len(bucket)))
    own = np.searchsorted(first, violating, side="right") - 1
    step = 1 + (rng.random(len(own)) * (size[own] - 1)).astype(np.int64)
    partner = first[own] + (violating - first[own] + step) % size[own]
    pairs = np.stack([violating, partner], axis=1)
    fresh = np.zeros(pairs.size, dtype=bool)
    fresh[np.unique(pairs.ravel(), return_index=True)[1]] = True
    kept = pairs[fresh.reshape(-1, 2).all(axis=1)]
    return kept[:, 0], kept[:, 1]
