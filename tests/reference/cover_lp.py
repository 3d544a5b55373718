"""MuCo's linear program written out and handed to HiGHS: slow, and close to the paper's formulas."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.hierarchy import Hierarchy

Matrix = NDArray[np.float64]


def full_cost(values: Sequence[int], delta: float) -> float | None:
    """Least cost of a group of whole numbers, one row a record, columns min .. max; None if infeasible."""
    columns = np.arange(min(values), max(values) + 1)
    distance = np.abs(np.subtract.outer(np.asarray(values), columns)).astype(float)
    m, n = distance.shape
    at_most = np.eye(m * n)
    for i in range(m):
        for j in range(n):
            at_most[i * n + j, np.arange(m) * n + j] -= delta
    answer = linprog(
        distance.ravel(), at_most, np.zeros(m * n), np.kron(np.eye(m), np.ones(n)), np.ones(m), method="highs"
    )
    return None if answer.x is None else float(answer.fun)


def merged_cost(distance: Matrix, count: NDArray[np.int64], delta: float) -> float:
    """Least cost with equal records merged: x_gj <= delta * s_j, s_j = sum_g c_g x_gj, sum_j x_gj = 1."""
    r = len(count)
    unit = sparse.identity(r, format="csr")
    rows = sparse.hstack([sparse.kron(unit, np.ones((1, r))), sparse.csr_matrix((r, r))])
    totals = sparse.hstack([sparse.kron(count[None, :], unit), -unit])
    at_most = sparse.hstack([sparse.identity(r * r), sparse.kron(np.ones((r, 1)), -delta * unit)])
    answer = linprog(
        np.concatenate([(count[:, None] * distance).ravel(), np.zeros(r)]),
        at_most.tocsr(),
        np.zeros(r * r),
        sparse.vstack([rows, totals]).tocsr(),
        np.concatenate([np.ones(r), np.zeros(r)]),
        method="highs",
    )
    return float(answer.fun)


def ordered(values: Sequence[float], name: str = "age") -> Attribute:
    """A numeric attribute, one value a row."""
    place, first, codes = np.unique(np.asarray(values, dtype=float), return_index=True, return_inverse=True)
    return Attribute(name, "ordered", codes.astype(np.int32), place, len(place), -1, first)


def nominal(values: Sequence[int], name: str = "race") -> Attribute:
    """A nominal attribute, one value a row."""
    found, first, codes = np.unique(np.asarray(values), return_index=True, return_inverse=True)
    return Attribute(name, "nominal", codes.astype(np.int32), np.arange(float(len(found))), len(found), -1, first)


def in_tree(leaves: Sequence[int], widths: Sequence[int], name: str = "place") -> Attribute:
    """A hierarchical attribute: a root whose children have `widths` leaves below them; values are leaf numbers."""
    parent, level, count, first_leaf, nodes, leaf = [-1], [2], [sum(widths)], [0], [], 0
    for width in widths:
        inner = len(parent)
        parent, level, count, first_leaf = [*parent, 0], [*level, 1], [*count, width], [*first_leaf, leaf]
        for _ in range(width):
            nodes.append(len(parent))
            parent, level, count, first_leaf = [*parent, inner], [*level, 0], [*count, 1], [*first_leaf, leaf]
            leaf += 1
    as_codes = [np.asarray(part, dtype=np.int32) for part in (parent, level, count, first_leaf, nodes)]
    tree = Hierarchy(tuple(str(node) for node in range(len(parent))), *as_codes)
    # Codes run against the leaves, so that nothing works by accident of equal numbering.
    found, first, codes = np.unique(-np.asarray(leaves), return_index=True, return_inverse=True)
    return Attribute(
        name, "hierarchy", codes.astype(np.int32), np.arange(float(len(found))), len(found), -1, first, tree,
        (-found).astype(np.int32),
    )  # fmt: skip


def distances(attribute: Attribute) -> Matrix:
    """Distance of every pair of codes, from the definitions."""
    if attribute.kind == "ordered":
        return np.abs(np.subtract.outer(attribute.positions, attribute.positions))
    if attribute.hierarchy is None or attribute.leaf_of_code is None:
        return 1.0 - np.eye(attribute.domain)
    tree = attribute.hierarchy
    result = np.zeros((attribute.domain, attribute.domain))
    for a in range(attribute.domain):
        for b in range(attribute.domain):
            above = [tree.node_of_leaf[attribute.leaf_of_code[a]]]
            while above[-1] > 0:
                above.append(tree.parent[above[-1]])
            node = tree.node_of_leaf[attribute.leaf_of_code[b]]
            while node not in above:
                node = tree.parent[node]
            result[a, b] = tree.level[node] / tree.height if a != b else 0.0
    return result
