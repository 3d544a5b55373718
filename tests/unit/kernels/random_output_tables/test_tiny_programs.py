"""Costs and tables of groups small enough to check by hand, with |difference| as distance."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import MutualCover, cover
from tests.reference.cover_lp import ordered

THIRD = 1 / 3
UNIQUE = [
    ((10, 11, 13), 3 / 4, [[0.875, 0.125, 0], [7 / 24, 0.375, THIRD], [0, 0, 1]]),
    ((10, 11, 13), 3 / 5, [[0.8, 0, 0.2], [8 / 15, 0, 7 / 15], [0, 0, 1]]),
    ((10, 11, 13), 1 / 3, [[0, 1, 0], [0, 1, 0], [0, 1, 0]]),
    ((10, 10, 11, 14), 1 / 3, [[2 / 3, THIRD, 0], [THIRD, 2 / 3, 0], [THIRD, 2 / 3, 0]]),
    ((10, 10, 11, 12, 12), 2 / 5, [[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1]]),
    ((10, 11, 13), 1, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
]


def one_group(values, delta, balance=0.0) -> MutualCover:
    return cover(ordered(values), np.zeros(len(values), dtype=np.int64), delta, balance)


def matrix(tables: MutualCover) -> np.ndarray:
    result = np.zeros((len(tables.classes.code),) * 2)
    result[tables.row, tables.column] = tables.probability
    return result


@pytest.mark.parametrize(("values", "delta", "expected"), UNIQUE)
def test_a_unique_optimum_is_found_entry_by_entry(values, delta, expected):
    assert matrix(one_group(values, delta)) == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_as_many_records_as_one_over_delta_all_show_a_median(k):
    values = [3 * v for v in range(k)]
    tables = one_group(values, 1 / k)
    assert tables.cost[0] == pytest.approx(np.abs(np.array(values) - np.median(values)).sum())
    assert np.ptp(matrix(tables), axis=0) == pytest.approx(np.zeros(k))
