"""Subdivision of groups into small ones whose sensitive values all differ.

Guarantee: every resulting group has at least l rows and no sensitive value twice, so the share of each is
at most 1/l; checked on the result. The step is that of m-invariance (Xiao and Tao 2007, assignment phase),
applied to each group on its own: the most frequent values are dealt out first, as many rounds at once as
leave the rest eligible. MuCo's experiments (Li et al., arXiv 2008.10771, section 5) subdivide their
Mondrian groups this way.

Cost: a sort of the rows, then for each group and round a pass over its values.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.partition.sort_count import offsets_of, order_by, run_starts
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import stop_flag


def assign(group_of_row: IntArray, sensitive_codes: CodeArray, least: int, order: IntArray | None = None) -> IntArray:
    """Subdivide groups into groups of at least l rows with pairwise different sensitive values.

    Args:
        group_of_row: group of each row, 0-based, shape (n,); each group frequency l-diverse.
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
    stock = np.diff(starts, append=n)
    leaves = np.append(run_starts(leaf[starts]), len(starts))
    values = np.arange(len(starts), dtype=np.int64)
    finished = _deal_all(leaves, values, stock, starts, sorted_rows.astype(np.int64), least, result, stop_flag())
    _check(result, sensitive_codes, least, finished)
    return result


@compiled
def _deal_all(
    leaves: IntArray,
    values: IntArray,
    stock: IntArray,
    next_row: IntArray,
    sorted_rows: IntArray,
    least: int,
    result: IntArray,
    stop: IntArray,
) -> int:
    """Deal in every leaf until nothing is left; return the number of groups."""
    finished = 0
    for leaf in range(len(leaves) - 1):
        first, end = leaves[leaf], leaves[leaf + 1]
        while stop[0] == 0:
            _sort_by_stock(values, stock, first, end)
            while end > first and stock[values[end - 1]] == 0:
                end -= 1
            if end == first:
                break
            taken, groups = _best_deal(values, stock, first, end, least)
            for index in range(first, first + taken):
                value = values[index]
                for group in range(groups):
                    result[sorted_rows[next_row[value] + group]] = finished + group
                next_row[value] += groups
                stock[value] -= groups
            finished += groups
    return finished


@compiled
def _best_deal(values: IntArray, stock: IntArray, first: int, end: int, least: int) -> tuple[int, int]:
    """Return the smallest number of values, l or more, that can be dealt, and how often.

    Dealing the b most frequent values a times leaves the rest eligible if its most frequent value, then
    either the first or the (b + 1)-th, has a share of at most 1/l. All values once is the last resort.
    """
    rows = 0
    for index in range(first, end):
        rows += stock[values[index]]
    slack = rows - least * stock[values[first]]
    if slack >= 0:
        for taken in range(least, end - first + 1):
            following = 0 if first + taken == end else stock[values[first + taken]]
            groups = min(stock[values[first + taken - 1]], (rows - least * following) // taken)
            if taken > least:
                groups = min(groups, slack // (taken - least))
            if groups >= 1:
                return taken, groups
    return end - first, 1


@compiled
def _sort_by_stock(values: IntArray, stock: IntArray, first: int, end: int) -> None:
    """Sort by decreasing stock; equal ones stay in order, and nearly sorted values cost little."""
    for index in range(first + 1, end):
        value = values[index]
        to = index
        while to > first and stock[values[to - 1]] < stock[value]:
            values[to] = values[to - 1]
            to -= 1
        values[to] = value


def _check(result: IntArray, sensitive_codes: CodeArray, least: int, groups: int) -> None:
    order = order_by(result, sensitive_codes, int(sensitive_codes.max()) + 1)
    group, code = result[order], sensitive_codes[order]
    repeated = ((group[1:] == group[:-1]) & (code[1:] == code[:-1])).any()
    if repeated or (np.diff(offsets_of(group, groups)) < least).any():
        raise RequirementError(
            f"subdivide := 'assign': a group is not frequency l-diverse with l = {least}; partition with this l first"
        )
