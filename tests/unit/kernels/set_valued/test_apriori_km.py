"""Apriori anonymization and the supports it counts."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.set_valued.apriori_km import count_subsets, publish_globally, subsets, supports
from duckdb_anon.kernels.set_valued.person_sets import Persons, lists_of
from duckdb_anon.model.errors import RequirementError
from tests.reference import one_to_m as slow
from tests.reference.diversity_of_sets import km_anonymity
from tests.reference.one_to_m_example import RECORDS, persons_of

ITEMS = ["a1", "a2", "b1", "b2", "c1", "c2"]


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


def test_nothing_is_raised_when_every_set_is_frequent():
    persons = persons_of([{"a1", "b1"}, {"a1", "b1"}, {"c1"}, {"c1"}])
    assert published(persons, 2, 2) == [["a1", "b1"], ["a1", "b1"], ["c1"], ["c1"]]


def test_a_pair_of_frequent_items_is_repaired_where_that_costs_least():
    # a1 and c1 are together once; raising a1 would not help, raising c1 (with c2) to C does
    persons = persons_of([{"a1", "c1"}, {"a1"}, {"c1"}, {"a1", "c2"}, {"c2"}])
    assert published(persons, 1, 2) == [["a1", "c1"], ["a1"], ["c1"], ["a1", "c2"], ["c2"]]
    assert published(persons, 2, 1) == [["a1", "c1"], ["a1"], ["c1"], ["a1", "c2"], ["c2"]]
    assert published(persons, 2, 2) == [["C", "a1"], ["a1"], ["C"], ["C", "a1"], ["C"]]


def test_fewer_records_than_k_is_an_error():
    with pytest.raises(RequirementError, match="6 persons cannot share a set 7 times"):
        publish_globally(persons_of(RECORDS), 7, 1)


item_sets = st.lists(st.sets(st.sampled_from(ITEMS), min_size=1), min_size=4, max_size=30)


@given(item_sets, st.integers(1, 4), st.integers(1, 3))
def test_every_small_set_of_published_nodes_is_frequent(records, k, m):
    lists = published(persons_of(records), k, m)
    assert min(support for *_, support in km_anonymity([("", tuple(nodes)) for nodes in lists], m)) >= k
    # one cut for all: an item is published as the same node everywhere
    tree = {"*": None} | {x: x[0].upper() for x in ITEMS} | {"A": "*", "B": "*", "C": "*"}
    nodes = {x: {slow.cover(tree, cut, x) for r, cut in zip(records, lists, strict=True) if x in r} for x in ITEMS}
    assert all(len(found) <= 1 for found in nodes.values())


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=20), st.integers(1, 4))
def test_supports_count_each_set_once_a_record(records, size):
    node = np.array([v for record in records for v in sorted(record)], dtype=np.int32)
    owner = np.repeat(np.arange(len(records)), [len(record) for record in records])
    lists = lists_of(node, owner, len(records))
    sets, support = supports(subsets(lists, size))
    expected = Counter(some for record in records for some in combinations(sorted(record), size))
    assert Counter({tuple(row): int(c) for row, c in zip(sets.tolist(), support, strict=True)}) == expected
    assert count_subsets(lists, size) == sum(expected.values())
