"""Population risk by plain loops over printed rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

Row = Sequence[Any]


def fits(printed: Any, value: Any) -> bool:
    """Whether a printed cell may stand for a value."""
    if isinstance(printed, dict):
        return value is not None and printed["lower"] <= value <= printed["upper"]
    if isinstance(printed, list):
        return value in printed
    return bool(printed == value)


def persons_behind(release: Sequence[Row], population: Sequence[Row]) -> list[int]:
    """Persons of the population who fit each released row."""
    return [sum(all(fits(c, v) for c, v in zip(row, one, strict=True)) for one in population) for row in release]


def presence(release: Sequence[Row], population: Sequence[Row]) -> list[float]:
    """Chance that each person of the population is in a release whose classes do not overlap."""
    chances = []
    for one in population:
        mine = [row for row in release if all(fits(c, v) for c, v in zip(row, one, strict=True))]
        others = persons_behind(mine[:1], population)
        chances.append(len(mine) / others[0] if mine else 0.0)
    return chances


def minimal_uniques(rows: Sequence[Row]) -> dict[int, list[tuple[int, ...]]]:
    """Minimal sample uniques of each row, by the definition."""
    columns = range(len(rows[0]))
    found: dict[int, list[tuple[int, ...]]] = {}
    for number, row in enumerate(rows):

        def alone(names: tuple[int, ...], row: Row = row) -> bool:
            return sum(all(other[c] == row[c] for c in names) for other in rows) == 1

        every = [names for size in columns for names in combinations(columns, size + 1)]
        uniques = [
            n for n in every if alone(n) and not any(alone(p) for k in range(1, len(n)) for p in combinations(n, k))
        ]
        if uniques:
            found[number] = uniques
    return found


def suda(rows: Sequence[Row]) -> dict[int, int]:
    """SUDA score of each row that has one."""
    total = len(rows[0])
    return {
        row: sum(prod(total - i for i in range(len(names), total)) for names in uniques)
        for row, uniques in minimal_uniques(rows).items()
    }


def dis(rows: Sequence[Row], fraction: float) -> dict[int, float]:
    """DIS of each row with a SUDA score."""
    scores = suda(rows)
    sizes = Counter(map(tuple, rows)).values()
    unique, pairs = sum(s == 1 for s in sizes), sum(2 for s in sizes if s == 2)
    overall = unique * fraction / (unique * fraction + pairs * (1 - fraction))
    power = 1 + (8 - len(rows[0])) / 20
    factor = sum(1 / score**power for score in scores.values())
    return {row: 1 / (1 + (unique / overall - unique) / (score**power * factor)) for row, score in scores.items()}
