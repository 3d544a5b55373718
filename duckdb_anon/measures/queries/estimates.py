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

from duckdb_anon.kernels.interval_em import member_weights
from duckdb_anon.kernels.randomized_response.channel import InvertedValues
from duckdb_anon.kernels.row_keys import keys_of_lists
from duckdb_anon.measures.queries.factor_product import BLOCK, Product, ProductPart, summed
from duckdb_anon.measures.queries.selectivity import Intervals, ListCells, Members
from duckdb_anon.measures.queries.workload import Workload
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.release_table import ReadColumn, ReadTable


def estimated_answers(
    workload: Workload,
    table: ReadTable,
    column: str | None,
    items: Sequence[str] = (),
    learnt: bool = True,
) -> FloatArray:
    """Estimate the answer of each query from a release.

    Args:
        workload: n queries; every attribute is a column of the release.
        table: the release, coded together with the original.
        column: the column that is summed, None for COUNT(*).
        items: columns of which the release has a list of nodes a person and the original a row a value.
        learnt: whether the values of a cell weigh what all cells of the column tell, or the same.

    Returns:
        Shape (n,).

    Raises:
        ColumnError: when the release cannot say what a column's sum is.
    """
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
    return column.shape == "value" and not column.slice and column.channel is None


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

    def whole() -> FloatArray:
        """What a query without a predicate on this attribute takes: every row, NULL and gaps included."""
        if isinstance(cells, ListCells):
            return cells.rows
        return cells.shares(np.ones((1, column.domain.size), dtype=bool), True)[:, 0] if valued else np.ones(1)

    def shares(batch: Workload) -> FloatArray:
        if position is None:
            return np.repeat(whole()[:, None], batch.n, axis=1)
        found = cells.shares(batch.matches[position], batch.interval[position])
        free = ~batch.used[:, position]
        if free.any():
            found[:, free] = whole()[:, None]
        return found

    cells_seen = int(cell_of_row.max(initial=-1)) + 1
    if column.shape != "value" or column.channel is not None or valued or position is None:
        return ProductPart(shares, cell_of_row, cells_seen)
    return ProductPart(shares, cell_of_row, cells_seen, asked=lambda batch: batch.matches[position])


def _unmixed(part: ProductPart, table: ReadTable) -> ProductPart:
    """Undo replacement: (own share - (1 - q) * mean share) / q (see `duckdb_anon.rewrite.shapes.replaced`)."""
    kept = table.kept
    frequency = np.bincount(part.cell_of_row, minlength=part.cells) / max(table.rows, 1)

    def shares(batch: Workload) -> FloatArray:
        own = part.shares(batch)
        return (own - (1 - kept) * (frequency[: len(own)] @ own[: len(frequency)])) / kept

    return replace(part, shares=shares, asked=None)


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
) -> tuple[Intervals | Members | ListCells | InvertedValues, IntArray]:
    """Distinct cells of a column and the cell of each row."""
    values = _values(column) if valued else None
    if column.shape == "value":
        codes = column.value_codes()
        size = column.domain.size
        if column.channel is not None:
            return InvertedValues(size, column.channel, values), codes.astype(np.int64)
        return Members(np.arange(size + 1), np.arange(size), np.ones(size), values), codes.astype(np.int64)
    if column.shape == "interval":
        return _intervals(column, table, valued, learnt)
    if column.node is not None and column.offsets is None:
        nodes, cell_of_row = _nodes(column, column.node, values)
        return (_learnt(nodes, cell_of_row, table) if learnt else nodes), cell_of_row
    if column.node is not None:
        return _node_lists(column, values)
    bags, cell_of_row = _bags(column, values)
    return (_learnt(bags, cell_of_row, table) if learnt and column.counts is None else bags), cell_of_row


def _learnt(members: Members, cell_of_row: IntArray, table: ReadTable) -> Members:
    """Cells whose members weigh what all cells of the column tell of them."""
    rows = np.bincount(cell_of_row, table.row_weights(), minlength=len(members.offsets) - 1).astype(np.float64)
    weights = member_weights(members.told_apart, members.counts, members.offsets, rows)
    return replace(members, counts=weights)


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
        known = [float(text) for text in domain.literals[: domain.size - (domain.null_code >= 0)]]
    except ValueError as error:
        raise ColumnError(
            f"workload_error: column '{domain.name}' is published as intervals but taken as categorical; leave "
            "it out of categorical := [...]"
        ) from error
    return np.array(known + [np.inf] * (domain.null_code >= 0))


def _nodes(column: ReadColumn, nodes: CodeArray, values: FloatArray | None) -> tuple[Members, IntArray]:
    """The distinct ones of `nodes` as cells, and the cell of each."""
    domain = column.domain
    assert domain.hierarchy is not None  # noqa: S101 -- the shape says so
    assert domain.leaf_of_code is not None  # noqa: S101 -- hierarchies have leaves
    tree = domain.hierarchy
    node, cell_of_row = np.unique(nodes, return_inverse=True)
    code_of_leaf = np.full(tree.leaves, -1, dtype=np.int64)
    code_of_leaf[domain.leaf_of_code] = np.arange(len(domain.leaf_of_code))
    weight_of_leaf = np.ones(tree.leaves)
    if domain.null_code >= 0:
        null_leaf = domain.leaf_of_code[domain.null_code]
        code_of_leaf[null_leaf] = -1
        # whether a root stands for NULL too is seen only where NULL itself is released
        weight_of_leaf[null_leaf] = float(tree.node_of_leaf[null_leaf] in node)
    leaves = tree.leaf_count[node].astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(leaves)])
    inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], leaves)
    leaf = np.repeat(tree.first_leaf[node], leaves) + inside
    found = Members(offsets, code_of_leaf[leaf], weight_of_leaf[leaf], values, leaf.astype(np.int64))
    return found, cell_of_row.astype(np.int64)


def _bags(column: ReadColumn, values: FloatArray | None) -> tuple[Members, IntArray]:
    """Sets and bags; rows of one bucket, or with the same members, share a cell."""
    assert column.offsets is not None and column.codes is not None  # noqa: S101 -- the shape says so
    codes = column.codes.astype(np.int64)
    counts = np.ones(len(codes)) if column.counts is None else column.counts.astype(np.float64)
    starts, entry, cell_of_row = _different(codes, counts, column.offsets)
    chosen = np.where(codes[entry] == column.domain.null_code, -1, codes[entry])
    return Members(starts, chosen, counts[entry], values), cell_of_row


def _node_lists(column: ReadColumn, values: FloatArray | None) -> tuple[ListCells, IntArray]:
    """Lists of nodes, a row of the original each; persons with equal lists share a cell."""
    assert column.offsets is not None and column.node is not None  # noqa: S101 -- the shape says so
    nodes, number = _nodes(column, column.node, values)
    starts, entry, cell_of_row = _different(number, np.ones(len(number)), column.offsets)
    shape = (len(starts) - 1, len(nodes.offsets) - 1)
    held = sparse.csr_matrix((np.ones(len(entry)), number[entry], starts), shape=shape)
    held.sum_duplicates()
    return ListCells(nodes, held), cell_of_row


def _different(members: IntArray, counts: FloatArray, offsets: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Rows with different members: starts of each in a list of entries, those entries, and which one each row has."""
    length = np.diff(offsets)
    cell_of_row, first = keys_of_lists(offsets, members, counts.astype(np.int64))
    size = length[first]
    starts = np.concatenate([[0], np.cumsum(size)])
    entry = np.arange(starts[-1]) - np.repeat(starts[:-1], size) + np.repeat(offsets[first], size)
    return starts, entry, cell_of_row
