"""What totals of records beside a release of persons would tell, by counting all tables that fit.

An attacker knows some person's set of values and looks for her among the persons of the lists that cover it. The release
alone leaves k alike; the question is whether the numbers of records of classes, or of lists, tell them apart.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain, combinations, product

import pytest

LEAVES = {"A": ("a1", "a2"), "B": ("b1", "b2"), "a1": ("a1",), "b1": ("b1",), "c": ("c",)}
Person = tuple[int, frozenset[str]]
"""Class and list of nodes."""


def behind(nodes: frozenset[str]) -> list[frozenset[str]]:
    """All sets of values that a list may stand for: some leaves of each node, at least one."""
    each = [
        [set(some) for size in range(1, len(LEAVES[node]) + 1) for some in combinations(LEAVES[node], size)]
        for node in nodes
    ]
    return [frozenset(chain.from_iterable(chosen)) for chosen in product(*each)]


def alike(
    persons: list[Person], total_of: str | None, truth: tuple[frozenset[str], ...]
) -> dict[frozenset[str], Counter[int]]:
    """For each set of values, in how many of the tables that fit each person has it."""
    place = {"class": 0, "list": 1}.get(total_of or "")

    def totals(table: tuple[frozenset[str], ...]) -> Counter[object]:
        found: Counter[object] = Counter()
        for person, values in zip(persons, table, strict=True):
            found[person[place] if place is not None else None] += len(values) if place is not None else 0
        return found

    counts: dict[frozenset[str], Counter[int]] = {}
    for table in product(*(behind(nodes) for _, nodes in persons)):
        if totals(table) == totals(truth):
            for number, values in enumerate(table):
                counts.setdefault(values, Counter())[number] += 1
    return counts


def test_the_total_of_a_class_tells_a_person_apart() -> None:
    node, leaf, other = frozenset("A"), frozenset({"b1"}), frozenset("c")
    persons = [(1, node), (1, leaf), (1, other), (2, node), (2, leaf), (2, other)]
    both = frozenset({"a1", "a2"})
    truth = (both, leaf, other, frozenset({"a1"}), leaf, other)
    assert set(alike(persons, None, truth)[both]) == {0, 3}
    assert set(alike(persons, "class", truth)[both]) == {0}
    assert set(alike(persons, "list", truth)[both]) == {0, 3}


@pytest.mark.parametrize("seed", range(8))
def test_totals_of_lists_leave_the_persons_of_a_list_alike(seed: int) -> None:
    rng = random.Random(seed)
    lists = [frozenset(rng.sample(sorted(LEAVES.keys() - {"a1", "b1"}), rng.randint(1, 2))) for _ in range(2)]
    persons = [(rng.randint(1, 2), nodes) for nodes in lists for _ in range(3)]
    truth = tuple(rng.choice(behind(nodes)) for _, nodes in persons)
    for counts in (alike(persons, None, truth), alike(persons, "list", truth)):
        for found in counts.values():
            for a, b in combinations(range(len(persons)), 2):
                assert persons[a][1] != persons[b][1] or found[a] == found[b]
