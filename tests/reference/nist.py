"""NIST's measures by plain loops over rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

Row = Sequence[Any]


def k_marginal(original: Sequence[Row], release: Sequence[Row], k: int) -> dict[tuple[int, ...], float]:
    """Score of each set of k columns."""
    scores = {}
    for chosen in combinations(range(len(original[0])), k):
        p, q = (Counter(tuple(row[c] for c in chosen) for row in table) for table in (original, release))
        distance = sum(abs(p[v] / len(original) - q[v] / len(release)) for v in {*p, *q})
        scores[chosen] = (2 - distance) * 500
    return scores


def unique_exact_matches(original: Sequence[Row], release: Sequence[Row]) -> tuple[int, int]:
    """Uniques of the original, and those that stand in the release."""
    count = Counter(original)
    uniques = [row for row in original if count[row] == 1]
    return len(uniques), sum(row in set(release) for row in uniques)
