"""Calls with fixed seeds; more by hand, see `tests.fuzz`."""

import pytest

from duckdb_anon.registry import METHODS
from tests.fuzz import bounds
from tests.fuzz.campaign import campaign


def test_a_few_calls_are_answered_or_refused_as_they_should_be():
    tally = campaign(40, seed=0)
    assert not tally.faults, "\n\n".join(tally.faults)


# random tables have seldom the hierarchies and constant columns that a row for each person asks for
@pytest.mark.campaign
@pytest.mark.parametrize("method", [m for m in METHODS if "person" not in m.needs], ids=lambda method: method.name)
def test_promises_of_a_method_hold_on_random_tables(method):
    tally = campaign(14, seed=2, method=method)
    assert not tally.faults, "\n\n".join(tally.faults)
    assert tally.proved[method.name] > 1


@pytest.mark.campaign
def test_random_calls_are_answered_or_refused_as_they_should_be():
    tally = campaign(300, seed=1)
    print(tally.shown())
    assert not tally.faults, "\n\n".join(tally.faults)
    assert tally.proved.total() > 20


@pytest.mark.parametrize("cells", [100, pytest.param(7_000, marks=pytest.mark.campaign)])
def test_hard_bounds_hold_of_every_cell(cells):
    tally = bounds.campaign(cells, seed=1)
    print(tally.shown())
    assert not tally.violations, "\n\n".join(tally.violations)
    assert all(tally.cells[shape] > cells / 70 for shape in ("boxes", "buckets", "randomized"))


@pytest.mark.campaign
def test_extremes_of_groups_that_may_hold_cells_without_ends_alone():
    """A campaign of 1,000,000 cells found this table: a group's only values stood in cells without ends."""
    tally = bounds.campaign(1, seed=20261126, start=6, shapes=("boxes",))
    assert not tally.violations, "\n\n".join(tally.violations)
    assert tally.cells["boxes"] > 100
