"""Apriori anonymization and the supports it counts."""

import pytest

from duckdb_anon.kernels.set_valued.apriori_km import publish_globally
from duckdb_anon.kernels.set_valued.person_sets import Persons
from tests.reference.one_to_m_example import RECORDS, persons_of


def published(persons: Persons, k: int, m: int) -> list[list[str]]:
    node = publish_globally(persons, k, m)
    labels = [persons.forest.labels[v] for v in node]
    return [sorted(set(labels[a:b])) for a, b in zip(persons.offsets, persons.offsets[1:], strict=False)]


@pytest.mark.parametrize("m", [1, 2])
def test_worked_example_raises_every_item_to_its_letter(m):
    assert published(persons_of(RECORDS), 2, m) == [["A", "B"], ["B"], ["B"], ["C"], ["A", "B"], ["C"]]


def test_worked_example_loses_a_third_of_the_items():
    persons = persons_of(RECORDS)
    assert persons.forest.ncp[publish_globally(persons, 2, 2)].mean() == pytest.approx(1 / 3)


def test_a_pair_of_frequent_items_is_repaired_where_that_costs_least():
    # a1 and c1 are together once; raising a1 would not help, raising c1 (with c2) to C does
    persons = persons_of([{"a1", "c1"}, {"a1"}, {"c1"}, {"a1", "c2"}, {"c2"}])
    assert published(persons, 1, 2) == [["a1", "c1"], ["a1"], ["c1"], ["a1", "c2"], ["c2"]]
    assert published(persons, 2, 1) == [["a1", "c1"], ["a1"], ["c1"], ["a1", "c2"], ["c2"]]
    assert published(persons, 2, 2) == [["C", "a1"], ["a1"], ["C"], ["C", "a1"], ["C"]]


def test_a_rare_pair_is_repaired_where_that_costs_least():
    # a1 and c1 are together once; raising c1 to C would help, and costs more than raising a1 to A
    persons = persons_of([{"a1", "c1"}, {"a1", "c2"}, {"a1", "c2"}, {"a2", "c1"}, {"a2"}, *({"c2"} for _ in range(4))])
    labels = [persons.forest.labels[node] for node in publish_globally(persons, 2, 2)]
    assert labels == ["A", "c1", "A", "c2", "A", "c2", "A", "c1", "A", *["c2"] * 4]
