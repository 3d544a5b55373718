"""Cell generalization: the rows of one column in one bucket, cut into parts of at least k.

Hasan, Jiang, Chen and Wang (2018, section 4.1.4) generalize the values of a cell "to satisfy k-anonymity".
Their worked tables show sub-groups inside a cell, so a cell is read as follows. Combinations of values that
occur k times or more stay as they are; the other rows are cut by strict Mondrian with k-anonymity; if fewer
than k rows are left over, they join the kept combination whose common box loses least (NCP). All cells of a
column are treated in one pass. Cost: a few sorts of the rows concerned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.ncp import box_width
from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import ranges, run_starts
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.kernels.slicing.covers import EXACT, width_of
from duckdb_anon.kernels.slicing.subgroups import median_parts
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class CellRows:
    """Rows of the cells to be generalized.

    Attributes:
        attributes: attributes of the column.
        codes: code of each attribute in each row, each of shape (rows,).
        taking_part: for each attribute and row whether it counts; attributes that were already generalized
            for the whole cell do not.
        bucket: bucket of each row, shape (rows,).
    """

    attributes: Sequence[Attribute]
    codes: Sequence[CodeArray]
    taking_part: Sequence[BoolArray]
    bucket: IntArray

    def axis(self, i: int) -> IntArray:
        """Place of each row on attribute i's axis (leaf or code); 0 where it does not take part."""
        leaf = self.attributes[i].leaf_of_code
        place = self.codes[i] if leaf is None else leaf[self.codes[i]]
        return np.where(self.taking_part[i], place, 0).astype(np.int64)


def parts_of_cells(rows: CellRows, k: int) -> IntArray:
    """Cut the rows of each cell.

    Args:
        rows: rows of any number of cells of one column.
        k: smallest size of a part.

    Returns:
        Part of each row, 0, 1, 2, ... or EXACT for rows that keep their values, shape (rows,). A part has at
        least k rows unless its whole cell has fewer.
    """
    combination = keys_of([rows.bucket, *(rows.axis(i) for i in range(len(rows.attributes)))]).of_row
    kept = (np.bincount(combination) >= k)[combination]
    part = np.full(len(kept), EXACT, dtype=np.int64)
    left = np.flatnonzero(~kept)
    axes, spans = zip(*(_line(rows, i, left) for i in range(len(rows.attributes))), strict=True)
    part[left] = median_parts(rows.bucket[left], axes, spans, k)
    if len(left):
        _absorb(rows, k, combination, part)
    return part


def _line(rows: CellRows, i: int, chosen: IntArray) -> tuple[FloatArray, float]:
    """Places on a number line and its length, for the normalized widths of Mondrian."""
    attribute = rows.attributes[i]
    if attribute.kind == "ordered":
        places = np.where(rows.taking_part[i], attribute.positions[rows.codes[i]], 0.0)[chosen]
        return places, attribute.span
    return rows.axis(i)[chosen].astype(np.float64), float(width_of(attribute) - 1)


def _absorb(rows: CellRows, k: int, combination: IntArray, part: IntArray) -> None:
    """Let each part of fewer than k rows take in the kept combination that costs least; changes `part`."""
    sizes = np.bincount(part[part != EXACT])
    small = np.flatnonzero(sizes < k)
    example = np.full(len(sizes), -1, dtype=np.int64)
    left = np.flatnonzero(part != EXACT)
    example[part[left]] = left
    small_bucket = rows.bucket[example[small]]  # a small part is all that is left of its bucket
    whole = np.flatnonzero(part == EXACT)
    first = whole[np.unique(combination[whole], return_index=True)[1]]
    first = first[np.argsort(rows.bucket[first], kind="stable")]
    low = np.searchsorted(rows.bucket[first], small_bucket, side="left")
    count = np.searchsorted(rows.bucket[first], small_bucket, side="right") - low
    pair_small = np.repeat(np.arange(len(small)), count)
    pair_first = first[ranges(low, count)]
    if len(pair_small) == 0:
        return
    cost = _joint_cost(rows, part, small[pair_small], pair_first)
    order = np.lexsort((combination[pair_first], cost, pair_small))
    best = order[run_starts(pair_small[order])]
    new_part = np.full(int(combination.max()) + 1, EXACT, dtype=np.int64)
    new_part[combination[pair_first[best]]] = small[pair_small[best]]
    part[whole] = new_part[combination[whole]]


def _joint_cost(rows: CellRows, part: IntArray, pair_part: IntArray, pair_row: IntArray) -> FloatArray:
    """NCP, summed over attributes, of the box around a part and one more row."""
    members = np.flatnonzero(part != EXACT)
    members = members[np.argsort(part[members], kind="stable")]
    owner = part[members]
    first = run_starts(owner)
    cost = np.zeros(len(pair_part))
    for i, attribute in enumerate(rows.attributes):
        axis = rows.axis(i)
        own, extra = axis[members], axis[pair_row]
        width = width_of(attribute)
        pairs = np.unique(owner * width + own)
        distinct = np.bincount(pairs // width, minlength=len(first))
        place = np.minimum(np.searchsorted(pairs, pair_part * width + extra), len(pairs) - 1)
        values = distinct[pair_part] + (pairs[place] != pair_part * width + extra)
        low = np.minimum(np.minimum.reduceat(own, first)[pair_part], extra)
        high = np.maximum(np.maximum.reduceat(own, first)[pair_part], extra)
        loss = box_width(attribute, low, high, values)
        cost += np.where(rows.taking_part[i][pair_row], loss, 0.0)
    return cost
