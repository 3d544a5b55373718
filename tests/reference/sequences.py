"""What releases of one original reveal together, by brute force: every record against every target, value by value."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tests.reference.linkage import covers

Row = Mapping[str, Any]
"""A released row by column: a value, {'lower', 'upper'}, a list of values, or a mapping from value to count."""


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
        chance: dict[Any, float] = {}
        for record in alike:
            buckets = [release[record][sensitive] for release in releases]
            distinct = [counts for k, counts in enumerate(buckets) if counts not in buckets[:k]]
            product = {value: math.prod(counts.get(value, 0) for counts in distinct) for value in distinct[0]}
            for value, weight in product.items():
                chance[value] = chance.get(value, 0.0) + weight / sum(product.values())
        best = max(chance.values())
        picked = [value for value, weight in chance.items() if weight > best * (1 - 1e-9)]
        total += (originals[target][sensitive] in picked) / len(picked)
    return total / len(originals)
