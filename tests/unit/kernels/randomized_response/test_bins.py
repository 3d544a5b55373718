"""Binning of ordered attributes before they are randomized."""

import numpy as np
import pytest

from duckdb_anon.methods.rr_params import representatives
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import ParameterError


def ages(values: list[float], rows: list[int], special_from: int | None = None) -> Attribute:
    codes = np.repeat(np.arange(len(values)), rows).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(rows)[:-1]])
    known = len(values) if special_from is None else special_from
    return Attribute("age", "ordered", codes, np.array(values), known, -1, first)


def test_cut_points_start_bins_and_the_value_nearest_the_mean_stands_for_each():
    attribute = ages([18, 20, 29, 30, 41, 60], [1, 1, 1, 9, 1, 1])
    assert representatives(attribute, [30], "rr_distort").tolist() == [1, 1, 1, 3, 3, 3]
    assert representatives(attribute, [20, 60], "rr_distort").tolist() == [0, 3, 3, 3, 3, 5]


def test_a_number_of_bins_is_of_equal_width_and_empty_ones_vanish():
    attribute = ages([0, 1, 9, 10], [1, 1, 1, 1])
    assert representatives(attribute, 5, "rr_distort").tolist() == [0, 0, 2, 2]
    assert representatives(attribute, 1, "rr_distort").tolist() == [1, 1, 1, 1]


def test_values_that_are_not_finite_stay_their_own():
    attribute = ages([0, 1, 2, 5, 8], [1, 1, 1, 1, 1], special_from=3)
    assert representatives(attribute, 1, "rr_distort").tolist() == [1, 1, 1, 3, 4]


@pytest.mark.parametrize("bins", [0, 2.5, "four", True, None, [None], [[1, 2], [3]]])
def test_nonsense_bins_are_refused(bins):
    with pytest.raises(ParameterError, match="bins of 'age' must be"):
        representatives(ages([0, 1], [1, 1]), bins, "rr_distort")
