"""Costs on a sample of the paper's groups of the census table."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from duckdb_anon.kernels.partition import FrequencyDiversity, assign, partition
from duckdb_anon.kernels.random_output_tables import cover
from tests.reference.cover_lp import distances, merged_cost, ordered

COLUMNS = ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK")


@pytest.fixture(scope="module")
def census_groups(shared_data):
    with (shared_data / "census.csv").open() as file:
        rows = list(csv.DictReader(file))
    qi = [ordered([int(r[name]) for r in rows], name) for name in COLUMNS]
    income = ordered([int(r["INCWAGE"]) for r in rows]).codes
    leaves = partition(tuple(qi), income, FrequencyDiversity(10), cut="median", width="spread")
    return qi, assign(leaves, income, 10)


@pytest.mark.parametrize("k", [5, 6, 10])
def test_costs_equal_the_linear_programs_on_the_papers_groups(census_groups, k):
    qi, group = census_groups
    chosen = np.random.default_rng(k).choice(group.max() + 1, 30, replace=False)
    for attribute in qi:
        cost = cover(attribute, group, 1 / k, 0.0).cost
        for number in chosen:
            codes, count = np.unique(attribute.codes[group == number], return_counts=True)
            distance = distances(attribute)[np.ix_(codes, codes)]
            assert cost[number] == pytest.approx(merged_cost(distance, count, 1 / k), abs=1e-6 * distance.max())
