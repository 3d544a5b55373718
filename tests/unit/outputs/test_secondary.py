"""Hidden cells cannot be derived from totals, and few cells are hidden for it."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from duckdb_anon.outputs.secondary import System, _attainable, interval, protect, unprotected

LEAST = 10


def table(shape, rng, sets=None):
    """Random counts with totals: cells of all grouping sets, those below the threshold primary."""
    counts = rng.negative_binomial(1, 0.03, size=shape).astype(float)
    codes, values = np.argwhere(counts > 0), counts[counts > 0]
    keys = range(len(shape))
    sets = sets or [chosen for count in range(len(shape), -1, -1) for chosen in itertools.combinations(keys, count)]
    members = []
    for chosen in sets:
        labels = codes[:, list(chosen)] if chosen else np.zeros((len(codes), 1))
        _, place = np.unique(labels, axis=0, return_inverse=True)
        ones = (np.ones(len(codes)), (place.ravel(), np.arange(len(codes))))
        members.append(sparse.csr_array(ones, shape=(place.max() + 1, len(codes))))
    cells = sparse.vstack(members, format="csr")
    primary = cells @ values < LEAST
    low, high = np.where(primary, 1.0, LEAST), np.where(primary, LEAST - 1.0, np.inf)
    least, most = np.where(primary, 1.0, np.nan), np.where(primary, LEAST - 1.0, np.nan)
    return System(cells, values, primary, low, high, least, most, True, np.zeros(len(low), bool), codes, tuple(sets))


def derived(system, hidden, cell):
    """The interval of a cell, by a program of its own: every cell has bounds."""
    low = np.where(hidden, system.low, system.totals)
    high = np.where(hidden, system.high, system.totals)
    cells = system.members.toarray()
    return [
        side * linprog(side * cells[cell], np.vstack([cells, -cells])[np.r_[high, -low] < np.inf],
                       np.r_[high, -low][np.r_[high, -low] < np.inf]).fun
        for side in (1, -1)
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(6,), (4, 5), (3, 3, 3), (9, 11)])
def test_every_derived_interval_contains_what_the_rule_asks(shape):
    rng = np.random.default_rng(sum(shape))
    for _ in range(3):
        system = table(shape, rng)
        hidden = protect(system)
        assert (hidden >= system.hidden).all()
        assert hidden.sum() < len(hidden)
        for cell in np.flatnonzero(system.hidden)[:12]:
            low, high = derived(system, hidden, cell)
            # parts of a hidden cell, each 1 or more, are below it even where nothing is published
            least, most = derived(system, np.ones(len(hidden), bool), cell)
            assert low <= max(1, least) + 1e-6 and high >= min(LEAST - 1, most) - 1e-6
            assert interval(system, hidden, cell) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


def test_nothing_is_printed_by_the_solver(capfd):
    rng = np.random.default_rng(3)
    for place in range(8):
        protect(table([(3, 3), (2, 4), (4, 5), (3, 4)][place % 4], rng))
    assert capfd.readouterr().out == ""


def test_the_audit_finds_a_cell_that_totals_give_away():
    system = table((4, 5), np.random.default_rng(9))
    assert system.hidden.any()
    assert unprotected(system, system.hidden)


@pytest.mark.parametrize("sets", [[(0,), (1,), ()], [(0, 1), (0,), ()], [(0, 1), (1,)]])
def test_tables_without_their_cells_and_hierarchies_are_protected(sets):
    system = table((5, 6), np.random.default_rng(4), sets)
    assert unprotected(system, protect(system)) == []


def test_published_cells_are_not_hidden_again():
    system = table((4, 5), np.random.default_rng(9))
    fixed = np.zeros(len(system.low), bool)
    fixed[-1] = True
    hidden = protect(System(**{**vars(system), "fixed": fixed}))
    assert not hidden[-1] and unprotected(system, hidden) == []


def fewest(system):
    """Number of hidden cells of the best pattern: all subsets, the small ones first."""
    others = np.flatnonzero(~system.hidden)
    for count in range(len(others) + 1):
        for chosen in itertools.combinations(others, count):
            hidden = system.hidden.copy()
            hidden[list(chosen)] = True
            if not unprotected(_attainable(system), hidden):
                return int(hidden.sum())
    raise AssertionError


def ratios(tables, shapes, seed):
    rng, found = np.random.default_rng(seed), []
    while len(found) < tables:
        system = table(shapes[len(found) % len(shapes)], rng)
        if 0 < system.hidden.sum() < 4:
            found.append(protect(system).sum() / fewest(system))
    return found


def test_no_more_than_the_fewest_cells_are_hidden_in_small_tables():
    assert max(ratios(2, [(4,), (2, 2)], 5)) == 1


@pytest.mark.campaign
@pytest.mark.weekly
def test_no_more_than_the_fewest_cells_are_hidden_in_fifty_tables():
    assert max(ratios(50, [(5,), (2, 3), (3, 3), (2, 4)], 3)) <= 1.3


@pytest.mark.campaign
@pytest.mark.parametrize("shape", [(9900,), (100, 100), pytest.param((20, 20, 25), marks=pytest.mark.weekly)])
def test_ten_thousand_cells_are_protected(shape):
    system = table(shape, np.random.default_rng(0))
    assert unprotected(system, protect(system)) == []
