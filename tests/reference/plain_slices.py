"""Sliced tables whose cells are not generalized, as the kernels read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.partition.sort_count import count_cells, offsets_of
from duckdb_anon.kernels.slicing.record_linkage_bound import Shares, SlicedShares


def plain_shares(parts: Sequence[np.ndarray], sensitive: np.ndarray, bucket: np.ndarray) -> SlicedShares:
    """Read a sliced table whose cells are not generalized."""
    size = np.bincount(bucket)
    columns = []
    for part in parts:
        value, place, count = count_cells(part, bucket, int(part.max()) + 1, len(size))
        columns.append(Shares(value, place, count / size[place]))
    entry = columns[-1].find(parts[-1].astype(np.int64), bucket.astype(np.int64))
    owner, code, count = count_cells(entry, sensitive, len(columns[-1].value), int(sensitive.max()) + 1)
    probability = count / np.bincount(entry)[owner]
    return SlicedShares(tuple(columns), offsets_of(owner, len(columns[-1].value)), code, probability)
