"""Trees over values: the one class of them, and the views that kernels, measures and the engine take of it.

Nodes are numbered in depth-first preorder, so the leaves below a node are consecutive and the lowest common ancestor of
a set of leaves is that of its first and its last. Several trees may be joined (`joined`). Views are computed
when they are first read. Cost: nodes, or depth times leaves for `ancestors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIDDEN_LABELS = "rare labels are numbers"
"""In the comment of a published hierarchy in which labels that few records carry are hidden."""
HIDDEN_LABEL = "(rare "
"""How such a label begins."""
NULL_LEAF = "(null)"
"""Label of the leaf that stands for NULL."""

_Integers = NDArray[np.int64]
_Codes = NDArray[np.int32]
_Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Hierarchy:
    """A tree over the values of one attribute, or several trees side by side."""

    labels: tuple[str, ...]  # label of each node, shape (nodes,)
    parent: _Codes  # parent of each node, -1 for a root
    level: _Codes  # height above the deepest leaf: 0 for leaves, `height` for the root
    leaf_count: _Codes  # number of leaves at or below each node
    # number of the first leaf below each node; its leaves are `first_leaf[v] .. first_leaf[v] + leaf_count[v] - 1` in
    # leaf numbering (left to right).
    first_leaf: _Codes
    node_of_leaf: _Codes  # node number of each leaf, shape (leaves,)
    name: str = ""  # name of the table it was read from, for messages

    @staticmethod
    def of(
        labels: Sequence[str],
        parent: Sequence[int] | NDArray[Any],
        leaves: Sequence[int] | NDArray[Any],
        name: str = "",
    ) -> Hierarchy:
        """Measure a tree.

        >>> tree = Hierarchy.of(("*", "a", "b"), (-1, 0, 0), (1, 2))
        >>> tree.height, tree.leaf_count.tolist()
        (1, [2, 1, 1])
        """
        nodes, number = len(labels), len(leaves)
        above, node_of_leaf = np.array(parent, dtype=np.int32), np.array(leaves, dtype=np.int32)
        level, leaf_count, first_leaf = [0] * nodes, [0] * nodes, [number] * nodes
        for leaf, v in enumerate(node_of_leaf.tolist()):
            leaf_count[v], first_leaf[v] = 1, leaf
        # children follow their parent in preorder, so one backward pass sums them up
        for v, p in reversed(list(enumerate(above.tolist()))):
            if p >= 0:
                level[p] = max(level[p], level[v] + 1)
                leaf_count[p] += leaf_count[v]
                first_leaf[p] = min(first_leaf[p], first_leaf[v])
        found = np.array([level, leaf_count, first_leaf], dtype=np.int32)
        return Hierarchy(tuple(labels), above, found[0], found[1], found[2], node_of_leaf, name)

    @staticmethod
    def of_paths(paths: Sequence[Sequence[str]], name: str = "") -> Hierarchy:
        """Number the nodes of leaves that are given with their ancestors.

        >>> Hierarchy.of_paths([("*", "A", "a1"), ("*", "A", "a2"), ("*", "b", "b")]).labels
        ('*', 'A', 'a1', 'a2', 'b')
        """
        number: dict[tuple[int, str], int] = {}
        labels: list[str] = []
        parent: list[int] = []
        leaves: list[int] = []
        for path in paths:
            above = -1
            for label, _ in groupby(path):
                node = number.setdefault((above, label), len(labels))
                if node == len(labels):
                    labels.append(label)
                    parent.append(above)
                above = node
            leaves.append(above)
        return Hierarchy.of(labels, parent, leaves, name)

    @staticmethod
    def joined(trees: Sequence[Hierarchy]) -> Hierarchy:
        """Put trees side by side, the nodes and leaves of each after those of the one before.

        >>> tree = Hierarchy.of(("*", "a", "b"), (-1, 0, 0), (1, 2))
        >>> both = Hierarchy.joined([tree, tree])
        >>> both.parent.tolist(), both.tree_of_node.tolist()
        ([-1, 0, 0, -1, 3, 3], [0, 0, 0, 1, 1, 1])
        """
        base = np.cumsum([0, *(len(tree.labels) for tree in trees)])
        parent = [np.where(tree.parent < 0, -1, tree.parent + b) for tree, b in zip(trees, base, strict=False)]
        leaves = [tree.node_of_leaf + b for tree, b in zip(trees, base, strict=False)]
        labels = [label for tree in trees for label in tree.labels]
        return Hierarchy.of(labels, np.concatenate(parent), np.concatenate(leaves))

    @property
    def height(self) -> int:
        """Levels above the leaves: 0 for a single node."""
        return int(self.level.max())

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return len(self.node_of_leaf)

    @cached_property
    def leaf_labels(self) -> tuple[str, ...]:
        """Label of each leaf, left to right."""
        return tuple(self.labels[v] for v in self.node_of_leaf)

    def with_null(self) -> Hierarchy:
        """The tree with a leaf for NULL under its root, after all other leaves."""
        nodes = len(self.labels)
        return Hierarchy.of(
            (*self.labels, NULL_LEAF), np.append(self.parent, 0), np.append(self.node_of_leaf, nodes), self.name
        )

    @cached_property
    def squeezed(self) -> Hierarchy:
        """The tree without nodes that have one child: a chain is its lowest node, so each step down splits leaves."""
        inner = self.parent >= 0
        same = self.leaf_count[inner] == self.leaf_count[self.parent[inner]]
        kept = np.ones(len(self.parent), dtype=bool)
        kept[self.parent[inner][same]] = False
        # in preorder the lowest node of a chain is the first kept one that follows
        number = np.cumsum(kept) - kept
        parent = np.full(int(kept.sum()), -1, dtype=np.int64)
        for v in np.flatnonzero(kept):
            above = self.parent[v]
            while above >= 0 and not kept[above]:
                above = self.parent[above]
            parent[number[v]] = number[above] if above >= 0 else -1
        labels = [self.labels[v] for v in np.flatnonzero(kept)]
        return Hierarchy.of(labels, parent, number[self.node_of_leaf], self.name)

    @cached_property
    def ancestors(self) -> _Integers:
        """Node above each leaf at each depth (0 = root), shape (depths, leaves)."""
        chains = [self.node_of_leaf.astype(np.int64)]
        while (self.parent[chains[-1]] >= 0).any():
            above = self.parent[chains[-1]].astype(np.int64)
            chains.append(np.where(above < 0, chains[-1], above))
        upward = np.array(chains)
        depth, leaf = self.depth[self.node_of_leaf], np.arange(self.leaves)
        rows = [upward[np.maximum(depth - level, 0), leaf] for level in range(len(chains))]
        return np.array(rows, dtype=np.int64)

    @cached_property
    def depth(self) -> _Integers:
        """Steps from each node up to its root."""
        depth = np.zeros(len(self.parent), dtype=np.int64)
        at = self.parent.astype(np.int64)
        while (at >= 0).any():
            depth += at >= 0
            at = np.where(at >= 0, self.parent[at], -1)
        return depth

    @cached_property
    def ordinal(self) -> _Integers:
        """Place of each node among its siblings."""
        order = np.argsort(self.parent, kind="stable")
        above = self.parent[order]
        ordinal = np.empty(len(order), dtype=np.int64)
        ordinal[order] = np.arange(len(order)) - np.searchsorted(above, above)
        return ordinal

    @property
    def most_children(self) -> int:
        """Largest number of children of a node."""
        return int(self.ordinal.max()) + 1

    @cached_property
    def tree_of_node(self) -> _Integers:
        """Which of the trees side by side each node is of, from 0."""
        return np.cumsum(self.parent < 0) - 1

    @cached_property
    def ncp(self) -> _Reals:
        """Normalized certainty penalty of a node (Xu et al. 2006): its share of its tree's leaves, 0 for a leaf."""
        leaves = self.leaf_count[self.parent < 0][self.tree_of_node]
        return np.where(self.leaf_count > 1, self.leaf_count / leaves, 0.0)

    @cached_property
    def node_of_label(self) -> dict[str, int]:
        """Node by label; of equal labels the first."""
        return {label: v for v, label in reversed(list(enumerate(self.labels)))}

    @cached_property
    def leaf_of_node(self) -> _Codes:
        """Leaf number of each node, -1 for inner ones."""
        leaf = np.full(len(self.labels), -1, dtype=np.int32)
        leaf[self.node_of_leaf] = np.arange(self.leaves, dtype=np.int32)
        return leaf

    def child(self, node: NDArray[Any], leaf: NDArray[Any]) -> _Codes:
        """The child of each node above a leaf (the node itself when it is the leaf)."""
        below = np.minimum(self.depth[node] + 1, len(self.ancestors) - 1)
        child: _Codes = self.ancestors[below, leaf].astype(np.int32)
        return child

    def common(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[_Integers, _Integers]:
        """Node and depth of the lowest common ancestor of leaves low .. high, of one tree."""
        depth = (self.ancestors[:, low] == self.ancestors[:, high]).sum(axis=0) - 1
        return self.ancestors[depth, low], depth

    def lowest_above(self, node: NDArray[Any], leaf: NDArray[Any]) -> _Integers:
        """Lowest node at or above each node that has a leaf below it; shapes are broadcast.

        >>> tree = Hierarchy.of(("*", "A", "a1", "a2", "b"), (-1, 0, 1, 1, 0), (2, 3, 4))
        >>> tree.lowest_above(np.array([2, 2]), np.array([1, 2])).tolist()
        [1, 0]
        """
        at, where = np.broadcast_arrays(node, leaf)
        at = at.astype(np.int64)
        while (outside := ~self.holds(at, where)).any():
            at[outside] = self.parent[at[outside]]
        return at

    def holds(self, node: NDArray[Any], leaf: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether leaves lie at or below nodes; shapes are broadcast."""
        first = self.first_leaf[node]
        inside: NDArray[np.bool_] = (leaf >= first) & (leaf < first + self.leaf_count[node])
        return inside

    def share(self, low: NDArray[Any], high: NDArray[Any]) -> _Reals:
        """Leaves below the common ancestor of leaves low .. high over all leaves, 0 for a single leaf."""
        node, _ = self.common(low, high)
        return np.where(low == high, 0.0, self.leaf_count[node] / self.leaves)
