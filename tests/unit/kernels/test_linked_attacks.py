"""Attackers on permuted linked records: power where there is something to find, and 1 / |group| where there is not."""

import numpy as np
import pytest

from duckdb_anon.kernels.attacks.linked_records import Covered, insider, nearest
from duckdb_anon.kernels.permutation.linked_records import Rows, kept_rows, permuted_tables
from duckdb_anon.model.coded_table import Attribute

PEOPLE, VISITS = 600, 3


def _coded(codes, kind="ordered"):
    codes = np.asarray(codes, dtype=np.int32)
    return Attribute("x", kind, codes, np.arange(codes.max() + 1.0), int(codes.max()) + 1, -1, codes[:0])


def _covered(disease_of_ward, *, size=20, calibrate=False, permute=True):
    """Individuals of ages 0 to 9 in groups of random members, with three visits each; a disease follows the ward."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 10, PEOPLE)
    owner = np.repeat(np.arange(PEOPLE), VISITS)
    day, ward = rng.integers(0, 300, len(owner)), rng.integers(0, 6, len(owner))
    disease = np.where(rng.random(len(owner)) < disease_of_ward, ward, rng.integers(0, 6, len(owner)))
    tables = [
        Rows(-1, np.arange(PEOPLE), np.arange(PEOPLE), [_coded(age)]),
        Rows(0, owner, owner, [_coded(day), _coded(ward, "nominal")], sensitive=[_coded(disease, "nominal")]),
    ]
    group = rng.permutation(PEOPLE) // size
    kept = kept_rows(tables, group, rng)
    sources = permuted_tables(tables, kept, rng, calibrate=calibrate)
    if not permute:
        sources = [np.tile(np.arange(source.shape[1]), (len(source), 1)) for source in sources]
    return Covered(tables, kept, sources, group)


@pytest.mark.parametrize("calibrate", [False, True])
def test_an_insider_finds_one_in_the_group_where_nothing_depends_on_the_known_values(calibrate):
    found = insider(_covered(0.0, calibrate=calibrate), np.arange(PEOPLE))
    assert 0.02 < found.mean() < 0.085  # 1 / 20, of 600


def test_an_insider_learns_sensitive_values_from_the_release():
    # calibrated: the release has the association of ward and disease, which permuting in random groups cuts
    assert insider(_covered(0.9, calibrate=True), np.arange(PEOPLE)).mean() > 0.3


def test_an_insider_learns_from_tables_without_permuted_columns():
    made = _covered(0.0, calibrate=True)
    visits, rng = made.tables[1], np.random.default_rng(3)
    below = np.repeat(np.arange(len(visits.individual)), rng.integers(0, 3, len(visits.individual)))
    released = np.empty(len(visits.individual), dtype=np.int64)  # a test tells the released ward, and the original one
    released[made.kept[1].row] = visits.columns[1].codes[made.kept[1].row[made.sources[1][1]]]
    value = np.where(rng.random(len(below)) < 0.5, visits.columns[1].codes[below], released[below])
    tests = Rows(1, below, visits.individual[below], (), (), [_coded(value, "nominal")])
    told = Covered(made.tables, made.kept, made.sources, made.group, [tests])
    assert insider(told, np.arange(PEOPLE)).mean() > 0.15


def test_an_insider_finds_rows_that_were_not_permuted():
    assert insider(_covered(0.0, permute=False), np.arange(PEOPLE)).mean() > 0.3


def test_the_nearest_values_find_rows_that_were_not_permuted_and_no_others():
    targets, rng = np.arange(0, PEOPLE, 4), np.random.default_rng(2)
    assert nearest(_covered(0.0, permute=False), targets, 3, rng).mean() > 0.95
    assert nearest(_covered(0.0), targets, 3, rng).mean() < 0.03
    known = nearest(_covered(0.0, permute=False), targets, 0, rng)
    ages = np.bincount(_covered(0.0).tables[0].columns[0].codes)
    assert known == pytest.approx(1 / ages[_covered(0.0).tables[0].columns[0].codes[targets]])
