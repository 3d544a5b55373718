"""Rows of the whole table with each code: what the first cut, beside which nothing else can be done, is chosen by.

The first group is the longest. Its extremes, values and cells follow from counts of the whole table, which several
threads make, so that nobody goes through its rows once for each of them. Cost: a pass an attribute.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.array_ops import tally
from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.kernels.partition.flat_attributes import Lines
from duckdb_anon.kernels.thread_pool import side_by_side
from duckdb_anon.model.coded_table import Attribute, IntArray


def counts_of_table(qi: tuple[Attribute, ...], lines: Lines) -> IntArray:
    """Rows with each code of each attribute, with each leaf of one that has a hierarchy, at `Lines.offset`.

    Args:
        qi: the attributes.
        lines: the same, flattened.
    """

    def counted(place: int) -> IntArray:
        attribute = qi[place]
        counts = np.zeros(attribute.size, dtype=np.int64)
        tally(attribute.codes, counts)
        if attribute.leaf_of_code is None:
            return counts
        leaves = np.zeros(int(lines.offset[place + 1] - lines.offset[place]), dtype=np.int64)
        np.add.at(leaves, attribute.leaf_of_code, counts)
        return leaves

    return np.concatenate(side_by_side(counted, range(len(qi))))


@compiled_in_place
def extremes_of_table(lines: Lines, counts: IntArray, low: IntArray, high: IntArray) -> None:
    """Set the smallest and largest code of all rows on each attribute.

    Args:
        lines: the attributes.
        counts: see `counts_of_table`; the table has rows.
        low: smallest codes, filled in.
        high: largest codes, filled in.
    """
    for j in range(len(lines.kind)):
        start = lines.offset[j]
        first, last = start, lines.offset[j + 1] - 1
        while counts[first] == 0:
            first += 1
        while counts[last] == 0:
            last -= 1
        low[j], high[j] = first - start, last - start


@compiled_in_place
def cells_of_table(lines: Lines, counts: IntArray, j: int, code: IntArray, rows: IntArray) -> int:
    """List the different codes of all rows on one attribute with their numbers of rows; return how many there are.

    Args:
        lines: the attributes.
        counts: see `counts_of_table`.
        j: the attribute.
        code: the codes, ascending, filled in.
        rows: rows of each, filled in.
    """
    cells = 0
    for place in range(lines.offset[j], lines.offset[j + 1]):
        if counts[place] > 0:
            code[cells] = place - lines.offset[j]
            rows[cells] = counts[place]
            cells += 1
    return cells
