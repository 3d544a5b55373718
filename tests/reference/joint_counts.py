"""Joint counts of randomized columns the slow way: whole matrices, one combination of values after another."""

from collections.abc import Sequence
from itertools import product

import numpy as np


def channel(size: int, p: float) -> np.ndarray:
    """Probability of each released value (row) for each true one (column)."""
    if size == 1:
        return np.ones((1, 1))
    return np.array([[p if a == b else (1 - p) / (size - 1) for b in range(size)] for a in range(size)])


def joint_counts(
    rows: dict[tuple[int, ...], int],
    sizes: Sequence[int],
    chances: Sequence[float],
    noisy: float = 15.0,
    rounds: int = 9,
) -> dict[tuple[int, ...], float]:
    """Rows of each combination of true values; with two rows a combination, EM where the squared error grows `noisy`."""
    values = list(product(*(range(size) for size in sizes)))
    each = [channel(size, p) for size, p in zip(sizes, chances, strict=True)]
    whole = np.array(
        [[np.prod([c[a, b] for c, a, b in zip(each, out, true, strict=True)]) for true in values] for out in values]
    )
    released = np.array([rows.get(one, 0) for one in values], dtype=float)
    back = np.linalg.inv(whole)
    inverted, total = back @ released, released.sum()
    first = np.full(len(values), total)
    for axis, size in enumerate(sizes):
        own = [max(sum(x for x, one in zip(inverted, values, strict=True) if one[axis] == v), 0.5) for v in range(size)]
        first = first * np.array([own[one[axis]] / sum(own) for one in values])
    growth = float((back**2).sum()) / len(values)
    if growth >= noisy and total >= 2 * len(values):
        for _ in range(rounds):
            # chance of each true combination behind each released one, by Bayes
            behind = whole * first[None, :]
            behind = behind / behind.sum(axis=1, keepdims=True)
            first = behind.T @ released
    distance = float(((inverted - first) ** 2).sum())
    kept = max(0.0, 1 - (growth - 1) * total / distance)
    return dict(zip(values, first + kept * (inverted - first), strict=True))
