"""Subdivision of groups into small ones whose sensitive values all differ.

Guarantee: every resulting group has at least l rows and no sensitive value twice, so the share of each is
at most 1/l; checked on the result. The step is that of m-invariance (Xiao and Tao 2007, assignment phase),
applied to each group on its own: the most frequent values are dealt out first, as many rounds at once as
leave the rest eligible. MuCo's experiments (Li et al., arXiv 2008.10771, section 5) subdivide their
Mondrian groups this way. All groups take their rounds together.

Cost: a sort of the rows, then one sort of the remaining (group, value) cells per round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckdb_anon.kernels.groups.packed import offsets_of, order_by, ranges, run_starts
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.table import CodeArray, IntArray


class _Stock(NamedTuple):
    """Rows still to be dealt: one entry a (leaf, sensitive value), with the place of its next row."""

    leaf: IntArray
    rows: IntArray
    next_row: IntArray


class _Deal(NamedTuple):
    """What one round deals: `groups[i]` new groups in leaf i, from its `values[i]` top values."""

    values: IntArray
    groups: IntArray


def assign(
    group_of_row: IntArray,
    sensitive_codes: CodeArray,
    least: int,
    order: IntArray | None = None,
) -> IntArray:
    """Subdivide groups into groups of at least l rows with pairwise different sensitive values.

    Args:
        group_of_row: group of each row, 0-based, shape (n,); each group frequency l-diverse.
        sensitive_codes: sensitive code of each row, shape (n,).
        least: l, the least number of rows, and of different sensitive values, of a new group.
        order: row numbers in the order in which rows of equal group and value are dealt; table order if None.

    Returns:
        New group of each row, shape (n,), 0-based; numbers follow round and old group.

    Raises:
        RequirementError: some group is not frequency l-diverse.

    >>> group = np.zeros(5, dtype=np.int64)
    >>> assign(group, np.array([0, 0, 1, 1, 2], dtype=np.int32), 2).tolist()
    [0, 1, 0, 1, 1]
    """
    n = len(group_of_row)
    result = np.full(n, -1, dtype=np.int64)
    if n == 0:
        return result
    order = np.arange(n) if order is None else order
    leaf_of, code_of = group_of_row[order], sensitive_codes[order]
    sorted_rows = order[order_by(leaf_of, code_of, int(sensitive_codes.max()) + 1)]
    leaf, code = group_of_row[sorted_rows], sensitive_codes[sorted_rows].astype(np.int64)
    starts = run_starts(leaf * (int(code.max()) + 1) + code)
    stock = _Stock(leaf[starts], np.diff(starts, append=n), starts)
    finished = 0
    while len(stock.leaf):
        stock, finished = _round(stock, least, sorted_rows, result, finished)
    _check(result, sensitive_codes, least, finished)
    return result


def _round(stock: _Stock, least: int, sorted_rows: IntArray, result: IntArray, finished: int) -> tuple[_Stock, int]:
    """Deal once in every leaf; fills `result` and returns the rest and the number of groups so far."""
    most = int(stock.rows.max())
    by_count = order_by(stock.leaf, most - stock.rows, most + 1)
    stock = _Stock(*(field[by_count] for field in stock))
    starts = run_starts(stock.leaf)
    offsets = np.append(starts, len(stock.leaf))
    deal = _best_deal(stock, offsets, least)
    first_group = finished + np.cumsum(deal.groups) - deal.groups
    dealt = ranges(starts, deal.values)
    leaf = np.repeat(np.arange(len(starts)), deal.values)
    places = ranges(stock.next_row[dealt], deal.groups[leaf])
    result[sorted_rows[places]] = ranges(first_group[leaf], deal.groups[leaf])
    stock.rows[dealt] -= deal.groups[leaf]
    stock.next_row[dealt] += deal.groups[leaf]
    left = stock.rows > 0
    return _Stock(*(field[left] for field in stock)), finished + int(deal.groups.sum())


def _best_deal(stock: _Stock, offsets: IntArray, least: int) -> _Deal:
    """For each leaf the smallest number of values, l or more, that can be dealt, and how often.

    Dealing the b most frequent values a times leaves the rest eligible if its most frequent value, then
    either the first or the (b + 1)-th, has a share of at most 1/l. All values once is the last resort.
    """
    starts, sizes = offsets[:-1], np.diff(offsets)
    leaf = np.repeat(np.arange(len(sizes)), sizes)
    values = np.arange(len(leaf)) - starts[leaf] + 1
    rows = np.add.reduceat(stock.rows, starts)[leaf]
    following = np.append(stock.rows[1:], 0)
    following[offsets[1:] - 1] = 0
    slack = rows - least * stock.rows[starts][leaf]
    groups = np.minimum(stock.rows, (rows - least * following) // values)
    more = values > least
    groups[more] = np.minimum(groups[more], slack[more] // (values[more] - least))
    allowed = (values >= least) & (groups >= 1) & (slack >= 0)
    last = values == sizes[leaf]
    choice = np.flatnonzero(allowed | last)
    choice = choice[run_starts(leaf[choice])]
    return _Deal(values[choice], np.where(allowed[choice], groups[choice], 1))


def _check(result: IntArray, sensitive_codes: CodeArray, least: int, groups: int) -> None:
    order = order_by(result, sensitive_codes, int(sensitive_codes.max()) + 1)
    group, code = result[order], sensitive_codes[order]
    repeated = ((group[1:] == group[:-1]) & (code[1:] == code[:-1])).any()
    if repeated or (np.diff(offsets_of(group, groups)) < least).any():
        raise RequirementError(
            f"subdivide := 'assign': a group is not frequency l-diverse with l = {least}; partition with this l first"
        )
