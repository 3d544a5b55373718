"""The joint distribution of some columns that a table of any shape tells of.

Rows that are exact are counted. A box is spread evenly over the values of the domain it covers, a node over its
leaves, a bucket's counts over its rows, a permuted column over its bucket (columns permuted apart are
independent inside it); a randomized column is inverted (Guo, Ying and Wu 2011), which can give negative cells, and
so is a retained share of sensitive values. Shares add up to 1 over the full product of the domains, which are those
of all tables of the call together. Cost: distinct combinations of cells times the product of the domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.release_table import ReadColumn, ReadTable

MAX_CELLS = 1_000_000
MAX_WORK = 20_000_000_000
_BLOCK = 4_000_000


@dataclass(frozen=True)
class _Part:
    """Columns that are spread together: `shares[cell]` is spread over their product, row i holds `cell_of_row[i]`."""

    axes: tuple[int, ...]
    shares: FloatArray
    cell_of_row: IntArray


def joint_shares(function: str, table: ReadTable, names: Sequence[str]) -> FloatArray:
    """Estimate the share of each combination of codes, one axis a column; may be negative where inverted."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ColumnError(f"{function}: the release has no column {', '.join(missing)}")
    sizes = tuple(table.columns[name].domain.size for name in names)
    if np.prod([float(s) for s in sizes]) > MAX_CELLS:
        raise ParameterError(
            f"{function}: the domains of {', '.join(names)} multiply to {np.prod([float(s) for s in sizes]):,.0f} "
            f"cells, more than {MAX_CELLS:,}; name fewer columns"
        )
    if table.rows == 0:
        return np.zeros(sizes)
    counts: FloatArray = _spread(function, _parts(table, names), sizes, table.row_weights())
    total = float(counts.sum())
    if total <= 0:  # noise took more rows than there are
        raise ColumnError(
            f"{function}: the release's rows stand for {total:g} rows of the original in all, so they have no "
            "distribution"
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
    slices: dict[str, list[int]] = {}
    parts = []
    for axis, name in enumerate(names):
        column = table.columns[name]
        if column.slice:
            slices.setdefault(column.slice, []).append(axis)
        else:
            parts.append(_Part((axis,), *_cells(column)))
    for axes in slices.values():
        fields = [_cells(table.columns[names[axis]]) for axis in axes]
        parts.append(_sliced(table, tuple(axes), fields))
    return parts


def _sliced(table: ReadTable, axes: tuple[int, ...], fields: list[tuple[FloatArray, IntArray]]) -> _Part:
    """Mean over the rows of each bucket of the product of their cells."""
    bucket = table.buckets()
    rows = np.bincount(bucket)
    width = int(np.prod([shares.shape[1] for shares, _ in fields]))
    total = np.zeros((len(rows), width))
    step = max(1, _BLOCK // max(1, width))
    for start in range(0, table.rows, step):
        some = slice(start, start + step)
        product = np.ones((len(bucket[some]), 1))
        for shares, cell in fields:
            product = (product[:, :, None] * shares[cell[some]][:, None, :]).reshape(len(product), -1)
        np.add.at(total, bucket[some], product)
    return _Part(axes, total / np.maximum(rows, 1)[:, None], bucket)


def _cells(column: ReadColumn) -> tuple[FloatArray, IntArray]:
    """Share of each code in each distinct cell of a column, shape (cells, size), and the cell of each row."""
    if column.plain:
        return np.eye(column.domain.size), column.value_codes().astype(np.int64)
    cells = PublishedCells.distinct(column)
    shares = cells.shares.toarray()
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300), cells.of_row


def _spread(function: str, parts: list[_Part], sizes: tuple[int, ...], weights: FloatArray) -> FloatArray:
    """Sum over the distinct combinations of cells of weight times the outer product of their shares."""
    key, first = keys_of([part.cell_of_row for part in parts], [len(part.shares) for part in parts])
    weight = np.bincount(key, weights=weights)
    if all(_is_identity(part) for part in parts):
        exact = np.ravel_multi_index([part.cell_of_row[first] for part in parts], sizes)
        counted = np.bincount(exact, weights=weight, minlength=int(np.prod(sizes)))
        return np.asarray(counted.reshape(sizes), dtype=np.float64)
    if float(len(first)) * float(np.prod(sizes)) > MAX_WORK:
        raise ParameterError(
            f"{function}: {len(first)} distinct cells over {int(np.prod(sizes))} combinations are too many; name fewer "
            "columns"
        )
    parts = sorted(parts, key=lambda part: part.shares.shape[1])
    last = parts[-1]
    width = int(np.prod([part.shares.shape[1] for part in parts[:-1]]))
    total = np.zeros((width, last.shares.shape[1]))
    step = max(1, _BLOCK // max(width, last.shares.shape[1]))
    for start in range(0, len(first), step):
        rows = first[start : start + step]
        product: NDArray[np.float64] = np.asarray(weight[start : start + step], dtype=np.float64)[:, None]
        for part in parts[:-1]:
            product = (product[:, :, None] * part.shares[part.cell_of_row[rows]][:, None, :]).reshape(len(rows), -1)
        total += product.T @ last.shares[last.cell_of_row[rows]]
    axes = [axis for part in parts for axis in part.axes]
    return np.moveaxis(total.reshape([sizes[axis] for axis in axes]), range(len(axes)), axes)


def _is_identity(part: _Part) -> bool:
    square = len(part.axes) == 1 and part.shares.shape[0] == part.shares.shape[1]
    return square and bool((part.shares.diagonal() == 1).all())


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
