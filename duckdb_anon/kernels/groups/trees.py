"""Lowest common ancestors of many groups at once.

The leaves below a node are consecutive, so the lowest common ancestor of a set of leaves is that of its
smallest and largest. Ancestors are kept as one row a depth; cost: depth times number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.table import FloatArray, Hierarchy, IntArray


@dataclass(frozen=True)
class Tree:
    """A hierarchy prepared for cutting.

    Attributes:
        hierarchy: the tree itself.
        ancestors: node above each leaf at each depth (0 = root), shape (depths, leaves); a leaf stands for
            itself at all depths below its own.
        ordinal: place of each node among its siblings.
        most_children: largest number of children of a node.
    """

    hierarchy: Hierarchy
    ancestors: IntArray
    ordinal: IntArray
    most_children: int

    @staticmethod
    def of(hierarchy: Hierarchy) -> Tree:
        """Prepare a hierarchy."""
        parent = hierarchy.parent.astype(np.int64)
        chains = [hierarchy.node_of_leaf.astype(np.int64)]
        while (parent[chains[-1]] >= 0).any():
            above = parent[chains[-1]]
            chains.append(np.where(above < 0, chains[-1], above))
        depth = np.sum([chain != 0 for chain in chains], axis=0)
        deepest = len(chains) - 1
        ancestors = np.empty((len(chains), len(chains[0])), dtype=np.int64)
        leaf = np.arange(len(chains[0]))
        for level in range(len(chains)):
            up = np.maximum(depth - level, 0)
            ancestors[level] = np.array(chains)[np.minimum(up, deepest), leaf]
        order = np.argsort(parent, kind="stable")
        sorted_parent = parent[order]
        ordinal = np.empty(len(parent), dtype=np.int64)
        ordinal[order] = np.arange(len(parent)) - np.searchsorted(sorted_parent, sorted_parent)
        return Tree(hierarchy, ancestors, ordinal, int(ordinal.max()) + 1)

    def common(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Return node and depth of the lowest common ancestor of leaves low .. high."""
        depth = (self.ancestors[:, low] == self.ancestors[:, high]).sum(axis=0) - 1
        return self.ancestors[depth, low], depth

    def share(self, low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
        """Return leaves below the common ancestor over all leaves, 0 for a single leaf."""
        node, _ = self.common(low, high)
        covered = self.hierarchy.leaf_count[node] / self.hierarchy.leaves
        share: FloatArray = np.where(low == high, 0.0, covered)
        return share
