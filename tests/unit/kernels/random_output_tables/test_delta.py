"""Reading delta."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import Delta
from duckdb_anon.model.errors import ParameterError, RequirementError


@pytest.mark.parametrize(
    ("given", "value", "records"),
    [
        (0.2, 1 / 5, 5),
        (0.16666666666, 1 / 6, 6),
        (Fraction(1, 7), 1 / 7, 7),
        (Decimal("0.1"), 1 / 10, 10),
        (0.3, 0.3, 4),
        (0.37, 0.37, 3),
        (Fraction(2, 5), 0.4, 3),
        (1, 1.0, 1),
    ],
)
def test_reciprocals_of_whole_numbers_are_recognised(given, value, records):
    read = Delta.of(given)
    assert (read.value, read.smallest_group) == (value, records)


@pytest.mark.parametrize("given", [0, -0.2, 1.5, float("nan"), float("inf")])
def test_a_delta_outside_its_range_is_refused(given):
    with pytest.raises(ParameterError, match="at most 1"):
        Delta.of(given)


def test_a_small_group_is_refused_with_the_delta_it_could_meet():
    with pytest.raises(RequirementError, match=r"at least 5 records.*1/3"):
        Delta.of(0.2).require(np.array([7, 3, 0]))


def test_groups_that_are_large_enough_pass_and_empty_ones_do_not_count():
    Delta.of(0.2).require(np.array([5, 0, 9]))
    Delta.of(0.2).require(np.zeros(0, dtype=np.int64))
