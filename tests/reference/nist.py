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


def apparent_matches(original: Sequence[Row], release: Sequence[Row], qi: int) -> tuple[int, int, float, int]:
    """Uniques, matches, mean agreement and full agreement; the first `qi` columns are quasi-identifiers."""
    ours, theirs = (Counter(row[:qi] for row in table) for table in (original, release))
    uniques = [row for row in original if ours[row[:qi]] == 1]
    found = [(row, next(r for r in release if r[:qi] == row[:qi])) for row in uniques if theirs[row[:qi]] == 1]
    rest = [[a == b for a, b in zip(x[qi:], y[qi:], strict=True)] for x, y in found]
    agree = sum(sum(one) / len(one) for one in rest) / len(rest) if rest else float("nan")
    return len(uniques), len(found), agree, sum(all(one) for one in rest)
