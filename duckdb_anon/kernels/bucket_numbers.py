"""Numbers of buckets that say which buckets hold the same counts of sensitive values.

Buckets dealt from a table of few values come in few kinds: 250,000 buckets of 4 of a million rows hold one of 400
different counts. What is asked of a kind need not be asked of each of its buckets, so the numbers tell the kind
(`duckdb_anon.model.kinds`). They tell nothing else: kinds, and the buckets of a kind, follow each other as in the
random order that is given, so numbers are drawn from what the counts show and from chance.

Cost: one sort of the buckets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.sort_count import offsets_of, order_by, ranges
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.kinds import BELOW, LEAST_BUCKETS

Bits = NDArray[np.uint64]


def numbered_by_kind(offsets: IntArray, codes: CodeArray, counts: IntArray) -> IntArray:
    """Number of each bucket, all different, 1 or more.

    Args:
        offsets: where the values of each bucket begin and end, shape (buckets + 1,); the buckets in random order.
        codes: the values of each bucket, ascending.
        counts: how often it holds them.

    Returns:
        Numbers, shape (buckets,): place among the buckets of the kind times `BELOW`, plus the kind from 1 on; from 1 on
        where kinds are too many.

    >>> offsets, codes = np.arange(0, 11, 2), np.array([0, 1, 0, 2, 0, 1, 0, 2, 0, 1], dtype=np.int32)
    >>> numbered_by_kind(offsets, codes, np.ones(10, dtype=np.int64)).tolist()
    [1, 2, 4097, 4098, 8193]
    """
    buckets = len(offsets) - 1
    kind = _kinds(offsets, codes, counts)
    kinds = int(kind.max(initial=-1)) + 1
    if kinds >= BELOW or kinds * LEAST_BUCKETS > buckets:
        return np.arange(1, buckets + 1, dtype=np.int64)
    order = order_by(kind)
    starts = offsets_of(kind[order], kinds)
    place = np.empty(buckets, dtype=np.int64)
    place[order] = np.arange(buckets) - starts[kind[order]]
    return place * BELOW + kind + 1


def _kinds(offsets: IntArray, codes: CodeArray, counts: IntArray) -> IntArray:
    """Kind of each bucket, in the order of the first bucket of each."""
    sizes = np.diff(offsets)
    cells = _mixed(codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ _mixed(counts.astype(np.uint64)))
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(cells)))
    told = sums[offsets[1:]] - sums[offsets[:-1]]
    _, first, kind = np.unique(told, return_index=True, return_inverse=True)
    like = first[kind]
    alike = bool((sizes == sizes[like]).all())
    if alike:
        same = ranges(offsets[like], sizes)
        alike = bool((codes == codes[same]).all() and (counts == counts[same]).all())
    if not alike:  # two kinds share a sum of 64 bits
        return np.arange(len(sizes), dtype=np.int64)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[kind]


def _mixed(values: Bits) -> Bits:
    """Numbers whose bits depend on all bits of the values (Steele et al. 2014, splitmix)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
