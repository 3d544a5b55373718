"""Permuting each column of a bucketed table inside its buckets.

Slot i of the released table takes record `order[i]`; slots are listed bucket by bucket. Every column gets
its own uniform permutation of each bucket's records (Li et al. 2012, section 3), so within a bucket the link
between columns is broken while each column keeps its values. Cost: one stable sort a column, O(n log n).
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import tick


def bucket_slots(bucket_of_record: IntArray) -> IntArray:
    """Record of each slot before any permutation: records sorted by bucket, shape (n,)."""
    tick()
    return np.argsort(bucket_of_record, kind="stable").astype(np.int64, copy=False)


def shuffled_slots(bucket_of_record: IntArray, rng: np.random.Generator) -> IntArray:
    """Record of each slot after one uniform permutation inside every bucket.

    Args:
        bucket_of_record: bucket number of each record, shape (n,).
        rng: source of randomness.

    Returns:
        A permutation of range(n) that keeps buckets together, in the order of `bucket_slots`.
    """
    tick()
    mixed = rng.permutation(len(bucket_of_record))
    return mixed[np.argsort(bucket_of_record[mixed], kind="stable")].astype(np.int64, copy=False)


def is_bucket_permutation(order: IntArray, bucket_of_record: IntArray) -> bool:
    """Whether `order` lists every record once and each inside its own bucket's slots."""
    tick()
    n = len(bucket_of_record)
    if len(order) != n or (n and (order.min() < 0 or order.max() >= n)):
        return False
    once = bool(np.all(np.bincount(order, minlength=n) == 1)) if n else True
    return once and bool(np.all(bucket_of_record[order] == np.sort(bucket_of_record)))
