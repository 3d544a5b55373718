"""The search against trying every node, and the worked hospital example."""

import random
from typing import Any

import numpy as np
import pytest

from duckdb_anon.kernels.lattice_search import (
    FrequencySet,
    _Search,
    generalization_levels,
    least_loss_node,
    number_of_nodes,
)
from duckdb_anon.kernels.partition import privacy_models as models
from duckdb_anon.model.coded_table import Attribute
from tests.reference import incognito
from tests.reference.incognito import both, of_rows
from tests.reference.merging import attribute


class Example:
    """A table with its lattice, for the search and for the reference."""

    def __init__(self, qi: tuple[Attribute, ...], sensitive: list[int], person: list[int] | None = None) -> None:
        self.levels = [generalization_levels(a, branching=2) for a in qi]
        self.rows = list(zip(*(a.codes.tolist() for a in qi), strict=True))
        self.records = list(zip(sensitive, person or range(len(sensitive)), strict=True))
        owner = None if person is None else np.array(person)
        self.table = FrequencySet.of_table(self.levels, np.array(sensitive), owner)

    def search(self, requirement: models.PrivacyModel, allowed: int = 0) -> Any:
        return least_loss_node(self.table, requirement, allowed)

    def exhaustive(self, holds: incognito.Predicate, allowed: int = 0) -> Any:
        maps = [[dict(enumerate(value.tolist())) for value in each.value_of_code] for each in self.levels]
        ncp = [[dict(enumerate(each.ncp(n).tolist())) for n in range(each.height + 1)] for each in self.levels]
        best = incognito.least_loss_node(self.rows, self.records, maps, ncp, holds, allowed)
        return None if best is None else best[2]


def _random_example(seed: int, *, persons: bool = False) -> Example:
    pick = random.Random(seed)
    # leaves in another order than their labels
    tree = [("b2", "p", "*"), ("a1", "p", "*"), ("b1", "q", "*"), ("a2", "q", "*")]
    n = pick.randrange(6, 60)

    def some(values: list[Any]) -> list[Any]:
        return [pick.choice(values) for _ in range(n)]

    qi = (
        attribute("age", some([20, 30, 35, 50, 70, None])), attribute("constant", [1] * n),
        attribute("sex", some(["f", "m", None])), attribute("zip", some([path[0] for path in tree]), "hierarchy", tree),
    )  # fmt: skip
    return Example(qi, some([0, 1, 2, 2, 3]), some(list(range(n // 2 + 1))) if persons else None)


ROWS = [
    (models.KAnonymity(3), incognito.k_anonymity(3)), (models.DistinctDiversity(2), incognito.distinct(2)),
    (models.EntropyDiversity(2.0), incognito.entropy(2.0)), (models.FrequencyDiversity(2), incognito.frequency(2)),
    (models.RecursiveDiversity(2, 2), incognito.recursive(2, 2)),
    (models.All((models.KAnonymity(4), models.EntropyDiversity(1.5))), both(incognito.k_anonymity(4), incognito.entropy(1.5))),
]  # fmt: skip


def _persons(
    requirement: models.PrivacyModel, holds: incognito.Predicate
) -> tuple[models.PrivacyModel, incognito.Predicate]:
    """A requirement on persons and rows of groups of two persons of which none has more than half of the rows."""
    rows_and_persons = models.All(
        (models.KAnonymity(2), models.PersonShare(2), models.All((requirement, models.OfRows(requirement))))
    )
    return rows_and_persons, both(incognito.k_anonymity(2), incognito.person_share(2), holds, of_rows(holds))


PERSONS = [
    (models.All((models.KAnonymity(3), models.PersonShare(3))), both(incognito.k_anonymity(3),
     incognito.person_share(3))),
    (models.All((models.KAnonymity(2), models.PersonShare(2), models.DistinctDiversity(2))),
     both(incognito.k_anonymity(2), incognito.person_share(2), incognito.distinct(2))),
    _persons(models.FrequencyDiversity(2), incognito.frequency(2)),
    _persons(models.EntropyDiversity(2.5), incognito.entropy(2.5)),
    _persons(models.RecursiveDiversity(2, 2), incognito.recursive(2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0, 0.3])
@pytest.mark.parametrize(
    ("requirement", "holds", "persons"), [*((*each, False) for each in ROWS), *((*each, True) for each in PERSONS)]
)
def test_the_result_is_that_of_trying_every_node(seed, share, requirement, holds, persons):
    example = _random_example(seed, persons=persons)
    allowed = int(share * len(example.rows))
    assert example.search(requirement, allowed) == example.exhaustive(holds, allowed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("share", [0, 0.2])
def test_the_result_is_that_of_trying_every_node_for_closeness(seed, persons, share):
    example = _random_example(seed, persons=persons)
    allowed = int(share * len(example.rows))
    holds = incognito.equal_distance(0.3, example.records)
    assert example.search(models.TCloseness(0.3, "equal"), allowed) == example.exhaustive(holds, allowed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0, 0.2])
def test_each_of_several_sensitive_columns_is_diverse_at_the_least_loss(seed, share):
    example = _random_example(seed)
    allowed = int(share * len(example.rows))
    first, second = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    requirement = models.All((
        models.OfColumn(models.EntropyDiversity(1.8), "a", first), models.OfColumn(models.DistinctDiversity(2), "b", second),
    ))  # fmt: skip

    def of_column(code_of: Any, holds: incognito.Predicate) -> incognito.Predicate:
        return lambda records: holds([(int(code_of[value]), person) for value, person in records])

    holds = both(of_column(first, incognito.entropy(1.8)), of_column(second, incognito.distinct(2)))
    assert example.search(requirement, allowed) == example.exhaustive(holds, allowed)


@pytest.mark.parametrize(
    ("requirement", "allowed", "most"),
    [
        (models.KAnonymity(3), 0, 0.1), (models.KAnonymity(3), 40, 0.1), (models.EntropyDiversity(2), 0, 0.1),
        (models.TCloseness(0.2, "equal"), 40, 0.5), (models.EntropyDiversity(2), 40, 0.3),
    ],
)  # fmt: skip
def test_most_nodes_are_excluded_without_a_check(monkeypatch, requirement, allowed, most):
    draw = np.random.default_rng(1)
    qi = tuple(attribute(f"q{i}", draw.integers(0, 6 + i, 800).tolist()) for i in range(5))
    example = Example(qi, draw.integers(0, 4, 800).tolist())
    checked: list[int] = []
    check = _Search._check

    def counting(search: _Search, position: int) -> bool:
        checked.append(position)
        return check(search, position)

    monkeypatch.setattr(_Search, "_check", counting)
    assert example.search(requirement, allowed) is not None
    assert len(set(checked)) == len(checked)
    assert len(checked) < most * number_of_nodes(example.levels)
