"""t-closeness: the sensitive values of a group are distributed much as those of the whole table.

Guarantee: earth mover's distance between group and table at most t (Li, Li and Venkatasubramanian 2007),
with their three ground distances. Values of the table that a group lacks count as 0. All distances are
closed forms over the values a group does have, so the cost does not depend on the size of the domain:
linear in the occupied (group, value) cells, times the height for hierarchies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import EQUAL, HIERARCHICAL, ORDERED, TOLERANCE, Check
from duckdb_anon.kernels.partition.privacy_models import BoolArray, PrivacyModel
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.hierarchy import Hierarchy

Ground = Literal["equal", "ordered", "hierarchical"]


@dataclass(frozen=True, eq=False)
class TCloseness(PrivacyModel):
    """Earth mover's distance to the table's distribution at most t."""

    t: float  # largest distance allowed, 0 .. 1 (tolerance 1e-9)
    # 'equal' (any two values are 1 apart), 'ordered' (values i and j of m are |i - j| / (m - 1) apart, codes in order
    # of value) or 'hierarchical' (height of the lowest common ancestor over the height of the tree)
    ground: Ground = "equal"
    hierarchy: Hierarchy | None = None  # the tree, for 'hierarchical'
    leaf_of_code: CodeArray | None = None  # its leaf for each sensitive code
    # rows of the whole table with each code, where the rows at hand are a part of it
    whole_counts: IntArray | None = None

    def distance(self, groups: Groups) -> FloatArray:
        """Return the earth mover's distance of each group to the table, shape (groups,)."""
        if self.whole_counts is not None:
            groups = Groups.of_cells(groups.cells, self.whole_counts, groups.sizes)
        if self.ground == "equal":
            return equal_distance(groups)
        if self.ground == "ordered":
            return ordered_distance(groups)
        if self.hierarchy is None or self.leaf_of_code is None:
            raise ValueError("the hierarchical distance needs a hierarchy and the leaf of each code")
        return hierarchical_distance(groups, self.hierarchy, self.leaf_of_code)

    def checks(self, table_counts: IntArray) -> list[Check]:
        counts = table_counts if self.whole_counts is None else self.whole_counts
        shares = counts / counts.sum()
        if self.ground == "equal":
            return [Check(EQUAL, (self.t,), shares=shares)]
        if self.ground == "ordered":
            running = np.cumsum(shares)
            return [Check(ORDERED, (self.t,), shares=np.concatenate((running, [0.0], np.cumsum(running))))]
        if self.hierarchy is None or self.leaf_of_code is None:
            raise ValueError("the hierarchical distance needs a hierarchy and the leaf of each code")
        step, levels = _steps(self.hierarchy), _levels(self.hierarchy, self.leaf_of_code)
        below = np.zeros(len(step))
        for nodes in levels:
            below += np.bincount(nodes, weights=shares, minlength=len(step))
        below[0] = 0.0
        return [
            Check(
                HIERARCHICAL,
                (self.t,),
                codes=np.concatenate(([len(levels), len(shares)], *levels)).astype(np.int32),
                shares=np.concatenate(([float(below @ step)], np.stack((step, below), axis=1).ravel())),
            )
        ]

    def holds(self, groups: Groups) -> BoolArray:
        return np.asarray(self.distance(groups) <= self.t + TOLERANCE)

    def best_achievable(self, table: Groups) -> str:
        smallest = float(self.distance(table).max(initial=0.0))
        return f"t = {self.t:g} was requested; the smallest t this table can meet is {smallest:.6g}"


def equal_distance(groups: Groups) -> FloatArray:
    """Return half the sum of |p - q|, which is the sum of the positive p - q.

    >>> groups = Groups(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([2, 1]))
    >>> equal_distance(groups).round(4).tolist()
    [0.1667, 0.3333]
    """
    cells = groups.cells
    share = cells.counts / groups.totals[cells.group]
    return groups.sum_cells(np.maximum(share - _table_shares(groups)[cells.code], 0.0))


def ordered_distance(groups: Groups) -> FloatArray:
    """Return sum over i < m of |P(i) - Q(i)| / (m - 1), P and Q the cumulative shares of group and table.

    P is constant between two values of the group, Q rises, so |P - Q| is summed over each such stretch from
    the prefix sums of Q and the place where Q passes P.

    >>> groups = Groups(np.zeros(3, dtype=np.int64), np.array([0, 1, 2]), np.ones(9, dtype=np.int64))
    >>> ordered_distance(groups).round(6).tolist()
    [0.375]
    """
    domain = len(groups.table_counts)
    if domain < 2:
        return np.zeros(len(groups))
    cells = groups.cells
    table = np.cumsum(_table_shares(groups))
    prefix = np.concatenate(([0.0], np.cumsum(table)))
    running = np.cumsum(cells.counts)
    before = running[cells.offsets[:-1]] - cells.counts[cells.offsets[:-1]]
    level = (running - before[cells.group]) / groups.totals[cells.group]
    end = np.append(cells.code[1:], domain - 1)
    end[cells.offsets[1:] - 1] = domain - 1
    passed = np.clip(np.searchsorted(table, level), cells.code, np.maximum(end, cells.code))
    below = level * (passed - cells.code) - (prefix[passed] - prefix[cells.code])
    above = (prefix[end] - prefix[passed]) - level * (end - passed)
    # Values before the first one of the group: P is 0 there.
    head = prefix[cells.code[cells.offsets[:-1]]]
    return (groups.sum_cells(below + above) + head) / (domain - 1)


def hierarchical_distance(groups: Groups, hierarchy: Hierarchy, leaf_of_code: CodeArray) -> FloatArray:
    """Return the distance over a tree.

    Mass moved across node N costs height(N) / H; with e the share of group minus table below a node, that
    adds up to the sum over all nodes but the root of |e| (height(parent) - height(node)) / 2 H. Nodes
    without rows of the group have e = -q, summed once for the table and corrected where there are rows.
    """
    if hierarchy.height == 0:
        return np.zeros(len(groups))
    step, shares, cells = _steps(hierarchy), _table_shares(groups), groups.cells
    total = np.zeros(len(groups))
    for node_of_code in _levels(hierarchy, leaf_of_code):
        table = np.bincount(node_of_code, weights=shares, minlength=len(step))
        total += float((table * step).sum())
        group, node, count, _ = groups.recode_cells(node_of_code[cells.code], len(step))
        share = count / groups.totals[group]
        excess = (np.abs(share - table[node]) - table[node]) * step[node]
        total += np.bincount(group, weights=excess, minlength=len(groups))
    return total


def _steps(hierarchy: Hierarchy) -> FloatArray:
    """What mass moved through each node costs, half of it on either side."""
    step = (hierarchy.level[hierarchy.parent] - hierarchy.level) / (2.0 * max(1, hierarchy.height))
    step[0] = 0.0
    return np.asarray(step, dtype=np.float64)


def _levels(hierarchy: Hierarchy, leaf_of_code: CodeArray) -> list[IntArray]:
    """Node of each code at each depth below the root; the root (which costs nothing) where it was met before.

    A leaf above a depth stands for itself there again.
    """
    counted = np.zeros(len(hierarchy.parent), dtype=bool)
    levels = []
    for ancestors in hierarchy.ancestors[1:]:
        node_of_code = ancestors[leaf_of_code.astype(np.int64)]
        node_of_code = np.where(counted[node_of_code], 0, node_of_code)
        counted[node_of_code] = True
        levels.append(node_of_code)
    return levels


def _table_shares(groups: Groups) -> FloatArray:
    shares: FloatArray = groups.table_counts / groups.table_counts.sum()
    return shares
