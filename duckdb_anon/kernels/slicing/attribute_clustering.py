"""Which attributes share a column of a sliced table: k-medoids on 1 - phi squared.

phi squared, the mean square contingency coefficient, lies in [0, 1] and equals the square of Cramer's V (Li, Li, Zhang
and Molloy 2012, section 4.1; Hasan, Jiang, Chen and Wang 2018, section 4.1.2). Ordered attributes are first cut into
intervals of equal width; NULL, NaN and infinities are separate categories. Partitioning Around Medoids (Kaufman and
Rousseeuw 1990, chapter 2) with its BUILD and SWAP phases is made deterministic: among equals the smallest index wins.
Cost: O(d^2 n) for d attributes, and O(c (d - c) d^2) for each swap of c medoids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray

_STRICTLY = 1e-12


def equal_width(attribute: Attribute, bins: int) -> IntArray:
    """Return the category of each row: the interval of `bins` for an ordered attribute, its code otherwise."""
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
    """Return phi squared of two columns of non-negative categories, 0 when either is constant.

    The sum over all cells of (f_ij - f_i f_j)^2 / (f_i f_j) equals the sum over the occupied ones of
    f_ij^2 / (f_i f_j), less 1, so empty cells never have to be formed.

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
    """Return phi squared of every pair of attributes, 1 on the diagonal."""
    categories = [equal_width(attribute, bins) for attribute in attributes]
    matrix = np.eye(len(categories))
    for i, left in enumerate(categories):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = phi_squared(left, categories[j])
    return matrix


def pam(distance: FloatArray, medoids: int) -> IntArray:
    """Cluster items around medoids.

    >>> pam(np.array([[0, .1, .9], [.1, 0, .8], [.9, .8, 0]]), 2).tolist()
    [1, 1, 2]
    """
    chosen = _build(distance, medoids)
    best = _total(distance, chosen)
    while True:
        trials = [
            (_total(distance, trial), trial)
            for position in range(medoids)
            for other in range(len(distance))
            if other not in chosen
            for trial in [[*chosen[:position], other, *chosen[position + 1 :]]]
        ]
        cost, trial = min(trials, key=lambda pair: pair[0], default=(best, chosen))
        if cost >= best - _STRICTLY:
            break
        best, chosen = cost, trial
    ordered = np.sort(np.asarray(chosen, dtype=np.int64))
    medoid_of: IntArray = ordered[np.argmin(distance[:, ordered], axis=1)]
    medoid_of[ordered] = ordered  # also when another medoid is at distance 0
    return medoid_of


def _build(distance: FloatArray, medoids: int) -> list[int]:
    """BUILD: the most central item, then again and again the one that lowers the total most."""
    chosen: list[int] = []
    nearest = np.full(len(distance), np.inf)
    for _ in range(medoids):
        totals = np.minimum(nearest[:, None], distance).sum(axis=0)
        totals[chosen] = np.inf
        chosen.append(int(np.argmin(totals)))
        nearest = np.minimum(nearest, distance[:, chosen[-1]])
    return chosen


def _total(distance: FloatArray, chosen: list[int]) -> float:
    return float(distance[:, chosen].min(axis=1).sum())


def related_columns(attributes: Sequence[Attribute], count: int, bins: int = 10) -> tuple[tuple[str, ...], ...]:
    """Gather attributes into `count` columns of related ones.

    `count`: number of columns wanted; more than there are attributes means one each. Returns names by column; columns
    in the order of their first attribute.
    """
    if not attributes:
        return ()
    medoid_of = pam(1.0 - association_matrix(attributes, bins), min(count, len(attributes)))
    columns: dict[int, list[str]] = {}
    for attribute, medoid in zip(attributes, medoid_of.tolist(), strict=True):
        columns.setdefault(medoid, []).append(attribute.name)
    return tuple(tuple(names) for names in columns.values())
