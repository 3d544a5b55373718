"""Estimated answers of a workload from a release of any shape, all queries at once.

A released row is a product of independent parts (see `duckdb_anon.rewrite`): one an attribute, one a bag of
sensitive values in its bucket, one a permuted column of its bucket, one a person's list of nodes. Each part is a
table of distinct cells and queries; the estimate sums, over the distinct combinations of cells, weight times the
product of shares.
The answers are those of `relative_error` on each query's text.
Cost: O((rows + distinct combinations * n) * attributes), in batches of queries that bound the memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.cell_shares import member_weights
from duckdb_anon.kernels.randomized_response.channel import InvertedValues
from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.queries.factor_product import BLOCK, Product, ProductPart, summed
from duckdb_anon.measures.queries.selectivity import Intervals, SpreadCells
from duckdb_anon.measures.queries.workload import Workload
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.release_table import ReadColumn, ReadTable


def estimated_answers(
    workload: Workload,
    table: ReadTable,
    column: str | None,
    items: Sequence[str] = (),
    learnt: bool = True,
) -> FloatArray:
    """Estimate the answer of each query from a release."""
    weights = table.row_weights()
    mixed = frozenset(name for name in table.columns if table.replaced(name))
    valued = column
    if column is not None and not table.columns[column].slice and column not in workload.attributes:
        # without a predicate on it, what a row adds does not depend on the query
        weights = weights * _mean_of_row(table, column, mixed, learnt)
        valued = None
    others = [*items, *([valued] if valued else [])]
    return summed(workload, _parts(workload, table, others, valued, mixed, learnt), weights)


def _mean_of_row(table: ReadTable, column: str, mixed: Collection[str], learnt: bool) -> FloatArray:
    read = table.columns[column]
    if _is_plain(read) and column not in mixed:
        return _numbers(read)
    nothing = Workload((), (), np.zeros((1, 0), dtype=bool), ())
    part = _column_part(nothing, table, column, True, learnt)
    means = (_unmixed(part, table) if column in mixed else part).shares(nothing)[:, 0]
    return means[part.cell_of_row]


def _is_plain(column: ReadColumn) -> bool:
    """Whether every row has its own true value."""
    return column.plain and not column.slice and column.channel is None


def _numbers(column: ReadColumn) -> FloatArray:
    codes, domain = column.value_codes(), column.domain
    if domain.kind != "ordered":
        raise ColumnError(f"workload_error: column '{domain.name}' holds no numbers to sum")
    return np.where(codes < domain.special_from, domain.positions[codes], 0.0)


def _parts(
    workload: Workload,
    table: ReadTable,
    others: Sequence[str],
    valued: str | None,
    mixed: Collection[str],
    learnt: bool,
) -> list[ProductPart]:
    """The parts of the workload's attributes, and of `others` that matter whatever a query asks."""
    parts = []
    slices: dict[str, list[str]] = {}
    for name in dict.fromkeys([*workload.attributes, *others]):
        column = table.columns[name]
        if column.slice:
            slices.setdefault(column.slice, []).append(name)
        else:
            part = _column_part(workload, table, name, name == valued, learnt)
            parts.append(_unmixed(part, table) if name in mixed else part)
    parts += [_slice_part(workload, table, members, valued, learnt) for members in slices.values()]
    return parts


def _column_part(workload: Workload, table: ReadTable, name: str, valued: bool, learnt: bool) -> ProductPart:
    column = table.columns[name]
    cells, cell_of_row = _cells(column, table, valued, learnt)
    position = workload.attributes.index(name) if name in workload.attributes else None

    def of_any_value() -> FloatArray:
        """What a query without a predicate on this attribute takes: every row, NULL and gaps included."""
        if column.lists_nodes and isinstance(cells, SpreadCells):
            return cells.records
        return cells.shares(np.ones((1, column.domain.size), dtype=bool), True)[:, 0] if valued else np.ones(1)

    def shares(batch: Workload) -> FloatArray:
        if position is None:
            return np.repeat(of_any_value()[:, None], batch.n, axis=1)
        found = cells.shares(batch.matches[position], batch.interval[position])
        free = ~batch.used[:, position]
        if free.any():
            found[:, free] = of_any_value()[:, None]
        return found

    cells_seen = int(cell_of_row.max(initial=-1)) + 1
    if not column.plain or column.channel is not None or valued or position is None:
        return ProductPart(shares, cell_of_row, cells_seen)
    return ProductPart(shares, cell_of_row, cells_seen, requested=lambda batch: batch.matches[position])


def _unmixed(part: ProductPart, table: ReadTable) -> ProductPart:
    """Undo replacement: (own share - (1 - q) * mean share) / q (see `duckdb_anon.rewrite.shapes.replaced`)."""
    chosen = table.kept
    frequency = np.bincount(part.cell_of_row, minlength=part.cells) / max(table.rows, 1)

    def shares(batch: Workload) -> FloatArray:
        own_shares = part.shares(batch)
        return (own_shares - (1 - chosen) * (frequency[: len(own_shares)] @ own_shares[: len(frequency)])) / chosen

    return replace(part, shares=shares, requested=None)


