"""Nearest rows by Gower's distance and predicates, one pair of rows at a time."""

from collections.abc import Sequence

Row = Sequence[object]


def distance(first: Row, second: Row, columns: Sequence[int], spans: Sequence[float | None]) -> float:
    """Sum over the columns; `spans` is None for nominal ones."""
    total = 0.0
    for a in columns:
        span = spans[a]
        total += float(first[a] != second[a]) if span is None else min(abs(first[a] - second[a]) / span, 1.0)
    return total


def nearest(target: Row, release: Sequence[Row], columns: Sequence[int], spans: Sequence[float | None]) -> set[int]:
    """All rows that are nearest."""
    far = [distance(target, row, columns, spans) for row in release]
    return {r for r, d in enumerate(far) if d <= min(far) + 1e-12}


def holds(row: Row, terms: Sequence[tuple[int, str, float]]) -> bool:
    return all(
        row[a] == value if sign == "=" else row[a] >= value if sign == ">=" else row[a] <= value
        for a, sign, value in terms
    )
