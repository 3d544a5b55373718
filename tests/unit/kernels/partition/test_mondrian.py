"""Top-down partitions: worked examples, published figures, hooks and errors."""

import importlib

import numpy as np
import pandas as pd
import pytest

from duckdb_anon.kernels import thread_pool
from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import FrequencyDiversity
from tests.reference.mondrian import attribute


@pytest.mark.parametrize("cut", ["median", "loss"])
def test_groups_are_the_same_on_any_number_of_threads(cut, monkeypatch):
    module = importlib.import_module("duckdb_anon.kernels.partition.partition")
    monkeypatch.setattr(module, "_LARGE", 200)  # hand parts of more than 200 rows to other threads
    rng = np.random.default_rng(5)
    qi = tuple(attribute(name, rng.integers(0, most, 5000)) for name, most in (("a", 40), ("b", 900), ("c", 3)))
    sensitive = attribute("s", rng.integers(0, 12, 5000)).codes
    found = []
    for number in (1, 2, 5):
        with thread_pool.allowed(number):
            found.append(partition(qi, sensitive, FrequencyDiversity(3), cut=cut))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    monkeypatch.setattr(module, "_LARGE", 10**9)
    assert np.array_equal(found[0], partition(qi, sensitive, FrequencyDiversity(3), cut=cut))


@pytest.fixture(scope="module")
def census_codes(shared_data):
    frame = pd.read_csv(shared_data / "census.csv")
    # Equal spreads go to the first attribute; in this order ties fall as in the published figures.
    names = ("UHRSWORK", "EDUC", "RACE", "MARST", "AGE", "SEX", "RELATE")
    return tuple(attribute(n, frame[n].to_numpy()) for n in names), attribute("s", frame["INCWAGE"].to_numpy()).codes


def test_assign_reproduces_the_published_group_sizes(census_codes):
    qi, sensitive = census_codes
    groups = partition(qi, sensitive, FrequencyDiversity(10), width="spread")
    sizes = np.bincount(groups)
    assert (sizes.min(), sizes.max()) == (10, 204)
    assert sizes.mean() == pytest.approx(29.6, abs=0.05)
    small = np.bincount(assign(groups, sensitive, 10))
    assert (len(small), small.min(), small.max()) == (3594, 10, 19)
    assert small.mean() == pytest.approx(11.17, abs=0.005)
