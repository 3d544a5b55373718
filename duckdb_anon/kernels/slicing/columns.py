"""Which attributes share a column of a sliced table: k-medoids (PAM) on 1 - phi squared.

Partitioning Around Medoids (Kaufman and Rousseeuw 1990, chapter 2) with its BUILD and SWAP phases, made
deterministic: among equals the smallest index wins. At most some hundred attributes are expected, so the
plain O(c (d - c) d^2) swap search is quick enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.slicing.attribute_clustering import association_matrix
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray

_STRICTLY = 1e-12


def pam(distance: FloatArray, medoids: int) -> IntArray:
    """Cluster items around medoids.

    Args:
        distance: symmetric distances, zero diagonal, shape (d, d).
        medoids: number of clusters, 1 to d.

    Returns:
        The medoid of each item, shape (d,); ties go to the medoid of the smaller index, medoids to themselves.

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

    Args:
        attributes: attributes of one table, in the order the columns should keep.
        count: number of columns wanted; more than there are attributes means one each.
        bins: see `association_matrix`.

    Returns:
        Names by column; columns in the order of their first attribute.
    """
    if not attributes:
        return ()
    medoid_of = pam(1.0 - association_matrix(attributes, bins), min(count, len(attributes)))
    columns: dict[int, list[str]] = {}
    for attribute, medoid in zip(attributes, medoid_of.tolist(), strict=True):
        columns.setdefault(medoid, []).append(attribute.name)
    return tuple(tuple(names) for names in columns.values())
