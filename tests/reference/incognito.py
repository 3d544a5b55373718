"""Full-domain generalization by trying every level vector on every row."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import product

from tests.reference.mondrian import effective_entropy

Node = tuple[int, ...]
Maps = Sequence[Sequence[dict[Hashable, Hashable]]]  # attribute, level: value to generalized value


def classes(rows: Sequence[Sequence[Hashable]], maps: Maps, node: Node) -> list[list[Hashable]]:
    """Sensitive values (last column) of each class at a node."""
    found: defaultdict[tuple[Hashable, ...], list[Hashable]] = defaultdict(list)
    for row in rows:
        found[tuple(maps[i][level][row[i]] for i, level in enumerate(node))].append(row[-1])
    return list(found.values())


def valid(
    rows: Sequence[Sequence[Hashable]], maps: Maps, holds: Callable[[list[Hashable]], bool], allowed: int = 0
) -> set[Node]:
    """Every node at which at most `allowed` rows are in classes that fail."""
    grid = product(*(range(len(levels)) for levels in maps))
    return {n for n in grid if sum(len(c) for c in classes(rows, maps, n) if not holds(c)) <= allowed}


def smallest_entropy_l(rows: Sequence[Sequence[Hashable]], maps: Maps, node: Node) -> float:
    return min(effective_entropy(c) for c in classes(rows, maps, node))


def entropy_l(least: float) -> Callable[[list[Hashable]], bool]:
    return lambda values: math.log(effective_entropy(values)) >= math.log(least) - 1e-9


def frequency_l(least: int) -> Callable[[list[Hashable]], bool]:
    return lambda values: max(Counter(values).values()) * least <= len(values)
