"""Trees of binned columns: structure by mutual information, tables with smoothing.

The tree is Chow and Liu's (1968): the spanning tree of largest mutual information. Where one column tells a row's
*level*, information and tables are conditional on it (tree-augmented naive Bayes: Friedman, Geiger and Goldszmidt
1997). A table is smoothed towards the product of its two margins, and each of these towards the column's shares, by so
many rows as `Options` says.
Cost: a pass over (a sample of) the rows for each pair of columns, and one over all rows for each edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from duckdb_anon.kernels.plausible.sampling import Tree
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

_WORK = 4e7
"""Cells that the search for a structure reads at most."""
_FEWEST = 2000
Structure: TypeAlias = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Options:
    """How a model is learnt.

    Attributes:
        levels: levels that the values of one column tell; 1 for a plain tree.
        rounds: rounds of completing rows and fitting the tree before the first draw, of buckets.
        channel_rounds: the same of randomized columns.
        cell_rounds: the same where all cells are generalized ones.
        swaps: proposals for each row of a bucket in a round.
        prior: rows by which a table is drawn to the product of its margins.
        margin_prior: rows by which a margin is drawn to the column's shares.
    """

    levels: int = 8
    rounds: int = 6
    channel_rounds: int = 11
    cell_rounds: int = 1
    swaps: int = 4
    prior: float = 100.0
    margin_prior: float = 100.0


@dataclass(frozen=True)
class Completion:
    """Completed rows.

    Attributes:
        state: bin of each row, shape (columns, rows).
        sizes: bins of each column.
        level: level of each row, shape (rows,).
        levels: number of levels.
    """

    state: CodeArray
    sizes: IntArray
    level: CodeArray
    levels: int

    def counts(self, above: int, below: int, rows: IntArray) -> FloatArray:
        """Some rows by level and the bins of two columns, shape (levels, bins above, bins below)."""
        shape = self.levels, int(self.sizes[above]), int(self.sizes[below])
        cell = np.ravel_multi_index((self.level[rows], self.state[above][rows], self.state[below][rows]), shape)
        return np.bincount(cell, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    def sample(self) -> IntArray:
        """Rows that pairs of columns are counted on, evenly spread."""
        columns, rows = self.state.shape
        most = max(_FEWEST, int(_WORK / max(1, columns * columns)))
        return np.arange(0, rows, max(1, rows // most))


def independent(shares: list[FloatArray]) -> Tree:
    """Columns without edges, each with its shares."""
    columns = np.arange(len(shares))
    return _flat(columns, np.full(len(shares), -1), [share[None, None] for share in shares])


def information(completion: Completion) -> FloatArray:
    """Mutual information of each pair of columns given the level, in nats, less its expected bias.

    Returns:
        Shape (columns, columns), symmetric, 0 on the diagonal.
    """
    rows, columns = completion.sample(), len(completion.state)
    found = np.zeros((columns, columns))
    for a in range(columns):
        for b in range(a + 1, columns):
            found[a, b] = found[b, a] = _information(completion.counts(a, b, rows))
    return found


def structure(completion: Completion, root: int) -> Structure:
    """The tree of largest information: columns, each after its parent, and the parent of each.

    `root`: its root: the column that tells levels, where there are any.
    """
    return _spanning(information(completion), root)


def fitted(completion: Completion, prior: list[FloatArray], edges: Structure, options: Options) -> Tree:
    """A tree with the tables of completed rows.

    `prior`: share of each bin before any row was completed, by column; half a row a bin in weight.
    """
    order, parent = edges
    rows = np.arange(completion.state.shape[1])
    tables: list[FloatArray] = []
    for j, size in enumerate(completion.sizes):
        counts = np.bincount(completion.state[j], minlength=size) + prior[j] * size / 2
        shares: FloatArray = np.asarray(counts / counts.sum())
        if parent[j] < 0:
            tables.append(shares[None, None])
        else:
            tables.append(_smoothed(completion.counts(int(parent[j]), j, rows), shares, options))
    return _flat(order, parent, tables)


def _information(counts: FloatArray) -> float:
    above, below, total = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = counts * total[:, None, None] / (above[:, :, None] * below[:, None, :])
        nats = np.nansum(counts * np.log(ratio))
    free = (np.count_nonzero(above, axis=1) - 1) * (np.count_nonzero(below, axis=1) - 1)
    return float((nats - np.maximum(free, 0).sum() / 2) / max(total.sum(), 1.0))


def _spanning(weights: FloatArray, root: int) -> Structure:
    """Prim's tree of largest weight."""
    columns = len(weights)
    order, parent = [root], np.full(columns, -1)
    best, nearest = weights[root].copy(), np.full(columns, root)
    best[root] = -np.inf
    for _ in range(columns - 1):
        j = int(np.argmax(best))
        parent[j] = nearest[j]
        order.append(j)
        best[j] = -np.inf
        better = (weights[j] > best) & (best > -np.inf)
        best[better], nearest[better] = weights[j][better], j
    return np.array(order), parent


def _smoothed(counts: FloatArray, shares: FloatArray, options: Options) -> FloatArray:
    """Tables of a column given level and parent; one table where there is one level."""

    def given(margin: FloatArray) -> FloatArray:
        prior = options.margin_prior
        return np.asarray((margin + prior * shares) / (margin.sum(axis=1, keepdims=True) + prior))

    of_parent = given(counts.sum(axis=0))
    if len(counts) == 1:
        return of_parent[None]
    product = of_parent[None] * (given(counts.sum(axis=1)) / shares)[:, None]
    product /= product.sum(axis=2, keepdims=True)
    return np.asarray((counts + options.prior * product) / (counts.sum(axis=2, keepdims=True) + options.prior))


def _flat(order: IntArray, parent: IntArray, tables: list[FloatArray]) -> Tree:
    start = np.concatenate([[0], np.cumsum([table.size for table in tables])])[:-1]
    stride = np.array([table[0].size if len(table) > 1 else 0 for table in tables])
    sizes = np.array([table.shape[2] for table in tables])
    return Tree(order, parent, sizes, start, stride, np.concatenate([table.ravel() for table in tables]))
