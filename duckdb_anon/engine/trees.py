"""Hierarchy tables (a leaf a row: leaf, its ancestors, root) to trees numbered in preorder."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.table import CodeArray, Hierarchy

NULL_LEAF = "(null)"


@dataclass(frozen=True)
class Tree:
    """A hierarchy table as read: its name, and each leaf's path from the root down."""

    name: str
    paths: tuple[tuple[str, ...], ...]


def read_tree(function: str, name: str, rows: pa.StructArray) -> Tree:
    """Read a hierarchy table: one struct a leaf, fields from the leaf to the root.

    Raises:
        ParameterError: when it has no rows, a NULL, a repeated leaf, a leaf named as its group, or more than one root.
    """
    columns = [pc.cast(rows.field(i), pa.string()).to_pylist() for i in range(rows.type.num_fields)]
    if not columns or not columns[0]:
        raise ParameterError(f"{function}: hierarchy '{name}' has no rows")
    if any(None in column for column in columns):
        raise ParameterError(f"{function}: hierarchy '{name}' holds NULL; pad short branches with their last node")
    paths = tuple(sorted({tuple(reversed(row)) for row in zip(*columns, strict=True)}))
    if len({path[0] for path in paths}) != 1:
        raise ParameterError(
            f"{function}: hierarchy '{name}' has {len({p[0] for p in paths})} roots; its last column must be constant"
        )
    if len({path[-1] for path in paths}) != len(paths):
        raise ParameterError(f"{function}: hierarchy '{name}' names a leaf twice with different ancestors")
    nodes = {tuple(label for label, _ in groupby(path)) for path in paths}
    groups = {path[:depth] for path in nodes for depth in range(1, len(path))}
    if nodes & groups:
        raise ParameterError(
            f"{function}: {len(nodes & groups)} leaves of hierarchy '{name}' bear the name of a group they share with "
            "other leaves; a release could not tell the two apart, so name the group otherwise"
        )
    return Tree(name, paths)


def tree_leaves(
    function: str, column: str, tree: Tree, labels: list[str], has_null: bool
) -> tuple[Hierarchy, CodeArray]:
    """Number the tree and find the leaf of each value (the last code is NULL when `has_null`).

    Raises:
        ColumnError: when values are not leaves of the tree.
    """
    hierarchy = number_tree(tree, with_null=has_null)
    leaf_number = {hierarchy.labels[v]: i for i, v in enumerate(hierarchy.node_of_leaf)}
    missing = sum(label not in leaf_number for label in labels)
    if missing:
        raise ColumnError(
            f"{function}: {missing} distinct value(s) of '{column}' are not leaves (first column) of hierarchy "
            f"'{tree.name}'; add a row for each"
        )
    leaves = [leaf_number[label] for label in labels]
    if has_null:
        leaves.append(hierarchy.leaves - 1)
    return hierarchy, np.array(leaves, dtype=np.int32)


def number_tree(tree: Tree, with_null: bool = False) -> Hierarchy:
    """Nodes in preorder. Equal labels on one path (padding) are one node; NULL is a leaf under the root."""
    number: dict[tuple[str, ...], int] = {}
    labels: list[str] = []
    parent: list[int] = []
    leaf_nodes: list[int] = []
    for path in tree.paths:
        above = -1
        for depth in range(len(path)):
            if depth and path[depth] == path[depth - 1]:
                continue
            key = path[: depth + 1]
            if key not in number:
                number[key] = len(labels)
                labels.append(path[depth])
                parent.append(above)
            above = number[key]
        leaf_nodes.append(above)
    if with_null:
        leaf_nodes.append(len(labels))
        labels.append(NULL_LEAF)
        parent.append(0)
    return _measured(labels, parent, leaf_nodes)


def _measured(labels: list[str], parent: list[int], leaf_nodes: list[int]) -> Hierarchy:
    nodes = len(labels)
    level = np.zeros(nodes, dtype=np.int32)
    leaf_count = np.zeros(nodes, dtype=np.int32)
    first_leaf = np.full(nodes, len(leaf_nodes), dtype=np.int32)
    leaf_count[leaf_nodes] = 1
    first_leaf[leaf_nodes] = np.arange(len(leaf_nodes), dtype=np.int32)
    # children follow their parent in preorder, so one backward pass sums them up
    for v in range(nodes - 1, 0, -1):
        p = parent[v]
        level[p] = max(level[p], level[v] + 1)
        leaf_count[p] += leaf_count[v]
        first_leaf[p] = min(first_leaf[p], first_leaf[v])
    return Hierarchy(
        tuple(labels),
        np.array(parent, dtype=np.int32),
        level,
        leaf_count,
        first_leaf,
        np.array(leaf_nodes, dtype=np.int32),
    )
