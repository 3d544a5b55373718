"""Top-down partitions: worked examples, published figures, hooks and errors."""

import numpy as np
import pandas as pd
import pytest

from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import FrequencyDiversity
from tests.reference.mondrian import attribute


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
