"""Slow and obvious: groups by squared error."""

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.feature_encoding import Features

Matrix = NDArray[np.float64]


def matrix(features: Features, codes: list[NDArray[np.int32]]) -> Matrix:
    """Features of every row, written out, shape (n, features)."""
    rows = np.zeros((len(codes[0]), features.count))
    for a, column in enumerate(codes):
        for i, code in enumerate(column):
            c = features.first_code[a] + code
            for e in range(features.start[c], features.start[c + 1]):
                rows[i, features.feature[e]] = features.value[e]
    return rows


def squared_error(rows: Matrix) -> float:
    """Sum of the squared distances to the mean."""
    return float(((rows - rows.mean(axis=0)) ** 2).sum()) if len(rows) else 0.0


def best_gain(
    rows: Matrix,
    codes: list[NDArray[np.int32]],
    nominal: list[bool],
    least: int,
    diverse: list[tuple[list[int], float]],
) -> float:
    """Largest drop of the squared error over all allowed cuts, 0 where there is none."""
    best = 0.0
    for column, unordered in zip(codes, nominal, strict=True):
        values = sorted(set(column.tolist()))
        by_size = sorted(values, key=lambda v: (-int((column == v).sum()), v))
        lefts = (
            [by_size[:k] for k in range(2, len(values))] if unordered else [values[:k] for k in range(1, len(values))]
        )
        for left in lefts + ([[v] for v in values] if unordered else []):
            mine = np.isin(column, left)
            if min(mine.sum(), (~mine).sum()) < least:
                continue
            if not all(
                np.unique(np.array(s)[side], return_counts=True)[1].max() * limit <= side.sum()
                for s, limit in diverse
                for side in (mine, ~mine)
            ):
                continue
            best = max(best, squared_error(rows) - squared_error(rows[mine]) - squared_error(rows[~mine]))
    return best


def mdav(rows: Matrix, k: int) -> list[int]:
    """Groups of MDAV (Domingo-Ferrer and Torra 2005), word by word."""
    left, group, groups = list(range(len(rows))), [-1] * len(rows), 0

    def around(start: int) -> None:
        nonlocal groups
        nearest = sorted(left, key=lambda i: (i != start, round(float(((rows[i] - rows[start]) ** 2).sum()), 9)))
        for i in nearest[:k]:
            group[i] = groups
            left.remove(i)
        groups += 1

    def farthest(point: NDArray[np.float64]) -> int:
        return max(left, key=lambda i: (round(float(((rows[i] - point) ** 2).sum()), 9), -i))

    while len(left) >= 3 * k:
        first = farthest(rows[left].mean(axis=0))
        around(first)
        around(farthest(rows[first]))
    if len(left) >= 2 * k:
        around(farthest(rows[left].mean(axis=0)))
    for i in left:
        group[i] = groups
    return group
