"""What releases of one original reveal together, by brute force: every record against every target, value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
"""A released row by column: a value, {'lower', 'upper'}, a list of values, or a mapping from value to count."""


def covers(cell: Any, value: Any) -> bool:
    if isinstance(cell, dict):
        return bool(cell["lower"] <= value <= cell["upper"])
    return bool(value in cell) if isinstance(cell, list) else bool(cell == value)


def size(cell: Any, domain: Sequence[Any]) -> int:
    return sum(covers(cell, value) for value in domain)


def identity(
    originals: Mapping[int, Row], releases: Sequence[Mapping[int, Row]], qi: Sequence[str], *, by_size: bool
) -> float:
    """Mean chance to pick a target's record, evenly among those that agree with her in all releases.

    `by_size`: among them, those whose boxes are smallest together.
    """
    domains = {name: sorted({row[name] for row in originals.values()}) for name in qi}
    total = 0.0
    for target, known in originals.items():
        fitting = {
            record: -sum(math.log(size(r[record][name], domains[name])) for r in releases for name in qi)
            for record in originals
            if all(covers(r[record][name], known[name]) for r in releases for name in qi)
        }
        best = max(fitting.values()) if by_size else -math.inf
        picked = [record for record, score in fitting.items() if score > best - 1e-9]
        total += (target in picked) / len(picked)
    return total / len(originals)


def attribute(
    originals: Mapping[int, Row], releases: Sequence[Mapping[int, Row]], qi: Sequence[str], sensitive: str
) -> float:
    """Mean chance to name the sensitive value where rows show the counts of their bucket."""
    total = 0.0
    for target, known in originals.items():
        alike = [r for r in originals if all(originals[r][name] == known[name] for name in qi)]
        product: dict[Any, float] = {}
        for k, release in enumerate(releases):
            share: dict[Any, float] = {}
            for record in alike:
                counts = release[record][sensitive]
                for value, count in counts.items():
                    share[value] = share.get(value, 0.0) + count / sum(counts.values()) / len(alike)
            product = share if k == 0 else {v: p * share.get(v, 0.0) for v, p in product.items()}
        best = max(product.values())
        picked = [value for value, chance in product.items() if chance > best * (1 - 1e-9)]
        total += (originals[target][sensitive] in picked) / len(picked)
    return total / len(originals)
