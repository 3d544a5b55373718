"""Strict Mondrian with k-anonymity on many small sets at once.

Cell generalization cuts the rows of one cell of one bucket into parts of at least k rows. There can be a
hundred thousand such cells of a handful of rows each, so all of them are cut together, level by level: each
round tries the lower median of every attribute in every part and takes the widest attribute whose cut
leaves k rows on both sides (LeFevre, DeWitt and Ramakrishnan 2006, with normalized ranges as widths).
Nominal attributes are cut along their codes, hierarchical ones along the leaves from left to right.
Cost: O(d n log n) a round, about log2(largest set / k) rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import run_starts
from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.model.coded_table import FloatArray, IntArray


def median_parts(set_of_item: IntArray, axes: Sequence[FloatArray], spans: Sequence[float], k: int) -> IntArray:
    """Cut every set into parts of at least k items.

    Args:
        set_of_item: which set each item belongs to, shape (m,).
        axes: place of each item on each attribute's line, each of shape (m,).
        spans: range of each attribute over the whole table, for the normalized widths.
        k: smallest allowed part; a set smaller than k is left whole.

    Returns:
        Part number of each item, shape (m,), 0, 1, 2, ...; parts never cross sets.
    """
    part = compact(set_of_item)
    active = np.ones(len(part), dtype=bool)
    while axes and active.any():
        items = np.flatnonzero(active)
        group = compact(part[items])
        cut, goes_left = _widest_cut(group, [axis[items] for axis in axes], spans, k)
        split = cut[group]
        right = items[split & ~goes_left]
        part[right] += len(part)  # an id nobody else has: parts stay below len(part)
        part = compact(part)
        active[items[~split]] = False
    return part


def _widest_cut(
    group: IntArray, axes: Sequence[FloatArray], spans: Sequence[float], k: int
) -> tuple[BoolArray, BoolArray]:
    """For each group whether some cut is allowed, and for each item whether it goes left in the widest one."""
    groups = int(group.max()) + 1
    best = np.full(groups, -1.0)
    goes_left = np.zeros(len(group), dtype=bool)
    for axis, span in zip(axes, spans, strict=True):
        order = np.lexsort((axis, group))
        value, owner = axis[order], group[order]
        first = run_starts(owner)
        size = np.diff(np.append(first, len(owner)))
        median = value[first + (size - 1) // 2]
        left = value <= median[owner]
        on_left = np.add.reduceat(left.astype(np.int64), first)
        width = (value[first + size - 1] - value[first]) / (span or 1.0)
        better = (on_left >= k) & (size - on_left >= k) & (width > best)
        best[better] = width[better]
        chosen = better[owner]
        goes_left[order[chosen]] = left[chosen]
    return best >= 0, goes_left
