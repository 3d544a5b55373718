"""The items of a fingerprint and the trees over them.

A fingerprint is the set of distinct sensitive values of one person (Gong, Luo, Yang, Ni & Li 2017,
section 3). With several sensitive attributes the items are tagged with their attribute and the trees stand
side by side as a forest; every person has at least one item below each root, because every source row
carries one value of each attribute (NULL is an item of its own).

Chains of nodes with one child cover the same items; only the lowest node of a chain is kept, so that
descending one step always narrows what is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.model.table import CodeArray, FloatArray, Hierarchy, IntArray


@dataclass(frozen=True)
class Forest:
    """Trees over items. Nodes are numbered in preorder, tree after tree; items are leaves, left to right.

    Attributes:
        labels: label of each node, shape (nodes,).
        tree: number of the tree (sensitive attribute) of each node.
        depth: distance from the root of its tree.
        leaf_count: items at or below each node.
        ncp: normalized certainty penalty of publishing the node instead of an item, in [0, 1]: 0 for an
            item, else `leaf_count` over the items of its tree (Gong et al. 2017, equation 1).
        path: shape (levels, items): node at each depth on the way to an item, the item's own node below.
    """

    labels: tuple[str, ...]
    tree: CodeArray
    depth: CodeArray
    leaf_count: CodeArray
    ncp: FloatArray
    path: CodeArray

    @property
    def items(self) -> int:
        """Number of items of all trees."""
        return int(self.path.shape[1])

    @property
    def roots(self) -> CodeArray:
        """Root above each item."""
        roots: CodeArray = self.path[0]
        return roots

    def child(self, node: CodeArray, item: CodeArray) -> CodeArray:
        """Return the child of `node` above `item` (the node itself when it is the item)."""
        below = np.minimum(self.depth[node] + 1, len(self.path) - 1)
        child: CodeArray = self.path[below, item]
        return child


def forest_of(hierarchies: Sequence[Hierarchy]) -> Forest:
    """Put the trees of the sensitive attributes side by side.

    >>> parent, level, leaves = np.array([-1, 0, 0]), np.array([1, 0, 0]), np.array([2, 1, 1])
    >>> tree = Hierarchy(('*', 'a', 'b'), parent, level, leaves, np.array([0, 0, 1]), np.array([1, 2]))
    >>> forest_of([tree]).ncp.tolist()
    [1.0, 0.0, 0.0]
    """
    parts = [_squeezed(hierarchy) for hierarchy in hierarchies]
    deepest = max(len(path) for _, path in parts)
    node_base = np.cumsum([0] + [len(kept) for kept, _ in parts])
    paths, labels = [], []
    for base, hierarchy, (kept, path) in zip(node_base, hierarchies, parts, strict=False):
        padding = np.repeat(path[-1:], deepest - len(path), axis=0)
        paths.append(np.concatenate([path, padding]) + base)
        labels += [hierarchy.labels[node] for node in kept]
    path = np.concatenate(paths, axis=1).astype(np.int32)
    depth = np.full(len(labels), deepest, dtype=np.int32)
    leaf_count = np.zeros(len(labels), dtype=np.int32)
    for level in reversed(range(deepest)):
        depth[path[level]] = level
        leaf_count[path[level]] = np.bincount(path[level], minlength=len(labels))[path[level]]
    tree = np.repeat(np.arange(len(parts)), np.diff(node_base)).astype(np.int32)
    sizes = np.array([hierarchy.leaves for hierarchy in hierarchies], dtype=np.int64)
    ncp = np.where(leaf_count > 1, leaf_count / sizes[tree], 0.0)
    return Forest(tuple(labels), tree, depth, leaf_count, ncp, path)


def _squeezed(hierarchy: Hierarchy) -> tuple[IntArray, CodeArray]:
    """Return the nodes that differ from their only child, and the path to each leaf in their new numbers."""
    only = np.ones(len(hierarchy.parent), dtype=bool)
    inner = hierarchy.parent >= 0
    same = hierarchy.leaf_count[inner] == hierarchy.leaf_count[hierarchy.parent[inner]]
    only[hierarchy.parent[inner][same]] = False
    kept = np.flatnonzero(only)
    number = np.cumsum(only) - 1
    # In preorder the lowest node of a chain follows its chain directly, so `number` of a dropped node,
    # plus one, is that of the node standing for it.
    number = np.where(only, number, number + 1)
    up = [hierarchy.node_of_leaf]
    while (hierarchy.parent[up[-1]] >= 0).any():
        above = hierarchy.parent[up[-1]]
        up.append(np.where(above >= 0, above, up[-1]).astype(np.int32))
    columns = number[np.array(up[::-1])]
    return kept, _left_aligned(columns)


def _left_aligned(columns: IntArray) -> CodeArray:
    """Remove repetitions down each column (a path from root to leaf), filling its end with the leaf."""
    fresh = np.ones(columns.shape, dtype=bool)
    fresh[1:] = columns[1:] != columns[:-1]
    place = np.cumsum(fresh, axis=0) - 1
    result = np.repeat(columns[-1:], int(place.max()) + 1, axis=0)
    result[place, np.arange(columns.shape[1])] = columns
    return result.astype(np.int32)
