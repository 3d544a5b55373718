"""The bound on record linkage of a sliced table: every record against every bucket it may come from.

The general test of slicing's l-diversity (Li, Li, Zhang and Molloy 2012, section 5; see `diversity` for the definition
and for the quick test while a table is being cut). It takes any buckets, and generalized cells: a record's part matches
a cell that covers it (Hasan, Jiang, Chen and Wang 2018 do not say; coverage is the plain reading). Cost: proportional
to the buckets that show the rarest part of each distinct record, in chunks of bounded memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.sort_count import offsets_of, ranges, run_starts
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import FloatArray, IntArray

_CHUNK = 1 << 21


@dataclass(frozen=True)
class Shares:
    """Which buckets show a value, and in which share of their cells; entries sorted by (value, bucket)."""

    value: IntArray  # number of a record's column part, shape (m,)
    bucket: IntArray  # bucket that shows it
    share: FloatArray  # share of the bucket's cells that match it, in (0, 1]

    def find(self, value: IntArray, bucket: IntArray) -> IntArray:
        """Return the entry of each (value, bucket), -1 where there is none."""
        width = int(max(self.bucket.max(), bucket.max(initial=0))) + 1
        key, wanted = self.value * width + self.bucket, value * width + bucket
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where(key[place] == wanted, place, -1).astype(np.int64)


@dataclass(frozen=True)
class SlicedShares:
    """A sliced table as the test sees it."""

    # shares of each column; the last one is the sensitive column without the sensitive value
    columns: tuple[Shares, ...]
    offsets: IntArray  # entry e of columns[-1] has the sensitive distribution at offsets[e]:offsets[e + 1]
    code: IntArray  # sensitive codes
    probability: FloatArray  # D(t, B)[s], summing to 1 within an entry


def record_association(table: SlicedShares, parts: Sequence[IntArray]) -> FloatArray:
    """Return max_s p(t, s) of each record, in [0, 1]; 0 where no bucket matches.

    Args:
        parts: part number of each record in each column, numbered as in `table`, each of shape (records,).
    """
    inverse, first = keys_of(parts)
    distinct = [np.asarray(part, dtype=np.int64)[first] for part in parts]
    result = np.zeros(len(first))
    offsets = [
        offsets_of(c.value, int(max(c.value.max(), p.max())) + 1) for c, p in zip(table.columns, distinct, strict=True)
    ]
    degree = np.stack([np.diff(o)[p] for o, p in zip(offsets, distinct, strict=True)])
    rarest = np.argmin(degree, axis=0)
    for column in range(len(offsets)):
        mine = np.flatnonzero(rarest == column)
        steps = np.cumsum(degree[column, mine]) // _CHUNK
        for chosen in np.split(mine, run_starts(steps)[1:]) if len(mine) else ():
            start = offsets[column][distinct[column][chosen]]
            place = ranges(start, degree[column, chosen])
            who = np.repeat(np.arange(len(chosen)), degree[column, chosen])
            here = [part[chosen] for part in distinct]
            result[chosen] = _largest(table, here, who, table.columns[column].bucket[place])
    return result[inverse]


def _largest(table: SlicedShares, parts: list[IntArray], who: IntArray, bucket: IntArray) -> FloatArray:
    """Largest p(t, s) of a few records, given candidate (record, bucket) pairs."""
    weight = np.ones(len(who))
    entry = np.empty(0, dtype=np.int64)
    for column, part in zip(table.columns, parts, strict=True):
        entry = column.find(part[who], bucket)
        hit = entry >= 0
        who, bucket, entry = who[hit], bucket[hit], entry[hit]
        weight = weight[hit] * column.share[entry]
    result = np.zeros(len(parts[0]))
    if len(who) == 0:
        return result
    weight /= np.bincount(who, weights=weight)[who]
    size = np.diff(table.offsets)[entry]
    cell = ranges(table.offsets[entry], size)
    codes = int(table.code.max()) + 1
    key, inverse = np.unique(np.repeat(who, size) * codes + table.code[cell], return_inverse=True)
    mixed = np.bincount(inverse, weights=np.repeat(weight, size) * table.probability[cell])
    np.maximum.at(result, key // codes, mixed)
    return result
