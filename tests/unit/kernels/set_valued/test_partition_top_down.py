"""Partition of fingerprints."""

import numpy as np

from duckdb_anon.kernels.set_valued.partition_top_down import Fingerprints, publish_top_down
from duckdb_anon.kernels.set_valued.person_sets import Persons
from tests.reference.one_to_m_example import persons_of


def lists(persons: Persons, prints: Fingerprints) -> list[list[str]]:
    """Published labels of each person."""
    labels = persons.forest.labels
    bounds = prints.offsets
    return [[labels[v] for v in prints.nodes[bounds[f] : bounds[f + 1]]] for f in prints.fingerprint_of_person]


def test_a_root_with_a_thousand_children_works():
    paths = tuple(("*", f"g{i:04}", f"g{i:04}.{j}") for i in range(1000) for j in range(2))
    rng = np.random.default_rng(1)
    common = [{f"g{i:04}.0" for i in rng.integers(0, 1000, 20)} for _ in range(50)]
    persons = persons_of(common * 4, paths)
    prints = publish_top_down(persons, 4)
    assert lists(persons, prints) == [sorted(record) for record in common * 4]


def test_chains_with_one_child_are_published_at_their_lowest_node():
    paths = (("*", "A", "A'", "a1"), ("*", "A", "A'", "a2"), ("*", "B", "b", "b"))
    persons = persons_of([{"a1"}, {"a2"}, {"b"}, {"b"}], paths)
    assert lists(persons, publish_top_down(persons, 2)) == [["A'"], ["A'"], ["b"], ["b"]]


def test_a_rest_below_k_calls_back_the_person_who_loses_least():
    # a alone is below k = 2; of those with b, the one with a single item saves least
    persons = persons_of([{"a1"}, {"b1"}, {"b1", "b2"}, {"b1", "b2"}])
    published = lists(persons, publish_top_down(persons, 2))
    assert published == [["*"], ["*"], ["b1", "b2"], ["b1", "b2"]]


def test_where_no_option_can_spare_enough_the_cheapest_is_given_up():
    persons = persons_of([{"a1"}, {"b1"}, {"b1"}, {"c1", "c2"}, {"c1", "c2"}])
    published = lists(persons, publish_top_down(persons, 2))
    assert published == [["*"], ["*"], ["*"], ["c1", "c2"], ["c1", "c2"]]
