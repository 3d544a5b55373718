"""The joint distribution of some columns that a table of any shape tells of.

Rows that are exact are counted. A box is spread evenly over the values of the domain it covers, a node over its
leaves, a bucket's counts over its rows, a permuted column over its bucket (columns permuted apart are
independent inside it); a randomized column is inverted (Guo, Ying and Wu 2011), which can give negative cells, and
so is a retained share of sensitive values. Shares add up to 1 over the full product of the domains, which are those
of all tables of the call together. Cost: distinct combinations of cells times the product of the domains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import ReadTable
from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import require_columns
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError

MAX_CELLS = 1_000_000
MAX_WORK = 20_000_000_000
_BLOCK = 4_000_000


@dataclass(frozen=True)
class _Part:
    """Columns that are spread together: row i has `cell_of_row[i]`, which is spread over their product by `shares`."""

    axes: tuple[int, ...]
    size: int  # number of combinations of their values
    cell_of_row: IntArray
    shares: scipy.sparse.csr_matrix  # shape (cells, size)
    single: bool = False  # whether each cell is the combination of its number alone

    def spread(self, rows: IntArray) -> FloatArray:
        """Share of each combination in each of some rows, shape (rows, size)."""
        return np.asarray(self.shares[self.cell_of_row[rows]].toarray())


def joint_shares(table: ReadTable, names: Sequence[str]) -> FloatArray:
    """Estimate the share of each combination of codes, one axis a column; may be negative where inverted."""
    require_columns(table, names)
    sizes = tuple(table.columns[name].domain.size for name in names)
    if math.prod(sizes) > MAX_CELLS:
        raise ParameterError(
            f"the domains of {', '.join(names)} multiply to {math.prod(sizes):,} cells, more than {MAX_CELLS:,}; "
            "name fewer columns"
        )
    if table.rows == 0:
        return np.zeros(sizes)
    counts: FloatArray = _spread(_parts(table, names), sizes, table.row_weights())
    total = float(counts.sum())
    if total <= 0:  # noise took more rows than there are
        raise ColumnError(
            f"the release's rows stand for {total:g} rows of the original in all, so they have no distribution"
        )
    shares: FloatArray = counts / total
    for axis, name in enumerate(names):
        column = table.columns[name]
        if column.channel is not None:
            shares = _inverted(shares, axis, column.channel.p, column.channel.domain)
        elif table.replaced(name):
            shares = _unmixed(shares, axis, table.kept)
    return shares


def _parts(table: ReadTable, names: Sequence[str]) -> list[_Part]:
    found = []
    for axes in table.slices(names).values():
        columns = [_of_column(axis, table.columns[names[axis]]) for axis in axes]
        found.append(_sliced(table, columns) if table.columns[names[axes[0]]].slice else columns[0])
    return found


def _of_column(axis: int, column: Ranges) -> _Part:
    size = column.domain.size
    if column.plain:
        shares = scipy.sparse.eye_array(size).tocsr()
        return _Part((axis,), size, column.value_codes().astype(np.int64), shares, single=True)
    cells = column.different
    total = np.maximum(np.asarray(cells.shares.sum(axis=1)).ravel(), 1e-300)
    return _Part((axis,), size, cells.of_row, (scipy.sparse.diags_array(1 / total) @ cells.shares).tocsr())


def _sliced(table: ReadTable, columns: Sequence[_Part]) -> _Part:
    """Mean over the rows of each bucket of the product of their cells."""
    bucket = table.buckets()
    rows = np.bincount(bucket)
    total = np.zeros((len(rows), math.prod(part.size for part in columns)))
    step = max(1, _BLOCK // max(1, total.shape[1]))
    for start in range(0, table.rows, step):
        some = np.arange(start, min(start + step, table.rows))
        np.add.at(total, bucket[some], _product(np.ones((len(some), 1)), columns, some))
    axes = tuple(axis for part in columns for axis in part.axes)
    return _Part(axes, total.shape[1], bucket, scipy.sparse.csr_matrix(total / np.maximum(rows, 1)[:, None]))


def _product(product: FloatArray, parts: Sequence[_Part], rows: IntArray) -> FloatArray:
    """Product of weights and the shares of each combination of values, row by row."""
    for part in parts:
        product = (product[:, :, None] * part.spread(rows)[:, None, :]).reshape(len(product), -1)
    return product


def _spread(parts: list[_Part], sizes: tuple[int, ...], weights: FloatArray) -> FloatArray:
    """Sum over the distinct combinations of cells of weight times the outer product of their shares."""
    key = keys_of([part.cell_of_row for part in parts])
    weight = np.bincount(key.of_row, weights=weights).astype(np.float64)
    if all(part.single for part in parts):
        exact = np.ravel_multi_index([part.cell_of_row[key.first] for part in parts], sizes)
        counted = np.bincount(exact, weights=weight, minlength=math.prod(sizes))
        return np.asarray(counted.reshape(sizes), dtype=np.float64)
    if key.number * math.prod(sizes) > MAX_WORK:
        raise ParameterError(
            f"{key.number} distinct cells over {math.prod(sizes)} combinations are too many; name fewer columns"
        )
    *parts, last = sorted(parts, key=lambda part: part.size)
    width = math.prod(part.size for part in parts)
    total = np.zeros((width, last.size))
    step = max(1, _BLOCK // max(width, last.size))
    for start in range(0, key.number, step):
        rows = key.first[start : start + step]
        total += _product(weight[start : start + step, None], parts, rows).T @ last.spread(rows)
    axes = [axis for part in (*parts, last) for axis in part.axes]
    return np.moveaxis(total.reshape([sizes[axis] for axis in axes]), range(len(axes)), axes)


def _inverted(shares: FloatArray, axis: int, p: float, domain: CodeArray) -> FloatArray:
    """Undo randomized response on one axis."""
    diagonal, other = inverse_terms(RetentionChannel(len(domain), p))
    result = np.zeros_like(shares)
    index = (slice(None),) * axis + (domain,)
    result[index] = diagonal * shares[index] + other * shares.sum(axis=axis, keepdims=True)
    return result


def _unmixed(shares: FloatArray, axis: int, kept: float) -> FloatArray:
    """Undo the replacement of a share 1 - kept of the values by draws from their own distribution."""
    others = tuple(a for a in range(shares.ndim) if a != axis)
    replaced = shares.sum(axis=axis, keepdims=True) * shares.sum(axis=others, keepdims=True)
    # where every value was replaced, nothing tells the original from independent columns
    result: FloatArray = (shares - (1 - kept) * replaced) / kept if kept > 0 else replaced
    return result
