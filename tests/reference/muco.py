"""MuCo's promises and the paper's protocol, written out row by row."""

from collections.abc import Sequence


def mean_change(original: Sequence[Sequence[int]], released: Sequence[Sequence[int]]) -> float:
    """Information loss as the paper's experiments take it: mean of |new - old| / (max - min + 1)."""
    total = 0.0
    for a in range(len(original[0])):
        values = [row[a] for row in original]
        width = max(values) - min(values) + 1
        total += sum(abs(new[a] - old[a]) / width for old, new in zip(original, released, strict=True))
    return total / (len(original) * len(original[0]))
