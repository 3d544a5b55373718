"""MuCo's promises and the paper's protocol, written out row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

Entry = tuple[int, str, object, object, float, int]


def row_sums(entries: Iterable[Entry]) -> dict[tuple[int, str, object], float]:
    """Sum of each row of each random output table; entries are rows of muco_tables."""
    sums: dict[tuple[int, str, object], float] = defaultdict(float)
    for group, attribute, original, _, probability, _ in entries:
        sums[group, attribute, original] += probability
    return dict(sums)


def attained_delta(entries: Sequence[Entry]) -> float:
    """Largest share of one record in the mass of a published value (definition 3)."""
    mass: dict[tuple[int, str, object], float] = defaultdict(float)
    for group, attribute, _, output, probability, records in entries:
        mass[group, attribute, output] += probability * records
    return max(entry[4] / mass[entry[0], entry[1], entry[3]] for entry in entries)


def differing(original: Sequence[object], released: Sequence[object]) -> int:
    """Number of values of a record that are not as they were."""
    return sum(old != new for old, new in zip(original, released, strict=True))


def carriers(entries: Iterable[Entry]) -> dict[tuple[int, str, object], int]:
    """How many records have a positive probability for each published value."""
    found: dict[tuple[int, str, object], int] = defaultdict(int)
    for group, attribute, _, output, probability, records in entries:
        if probability > 0:
            found[group, attribute, output] += records
    return dict(found)


def mean_change(original: Sequence[Sequence[int]], released: Sequence[Sequence[int]]) -> float:
    """Information loss as the paper's experiments take it: mean of |new - old| / (max - min + 1)."""
    total = 0.0
    for a in range(len(original[0])):
        values = [row[a] for row in original]
        width = max(values) - min(values) + 1
        total += sum(abs(new[a] - old[a]) / width for old, new in zip(original, released, strict=True))
    return total / (len(original) * len(original[0]))
