"""Full-domain generalization by trying every level vector on every row."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import product

from tests.reference import mondrian

Node = tuple[int, ...]
Maps = Sequence[Sequence[dict[Hashable, Hashable]]]  # attribute, level: value to generalized value
Penalties = Sequence[Sequence[dict[Hashable, float]]]  # attribute, level: generalized value to its NCP
Record = tuple[Hashable, int]  # sensitive value and person
Predicate = Callable[[Sequence[Record]], bool]


def classes(rows: Sequence[Sequence[Hashable]], maps: Maps, node: Node) -> dict[tuple[Hashable, ...], list[int]]:
    """Row numbers of each class at a node."""
    found: defaultdict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        found[tuple(levels[level][value] for levels, level, value in zip(maps, node, row, strict=True))].append(i)
    return dict(found)


def least_loss_node(
    rows: Sequence[Sequence[Hashable]],
    records: Sequence[Record],
    maps: Maps,
    penalties: Penalties,
    holds: Predicate,
    allowed: int = 0,
) -> tuple[float, int, Node] | None:
    """Loss, height and levels of the best of all nodes at which at most `allowed` rows are in classes that fail."""
    best = None
    for node in product(*(range(len(levels)) for levels in maps)):
        suppressed, loss = 0, 0.0
        for values, members in classes(rows, maps, node).items():
            if holds([records[i] for i in members]):
                ncp = [levels[level][value] for levels, level, value in zip(penalties, node, values, strict=True)]
                loss += len(members) * sum(ncp) / len(ncp)
            else:
                suppressed += len(members)
                loss += len(members)
        found = (round(loss / len(rows), 12), sum(node), node)
        if suppressed <= allowed and (best is None or found < best):
            best = found
    return best


def k_anonymity(k: int) -> Predicate:
    return lambda records: len({person for _, person in records}) >= k


def person_share(least: int) -> Predicate:
    return lambda records: max(Counter(person for _, person in records).values()) * least <= len(records)


def distinct(least: float) -> Predicate:
    return lambda records: len({value for value, _ in records}) >= least


def entropy(least: float) -> Predicate:
    return lambda records: (
        math.log(mondrian.effective_entropy([value for value, _ in set(records)])) >= math.log(least) - 1e-9
    )


def frequency(least: int) -> Predicate:
    """A value's share is of the persons, who may have several values."""
    return lambda records: (
        max(Counter(value for value, _ in set(records)).values()) * least <= len({person for _, person in records})
    )


def recursive(c: int, least: int) -> Predicate:
    return lambda records: mondrian.recursive([value for value, _ in set(records)], c, least)


def of_rows(holds: Predicate) -> Predicate:
    """The same condition where every row is a person."""
    return lambda records: holds([(value, i) for i, (value, _) in enumerate(records)])


def equal_distance(t: float, table: Sequence[Record]) -> Predicate:
    whole = [value for value, _ in set(table)]
    return lambda records: mondrian.equal_emd([value for value, _ in set(records)], whole) <= t + 1e-9


def both(*parts: Predicate) -> Predicate:
    return lambda records: all(part(records) for part in parts)
