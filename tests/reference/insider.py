"""The insider: she knows the groups and all quasi-identifiers, and learns the rest from the release alone.

Inside a group she weighs every pair of an individual and a released row by how values move (learnt from a second run of
the call on the release) and by P(sensitive value | quasi-identifiers), learnt by boosted trees on the released rows.
Rows are dealt to individuals one to one: Sinkhorn's doubly stochastic matrix, and the likeliest assignment.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import HistGradientBoostingClassifier

Codes = NDArray[Any]
BINS = 12
LARGEST = 400  # larger groups have a chance near 0 and would take quadratic memory


def binned(secret: Codes, nominal: bool, bins: int = BINS) -> Codes:
    """Few classes: the values where they are few, the most frequent ones and a rest, or quantile bins."""
    values, codes, counts = np.unique(secret, return_inverse=True, return_counts=True)
    if len(values) <= bins:
        return codes
    if nominal:
        return np.minimum(np.argsort(np.argsort(-counts, kind="stable")), bins - 1)[codes]
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    return np.unique((middle * bins).astype(int)[codes], return_inverse=True)[1]


def channel(released: Codes, again: Codes) -> NDArray[np.float64]:
    """Log likelihood ratio of a value being published as another, by quantile bins above 100 values."""
    many = int(max(released.max(), again.max())) + 1
    step = -(-many // 100)
    both = np.full((-(-many // step),) * 2, 0.02)
    np.add.at(both, (released // step, again // step), 1.0)
    both /= both.sum()
    ratio = np.log(both / both.sum(axis=1, keepdims=True) / both.sum(axis=0, keepdims=True))
    return np.repeat(np.repeat(ratio, step, axis=0), step, axis=1)


def sensitive_model(
    original: Sequence[Codes], released: Sequence[Codes], nominal: Sequence[bool], classes: Codes, seed: int
) -> NDArray[np.float64]:
    """log P(class | quasi-identifiers of each individual), learnt on released rows, shape (n, classes)."""
    listed = [q for q, unordered in enumerate(nominal) if unordered and int(released[q].max()) < 255]
    model = HistGradientBoostingClassifier(
        max_iter=40, learning_rate=0.2, max_leaf_nodes=24, min_samples_leaf=40, categorical_features=listed or None,
        early_stopping=False, random_state=seed,
    )  # fmt: skip
    model.fit(np.stack(released, axis=1).astype(float), classes)
    return np.log(np.maximum(model.predict_proba(np.stack(original, axis=1).astype(float)), 1e-6))


def found_by_insider(
    original: Sequence[Codes], released: Sequence[Codes], again: Sequence[Codes], nominal: Sequence[bool],
    group: Codes, classes: Codes, seed: int = 0,
) -> dict[str, NDArray[np.float64]]:  # fmt: skip
    """For each attack and individual the chance that the row she names is the individual's; row i is row i's.

    `again` is a second release, made from the first by the same call; sensitive values' `classes` are published.
    """
    rng = np.random.default_rng(seed)
    logs = [channel(first, second) for first, second in zip(released, again, strict=True)]
    secret = sensitive_model(original, released, nominal, classes, seed)
    found = {name: np.zeros(len(group)) for name in _ATTACKS}
    order = rng.permutation(len(group))
    order = order[np.argsort(group[order], kind="stable")]
    for rows in np.split(order, np.cumsum(np.bincount(group))[:-1]):
        if not 0 < len(rows) <= LARGEST:
            continue
        of_person = rng.permutation(rows)
        moved = sum(log[np.ix_(x[of_person], y[rows])] for log, x, y in zip(logs, original, released, strict=True))
        named = secret[np.ix_(of_person, classes[rows])]
        for weights, score in (("moves", moved), ("sensitive", named), ("both", moved + named)):
            person, place = linear_sum_assignment(-score)
            found[f"{weights}, assigned"][of_person[person]] = of_person[person] == rows[place]
            match = _sinkhorn(score)
            best = match >= match.max(axis=1, keepdims=True) - 1e-12
            own = of_person[:, None] == rows[None, :]
            found[f"{weights}, likeliest"][of_person] = (best & own).sum(axis=1) / best.sum(axis=1)
    return found


_ATTACKS = [f"{weights}, {way}" for weights in ("moves", "sensitive", "both") for way in ("assigned", "likeliest")]


def _sinkhorn(score: NDArray[np.float64], rounds: int = 20) -> NDArray[np.float64]:
    """Doubly stochastic matrix in proportion to exp(score)."""
    match = np.exp(score - score.max(axis=1, keepdims=True))
    for _ in range(rounds):
        match /= np.maximum(match.sum(axis=0, keepdims=True), 1e-300)
        match /= np.maximum(match.sum(axis=1, keepdims=True), 1e-300)
    return match


def smallest_groups(group: Codes, share: float = 0.05) -> NDArray[np.bool_]:
    """Rows of the smallest groups: the least sizes that together hold at least this share of all rows."""
    size = np.bincount(group)[group]
    return size <= np.quantile(size, share, method="inverted_cdf")
