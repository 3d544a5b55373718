"""Distances between values of one attribute, through the gaps between neighbours.

All three distances of MuCo (Li et al. 2020, section 3) can be read off the gaps between neighbouring values:
the sum of the gaps for numbers, the largest gap for a hierarchy when its leaves are taken left to right (the
height of the lowest common ancestor of two leaves is the largest height met between them), and 0/1 for
nominal values. So a group's linear program is a short vector of gaps and one of counts, whatever the kind.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray, Kind

_LARGE = 1e150


def leaf_order(attribute: Attribute) -> IntArray:
    """Return the place of each code in the order that `gaps` expects, shape (domain,)."""
    if attribute.kind == "hierarchy" and attribute.leaf_of_code is not None:
        return np.argsort(np.argsort(attribute.leaf_of_code, kind="stable"), kind="stable").astype(np.int64)
    return np.arange(attribute.domain, dtype=np.int64)


def safe_positions(attribute: Attribute) -> FloatArray:
    """Return positions whose differences cannot overflow; scaled by a power of two, which is exact."""
    positions = attribute.positions.astype(np.float64)
    largest = float(np.abs(positions).max(initial=0.0))
    if largest > _LARGE:
        positions = np.asarray(np.ldexp(positions, -int(np.frexp(largest)[1])))
    return positions


def pair_distance(attribute: Attribute, first: CodeArray, second: CodeArray) -> FloatArray:
    """Return the distance of each pair of codes: |difference|, 0/1, or height of the common ancestor / of the tree."""
    if attribute.kind == "ordered":
        positions = safe_positions(attribute)
        return np.asarray(np.abs(positions[first] - positions[second]))
    if attribute.kind == "nominal" or attribute.hierarchy is None or attribute.leaf_of_code is None:
        return np.asarray(first != second, dtype=np.float64)
    tree = attribute.hierarchy
    a = tree.node_of_leaf[attribute.leaf_of_code[first]].astype(np.int64)
    b = tree.node_of_leaf[attribute.leaf_of_code[second]].astype(np.int64)
    # Preorder numbers grow downwards: lifting the larger of the two until they meet ends at the ancestor.
    while True:
        different = a != b
        if not different.any():
            break
        lifted = tree.parent[np.maximum(a, b)]
        a, b = np.where(different, lifted, a), np.where(different, np.minimum(a, b), b)
    height = np.where(first == second, 0, tree.level[a])
    return np.asarray(height / max(tree.height, 1), dtype=np.float64)


def spread(kind: Kind, gaps: FloatArray) -> FloatArray:
    """Expand gaps, shape (batch, classes - 1), to distance matrices, shape (batch, classes, classes)."""
    batch, classes = gaps.shape[0], gaps.shape[1] + 1
    if kind == "nominal":
        return np.broadcast_to(1.0 - np.eye(classes), (batch, classes, classes)).copy()
    if kind == "ordered":
        place = np.concatenate([np.zeros((batch, 1)), np.cumsum(gaps, axis=1)], axis=1)
        return np.asarray(np.abs(place[:, :, None] - place[:, None, :]))
    distance = np.zeros((batch, classes, classes))
    for first in range(classes - 1):
        reach = np.maximum.accumulate(gaps[:, first:], axis=1)
        distance[:, first, first + 1 :] = reach
        distance[:, first + 1 :, first] = reach
    return distance
