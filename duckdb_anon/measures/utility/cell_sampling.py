"""Released rows as a learner takes them: one number or one code a cell.

Numbers become the middle of their interval; names, and whatever is to be predicted, become one value drawn
uniformly from those a cell may stand for (from a bucket's counts by their weight). Plain values stay as they
are. Rows with a noisy count are repeated that often, rounded. Cost: linear in the rows and set members.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.release_table import ReadColumn, ReadTable


def repeated_rows(table: ReadTable) -> IntArray:
    """Row numbers of a release as often as they count: once, or the rounded noisy count, at least 0."""
    if not table.counted:
        return np.arange(table.rows, dtype=np.int64)
    count = np.maximum(np.rint(table.row_weights()), 0)
    return np.repeat(np.arange(table.rows, dtype=np.int64), count.astype(np.int64))


def drawn_codes(column: ReadColumn, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """One code for each row, drawn uniformly from the values its cell may stand for.

    Args:
        column: any shape.
        rows: rows wanted, with repetitions.
        rng: source of randomness.
    """
    chance = rng.random(len(rows))
    if column.shape == "value" and column.codes is not None:
        return column.codes[rows].astype(np.int64)
    if column.shape == "interval" and column.lower is not None and column.upper is not None:
        anything = column.lower[rows] < 0
        low = np.where(anything, 0, column.lower[rows])
        high = np.where(anything, column.domain.size - 1, column.upper[rows])
        inside: IntArray = (low + np.floor(chance * (high - low + 1))).astype(np.int64)
        return inside
    if column.shape == "node" and column.node is not None:
        return _leaf_codes(column, column.node[rows].astype(np.int64), chance)
    if column.offsets is None:
        raise ColumnError(f"column '{column.domain.name}' is {column.shape} and cannot be read as rows")
    if column.counts is not None and column.codes is not None:
        total = np.concatenate([[0], np.cumsum(column.counts)])
        start, end = column.offsets[rows], column.offsets[rows + 1]
        wanted = total[start] + np.floor(chance * (total[end] - total[start]))
        weighted: IntArray = column.codes[np.searchsorted(total, wanted, side="right") - 1].astype(np.int64)
        return weighted
    size = np.diff(column.offsets)[rows]
    member = column.offsets[rows] + np.floor(chance * size).astype(np.int64)
    if column.codes is not None:
        return column.codes[member].astype(np.int64)
    return _leaf_codes(column, np.asarray(column.node)[member], rng.random(len(rows)))


def _leaf_codes(column: ReadColumn, node: IntArray, chance: FloatArray) -> IntArray:
    domain = column.domain
    if domain.hierarchy is None or domain.leaf_of_code is None:
        raise ColumnError(f"column '{domain.name}' is published as nodes, but no hierarchy is named for it")
    leaf = domain.hierarchy.first_leaf[node] + np.floor(chance * domain.hierarchy.leaf_count[node]).astype(np.int64)
    code_of_leaf = np.zeros(domain.hierarchy.leaves, dtype=np.int64)
    code_of_leaf[domain.leaf_of_code] = np.arange(domain.size)
    return code_of_leaf[leaf]


def numbers(column: ReadColumn, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """One place on the number line for each row: its own, the middle of its interval, or that of a drawn code.

    Args:
        column: any shape.
        rows: rows wanted, with repetitions.
        rng: source of randomness.
    """
    positions = column.domain.positions
    if column.shape != "interval" or column.lower is None or column.upper is None:
        return positions[drawn_codes(column, rows, rng)]
    anything = column.lower[rows] < 0
    last = max(column.domain.special_from - 1, 0)
    low = np.where(anything, 0, column.lower[rows])
    high = np.where(anything, last, column.upper[rows])
    middle: FloatArray = (positions[low] + positions[high]) / 2
    return middle
