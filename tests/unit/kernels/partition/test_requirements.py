"""Group requirements against worked numbers."""

import numpy as np
import pytest

from duckdb_anon.kernels.partition import sort_count
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_models import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    RecursiveDiversity,
)


def groups(*counts: tuple[int, ...]) -> Groups:
    """Groups with these counts of sensitive values 0, 1, 2, ..."""
    group = np.repeat(np.arange(len(counts)), [sum(c) for c in counts])
    code = np.concatenate([np.repeat(np.arange(len(c)), c) for c in counts])
    return Groups(group, code, np.bincount(code))


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (KAnonymity(11), "k = 11 was requested; the largest k this table can meet is 10"),
        (FrequencyDiversity(5), "l = 5 was requested; the largest l this table can meet is 2"),
        (DistinctDiversity(4), "l = 4 was requested; the largest l this table can meet is 3"),
        (EntropyDiversity(4), "l = 4 was requested; the largest l this table can meet is 2.8"),
        (RecursiveDiversity(1, 2), "with this l the table needs a c above 1"),
        (RecursiveDiversity(9, 4), "the largest l this table can meet is 3"),
    ],
)
def test_failure_says_how_far_the_table_can_go(requirement, message):
    assert message in requirement.best_achievable(groups((5, 3, 2)))


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
