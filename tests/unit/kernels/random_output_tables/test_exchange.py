"""Swapping drawn values inside groups."""

from __future__ import annotations

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables import cover
from duckdb_anon.kernels.random_output_tables.min_changed import exchange_values, pick_attribute
from tests.reference.cover_lp import nominal, ordered

GROUP = np.repeat(np.arange(15), 20)


@pytest.fixture
def covers():
    rng = np.random.default_rng(0)
    return [
        cover(ordered(rng.integers(0, 9, 300), "age"), GROUP, 0.2),
        cover(nominal(rng.integers(0, 3, 300), "sex"), GROUP, 0.2),
    ]


def swapped(covers, wanted):
    rng = np.random.default_rng(1)
    codes = np.stack([c.draw(rng) for c in covers])
    original = np.stack([c.attribute.codes for c in covers])
    before = codes.copy()
    exchange_values(covers, codes, original, np.ones((2, 15)), np.full(300, wanted), rng)
    return before, codes, original


@pytest.mark.parametrize("wanted", [1, 2])
def test_histograms_of_every_group_stay_as_drawn(covers, wanted):
    before, after, _ = swapped(covers, wanted)
    assert (before != after).any()
    for number in range(15):
        assert (np.sort(before[:, GROUP == number]) == np.sort(after[:, GROUP == number])).all()


@pytest.mark.parametrize("wanted", [1, 2])
def test_no_record_with_enough_changes_ends_with_too_few(covers, wanted):
    before, after, original = swapped(covers, wanted)
    enough = (before != original).sum(axis=0) >= wanted
    assert ((after != original).sum(axis=0) >= wanted)[enough].all()


def test_hardly_any_record_is_left_unchanged(covers):
    before, after, original = swapped(covers, 1)
    assert (before == original).all(axis=0).sum() > 10
    assert (after == original).all(axis=0).sum() <= 2


def test_groups_that_published_one_value_find_no_partner_and_end():
    tables = [cover(ordered(np.arange(10.0)), np.zeros(10, dtype=np.int64), 0.1, 0.0)]
    codes, original = np.full((1, 10), 4, dtype=np.int32), tables[0].attribute.codes[None]
    exchange_values(tables, codes, original, np.ones((1, 1)), np.ones(10, dtype=np.int64), np.random.default_rng(2))
    assert (codes == 4).all()


def test_attributes_are_picked_in_proportion_to_their_odds():
    odds = np.repeat(np.array([[1.0], [0.0], [3.0]]), 20_000, axis=1)
    shares = np.bincount(pick_attribute(odds, np.random.default_rng(3)), minlength=3) / 20_000
    assert shares == pytest.approx([0.25, 0.0, 0.75], abs=0.02)
