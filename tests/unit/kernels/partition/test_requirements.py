"""Group requirements against worked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.partition import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
)


def groups(*counts: tuple[int, ...]) -> Groups:
    """Groups with these counts of sensitive values 0, 1, 2, ..."""
    group = np.repeat(np.arange(len(counts)), [sum(c) for c in counts])
    code = np.concatenate([np.repeat(np.arange(len(c)), c) for c in counts])
    return Groups(group, code, np.bincount(code))


@pytest.mark.parametrize(("values", "ordered", "equal"), [((0, 1, 2), 0.375, 0.6667), ((3, 5, 8), 0.1667, 0.6667)])
def test_closeness_of_salaries_as_published(values, ordered, equal):
    one = Groups(np.zeros(3, dtype=np.int64), np.array(values), np.ones(9, dtype=np.int64))
    assert TCloseness(0, "ordered").distance(one) == pytest.approx([ordered], abs=1e-4)
    assert TCloseness(0, "equal").distance(one) == pytest.approx([equal], abs=1e-4)


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
