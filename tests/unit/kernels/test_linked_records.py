"""Columns of linked tables are permuted in groups whose members keep equal rows; an insider finds 1 / |group|."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duckdb_anon.kernels.permutation.linked_records import Rows, kept_rows, linked_groups, permuted_tables
from duckdb_anon.model.coded_table import Attribute
from tests.reference.linked_records import chance_of_own_row


def _column(rng, rows, values, kind="ordered"):
    codes = rng.integers(0, values, rows).astype(np.int32)
    return Attribute("x", kind, codes, np.arange(values + 0.0), values, -1, codes[:0])


def _hospital(rng, people, most=4):
    """Individuals, their visits, and the tests of these."""
    visits = np.repeat(np.arange(people), rng.integers(0, most + 1, people))
    tests = np.repeat(np.arange(len(visits)), rng.integers(0, 3, len(visits)))
    everybody = np.arange(people)
    return [
        Rows(-1, everybody, everybody, [_column(rng, people, 30), _column(rng, people, 2, "nominal")]),
        Rows(0, visits, visits, [_column(rng, len(visits), 20), _column(rng, len(visits), 3, "nominal")],
             sensitive=[_column(rng, len(visits), 5, "nominal")]),
        Rows(1, tests, visits[tests], [_column(rng, len(tests), 9)]),
    ]  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), people=st.integers(6, 80), least=st.integers(2, 6), calibrate=st.booleans())
def test_members_of_a_group_keep_equal_rows_and_values_stay_in_their_places(seed, people, least, calibrate):
    rng = np.random.default_rng(seed)
    tables = _hospital(rng, people)
    group = linked_groups(tables, least)
    assert np.bincount(group).min() >= least
    kept = kept_rows(tables, group, rng)
    sources = permuted_tables(tables, kept, rng, calibrate=calibrate)
    for number, (table, rows, source) in enumerate(zip(tables, kept, sources, strict=True)):
        members = table.individual[rows.row]
        for cell in np.unique(rows.cell):
            here = rows.cell == cell
            assert len(set(members[here])) == here.sum() == (group == group[members[here][0]]).sum()
            for taken in source:
                assert sorted(taken[here]) == np.flatnonzero(here).tolist()
        if number:
            above = kept[table.parent]
            assert (tables[table.parent].individual[above.row[rows.parent]] == members).all()
            assert (table.parent_row[rows.row] == above.row[rows.parent]).all()
    # of a table below the individuals, a group loses nothing but what its members do not share
    visits = np.bincount(tables[1].individual, minlength=people)
    tests = np.bincount(tables[2].individual, minlength=people)
    if not tests.any():
        for g in np.unique(group):
            assert (
                np.bincount(tables[1].individual[kept[1].row], minlength=people)[group == g] == visits[group == g].min()
            ).all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_an_insider_finds_the_own_row_with_exactly_one_in_the_group(seed):
    rng = np.random.default_rng(seed)
    tables = _hospital(rng, int(rng.integers(4, 9)), most=2)
    group = linked_groups(tables, 2)
    kept = kept_rows(tables, group, rng)
    sources = permuted_tables(tables, kept, rng, calibrate=False)
    for g in np.flatnonzero(np.bincount(group) <= 4):
        members = np.flatnonzero(group == g).tolist()
        originals, released = [{m: {} for m in members} for _ in range(2)]
        for table, rows, source in zip(tables, kept, sources, strict=True):
            for at, (row, cell) in enumerate(zip(rows.row, rows.cell, strict=True)):
                if (m := int(table.individual[row])) in members:
                    place = (table.parent, int(cell))
                    originals[m][place] = tuple(int(a.codes[row]) for a in table.columns)
                    released[m][place] = tuple(
                        int(a.codes[rows.row[s[at]]]) for a, s in zip(table.columns, source, strict=True)
                    )
        chances = chance_of_own_row(list(originals.values()), list(released.values()))
        assert chances == [Fraction(1, len(members))] * len(members)


def test_the_reference_finds_an_individual_with_more_rows_than_others():
    person = {0: (1,)}
    assert chance_of_own_row([person, {0: (2,), 1: (3,)}], [{0: (2,)}, {0: (1,), 1: (3,)}]) == [1, 1]


def test_groups_agree_on_numbers_of_rows_before_anything_else():
    rng = np.random.default_rng(1)
    visits = np.repeat(np.arange(400), np.arange(400) % 4)
    tables = [
        Rows(-1, np.arange(400), np.arange(400), [_column(rng, 400, 50)]),
        Rows(0, visits, visits, [_column(rng, len(visits), 50)]),
    ]
    group = linked_groups(tables, 10)
    assert len(kept_rows(tables, group, rng)[1].row) == len(visits)
    assert all(len(set((np.arange(400) % 4)[group == g])) == 1 for g in np.unique(group))


@pytest.mark.parametrize("calibrate", [False, True])
def test_columns_that_move_together_keep_their_distance(calibrate):
    rng = np.random.default_rng(2)
    owner = np.repeat(np.arange(60), 3)
    days = _column(rng, 180, 300)
    later = days.with_codes(days.codes)
    below = np.arange(180)
    tables = [
        Rows(-1, np.arange(60), np.arange(60), [_column(rng, 60, 5)]),
        Rows(0, owner, owner, [days, later], moves_with=[-1, 0]),
        Rows(1, below, owner, [days.with_codes(days.codes[below])], moves_with=[1]),
    ]
    kept = kept_rows(tables, linked_groups(tables, 5), rng)
    _, (first, second), (tested,) = permuted_tables(tables, kept, rng, calibrate=calibrate)
    assert (first == second).all() and len(set(first.tolist())) == 180
    released = days.codes[kept[1].row][first]
    assert (days.codes[kept[2].row][tested] == released[kept[2].parent]).all()
    assert (released != days.codes[kept[1].row]).mean() > 0.5


def test_calibration_brings_counts_of_demographics_and_rows_nearer():
    rng = np.random.default_rng(3)
    age = _column(rng, 4000, 60)
    visits = np.repeat(np.arange(4000), 2)
    ward = (age.codes[visits] // 6 + rng.integers(0, 4, len(visits))).astype(np.int32)
    attribute = Attribute("ward", "nominal", ward, np.arange(14.0), 14, -1, ward[:0])
    noise = [_column(rng, 4000, 40) for _ in range(4)]
    tables = [Rows(-1, np.arange(4000), np.arange(4000), [age, *noise]), Rows(0, visits, visits, [attribute])]
    kept = kept_rows(tables, linked_groups(tables, 20), rng)
    apart = []
    for calibrate in (False, True):
        people, (wards,) = permuted_tables(tables, kept, np.random.default_rng(4), calibrate=calibrate)
        place = np.argsort(kept[0].row)
        aged = age.codes[kept[0].row[people[0]]][place][visits[kept[1].row]]
        before = np.histogram2d(age.codes[visits[kept[1].row]], ward[kept[1].row], bins=10)[0]
        after = np.histogram2d(aged, ward[kept[1].row[wards]], bins=10)[0]
        apart.append(float(abs(after - before).sum()))
    assert apart[1] < 0.75 * apart[0]