def _slice_part(
    workload: Workload, table: ReadTable, names: Sequence[str], valued: str | None, learnt: bool
) -> ProductPart:
    """A permuted column: the share of a bucket is the mean over its cells of the product of their shares."""
    fields = [_column_part(workload, table, name, name == valued, learnt) for name in names]
    bucket = table.buckets()
    order = np.argsort(bucket, kind="stable")
    _, starts, size = np.unique(bucket[order], return_index=True, return_counts=True)

    ends = np.append(starts, len(order))

    def shares(batch: Workload) -> FloatArray:
        product = Product(batch, fields)
        means = np.empty((len(starts), batch.n))
        at = 0
        while at < len(starts):
            # whole buckets, as many as fit a block
            stop = max(int(np.searchsorted(ends, ends[at] + BLOCK, side="right")) - 1, at + 1)
            found = product.of(order[ends[at] : ends[stop]])
            kind = np.float64 if found.dtype == np.float64 else np.int64
            means[at:stop] = np.add.reduceat(found, ends[at:stop] - ends[at], axis=0, dtype=kind)
            at = stop
        return means / size[:, None]

    cell_of_row = np.empty(len(bucket), dtype=np.int64)
    cell_of_row[order] = np.repeat(np.arange(len(starts)), size)
    return ProductPart(shares, cell_of_row, len(starts))


def _cells(
    column: ReadColumn, table: ReadTable, valued: bool, learnt: bool
) -> tuple[Intervals | SpreadCells | InvertedValues, IntArray]:
    """Distinct cells of a column and the cell of each row."""
    values = _values(column) if valued else None
    if column.channel is not None:
        return InvertedValues(column.domain.size, column.channel, values), column.value_codes().astype(np.int64)
    if column.interval:
        return _intervals(column, table, valued, learnt)
    return _spread(column, table, values, learnt and column.counts is None)


def _spread(
    column: ReadColumn, table: ReadTable, values: FloatArray | None, learnt: bool
) -> tuple[SpreadCells, IntArray]:
    """Cells that name the values they cover, or are nodes of a hierarchy."""
    if column.plain:
        # a code is its own cell; the last one, -1, is no value
        codes = column.value_codes().astype(np.int64)
        return SpreadCells(sparse.eye(column.domain.size + 1, column.domain.size, format="csr"), values), codes
    cells = PublishedCells.distinct(column)
    shares, tree = cells.shares.copy(), column.domain.hierarchy
    null = column.domain.null_code
    if column.node is not None and tree is not None and column.domain.leaf_of_code is not None and null >= 0:
        if tree.node_of_leaf[column.domain.leaf_of_code[null]] not in column.node:
            # whether a root stands for NULL too is seen only where NULL itself is released
            records = np.asarray(shares.sum(axis=1)).ravel()
            shares.data[shares.indices == null] = 0.0
            left = np.asarray(shares.sum(axis=1)).ravel()
            shares.data *= np.repeat(records / np.where(left > 0, left, 1.0), np.diff(shares.indptr))
    if learnt and not column.lists_nodes:
        rows = np.bincount(cells.of_row, table.row_weights(), minlength=cells.number).astype(np.float64)
        codes, starts = shares.indices.astype(np.int64), shares.indptr.astype(np.int64)
        shares.data = member_weights(codes, None if column.node is None else shares.data, starts, rows)
    return SpreadCells(shares, values), cells.of_row


def _values(column: ReadColumn) -> FloatArray:
    domain = column.domain
    if domain.kind != "ordered":
        raise ColumnError(f"workload_error: column '{domain.name}' holds no numbers to sum")
    return np.where(np.arange(domain.size) < domain.special_from, domain.positions, 0.0)


def _intervals(column: ReadColumn, table: ReadTable, valued: bool, learnt: bool) -> tuple[Intervals, IntArray]:
    domain = column.domain
    assert column.lower is not None and column.upper is not None  # noqa: S101 -- the shape says so
    pairs = np.stack([column.lower, column.upper], axis=1).astype(np.int64)
    cells, cell_of_row = np.unique(pairs, axis=0, return_inverse=True)
    places = _places(domain)
    at = np.append(places, np.nan)  # code -1 takes the NaN
    lower, upper = at[cells[:, 0]], at[cells[:, 1]]
    lower[(cells[:, 0] == domain.null_code) & (cells[:, 0] >= 0)] = np.nan
    codes = np.argsort(places, kind="stable")
    codes = codes[np.isfinite(places[codes])]
    step = 1.0 if domain.discrete else 0.0
    cell_of_row = cell_of_row.ravel().astype(np.int64)
    weights = table.row_weights() * learnt if table.counted else np.full(table.rows, learnt)
    rows = np.bincount(cell_of_row, weights, minlength=len(cells)).astype(np.float64)
    return Intervals(lower, upper, places[codes], codes, step, rows, valued), cell_of_row


def _places(domain: Attribute) -> FloatArray:
    """Place of each code on the number line, infinity for NULL and what is not finite."""
    if domain.kind == "ordered":
        return np.where(np.arange(domain.size) < domain.special_from, domain.positions, np.inf)
    # numbers taken as names are coded in the order of their text, but their boxes are intervals of numbers
    try:
        numbers = [float(text) for text in domain.literals[: domain.size - (domain.null_code >= 0)]]
    except ValueError as error:
        raise ColumnError(
            f"workload_error: column '{domain.name}' is published as intervals but taken as categorical; leave "
            "it out of categorical := [...]"
        ) from error
    return np.array(numbers + [np.inf] * (domain.null_code >= 0))
