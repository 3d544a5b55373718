"""Diversity of persons with sets of values by its definitions, one person and one subset at a time."""

import itertools
import math
from collections import Counter, defaultdict


def kl_diversity(persons: list[tuple[str, tuple[str, ...]]]) -> dict[str, float]:
    """Gong et al. 2017, definitions 1 to 5, one person at a time: (class, set of values)."""
    prints = Counter(frozenset(items) for _, items in persons)
    classes: dict[str, Counter[frozenset[str]]] = defaultdict(Counter)
    for group, items in persons:
        classes[group][frozenset(items)] += 1
    sizes = {group: sum(held.values()) for group, held in classes.items()}
    entropy = {
        group: math.exp(-sum(n / sizes[group] * math.log(n / sizes[group]) for n in held.values()))
        for group, held in classes.items()
    }
    return {
        "persons": len(persons), "classes": len(classes), "fingerprints": len(prints), "k": min(prints.values()),
        "frequency_l": min(sizes[group] / max(held.values()) for group, held in classes.items()),
        "distinct_l": min(map(len, classes.values())), "entropy_l": min(entropy.values()),
        "qi_risk": 1 / min(sizes.values()), "fingerprint_risk": 1 / min(prints.values()),
    }  # fmt: skip


def km_anonymity(persons: list[tuple[str, tuple[str, ...]]], m: int) -> list[tuple[int, int, int]]:
    """Poulis et al. 2013: size of a set of values, number of such sets in classes, least number who have one."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for group, items in persons:
        for size in range(m + 1):
            found.update((group, some) for some in itertools.combinations(sorted(set(items)), size))
    sizes = sorted({len(some) for _, some in found})
    return [
        (
            size,
            sum(len(some) == size for _, some in found),
            min(n for (_, some), n in found.items() if len(some) == size),
        )
        for size in sizes
    ]
