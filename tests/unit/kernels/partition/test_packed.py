"""Counting and ordering of small integers."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.partition import sort_count


@pytest.mark.parametrize("bound", [7, 2**40])
def test_order_is_stable_also_where_keys_do_not_fit_one_integer(bound):
    rng = np.random.default_rng(0)
    major, minor = rng.integers(0, 2**22 if bound > 7 else 5, 300), rng.integers(0, bound, 300)
    assert sort_count.order_by(major, minor, bound).tolist() == np.lexsort((minor, major)).tolist()


@pytest.mark.parametrize("most", [5, 2**60])
def test_rows_are_ordered_by_one_number_also_where_it_fills_the_integer(most):
    numbers = np.random.default_rng(0).integers(0, most, 300)
    assert sort_count.order_by(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()


@pytest.mark.parametrize("domain", [5, 10**6])
def test_cells_are_counted_the_same_densely_and_by_sorting(domain):
    rng = np.random.default_rng(1)
    group, code = np.sort(rng.integers(0, 40, 500)), rng.integers(0, domain, 500)
    group = np.unique(group, return_inverse=True)[1]
    expected, counts = np.unique(group * domain + code, return_counts=True)
    found = sort_count.count_cells(group, code, int(group.max()) + 1, domain)
    assert (found[0] * domain + found[1]).tolist() == expected.tolist()
    assert found[2].tolist() == counts.tolist()
