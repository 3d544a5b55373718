"""Clusters of persons and merging them up to a loss."""

import numpy as np
import pytest

from duckdb_anon.methods.rmr import clusters_of, merge_up_to
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import RequirementError
from tests.reference.cover_lp import nominal, ordered
from tests.reference.mondrian import ncp
from tests.reference.one_to_m_example import PATHS, attribute_of


def mean_loss(qi: tuple[Attribute, ...], group: np.ndarray) -> float:
    rows = {number: np.flatnonzero(group == number).tolist() for number in np.unique(group)}
    return float(np.mean([ncp(a, rows[number], as_set=True) for a in qi for number in group]))


def test_clusters_take_neighbours():
    qi = (ordered([1.0, 2.0, 3.0, 50.0, 51.0, 52.0]),)
    clusters = clusters_of(qi, 3, np.random.default_rng(0))
    members = [np.flatnonzero(clusters.cluster_of_record == c).tolist() for c in (0, 1)]
    assert sorted(members) == [[0, 1, 2], [3, 4, 5]]


def test_merging_stays_within_the_bound_and_keeps_clusters_whole():
    rng = np.random.default_rng(9)
    numbers, names = rng.integers(0, 100, 78).astype(float), rng.integers(0, 4, 79).tolist()
    items = [PATHS[i][-1] for i in rng.integers(0, 6, 80)]
    qi = (ordered([0.0, 100.0, *numbers]), nominal([3, *names]), attribute_of(items, PATHS))
    clusters = clusters_of(qi, 4, np.random.default_rng(2))
    before = clusters.cluster_of_record.copy()
    group = merge_up_to(clusters, 0.7)
    assert mean_loss(qi, before) <= mean_loss(qi, group) <= 0.7
    assert len(np.unique(group)) < len(np.unique(before))
    assert all(len(np.unique(group[before == c])) == 1 for c in np.unique(before))


def test_a_bound_clusters_cannot_keep_is_an_error_that_says_what_they_lose():
    clusters = clusters_of((ordered([0.0, 50.0, 100.0, 51.0]),), 4, np.random.default_rng(2))
    with pytest.raises(RequirementError, match=r"QID-NCP of 1\.000; take max_qid_ncp above that"):
        merge_up_to(clusters, 0.5)
