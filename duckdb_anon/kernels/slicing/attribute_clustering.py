"""How strongly attributes go together: the mean square contingency coefficient phi squared.

Used to gather related attributes into the columns of a sliced table (Li, Li, Zhang and Molloy 2012,
section 4.1; Hasan, Jiang, Chen and Wang 2018, section 4.1.2). phi squared lies in [0, 1] and equals the
square of Cramer's V. Ordered attributes are first cut into intervals of equal width; values that are not
finite numbers (NULL, NaN, infinities) are categories of their own. Only values that occur count.
Cost: O(d^2 n) time, O(n) memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray


def equal_width(attribute: Attribute, bins: int) -> IntArray:
    """Category of each row: its interval for an ordered attribute, its code otherwise.

    Args:
        attribute: any attribute.
        bins: number of intervals over [minimum, maximum], the last one closed; at least 1.

    Returns:
        Non-negative categories, shape (n,).
    """
    codes = attribute.codes.astype(np.int64)
    if attribute.kind != "ordered":
        return codes
    finite = attribute.positions[: attribute.special_from]
    category = np.arange(attribute.domain, dtype=np.int64)
    category += bins - attribute.special_from  # NULL and the like: categories after the last interval
    if attribute.span > 0:
        scaled = np.floor((finite - finite[0]) / attribute.span * bins)
        category[: attribute.special_from] = np.minimum(scaled.astype(np.int64), bins - 1)
    else:
        category[: attribute.special_from] = 0
    return category[codes]


def phi_squared(left: IntArray, right: IntArray) -> float:
    """Return phi squared of two columns of categories, 0 when either one is constant.

    The sum over all cells of (f_ij - f_i f_j)^2 / (f_i f_j) equals the sum over the occupied ones of
    f_ij^2 / (f_i f_j), less 1, so empty cells never have to be formed.

    Args:
        left: non-negative categories, shape (n,).
        right: likewise, same length.

    Returns:
        A share in [0, 1].

    >>> phi_squared(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    >>> phi_squared(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    0.0
    """
    n = len(left)
    if n == 0:
        return 0.0
    count_left, count_right = np.bincount(left), np.bincount(right)
    smaller = min(np.count_nonzero(count_left), np.count_nonzero(count_right))
    if smaller < 2:
        return 0.0
    width = len(count_right)
    key = left * width + right
    cells = len(count_left) * width
    if cells <= max(4 * n, 1 << 16):
        counts = np.bincount(key, minlength=cells)
        cell = np.flatnonzero(counts)
        occupied = counts[cell]
    else:
        cell, occupied = np.unique(key, return_counts=True)
    expected = count_left[cell // width].astype(np.float64) * count_right[cell % width]
    total = float(np.sum(occupied.astype(np.float64) ** 2 / expected)) - 1.0
    return float(min(max(total / (smaller - 1), 0.0), 1.0))


def association_matrix(attributes: Sequence[Attribute], bins: int = 10) -> FloatArray:
    """Return phi squared of every pair of attributes, 1 on the diagonal.

    Args:
        attributes: d attributes of one table.
        bins: intervals an ordered attribute is cut into; the papers do not state their number.

    Returns:
        Symmetric matrix, shape (d, d).
    """
    categories = [equal_width(attribute, bins) for attribute in attributes]
    matrix = np.eye(len(categories))
    for i, left in enumerate(categories):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = phi_squared(left, categories[j])
    return matrix
