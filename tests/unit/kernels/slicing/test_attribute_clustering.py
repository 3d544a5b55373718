"""phi squared against its definition and the hospital example, and k-medoids on small distance matrices."""

import numpy as np
import pytest
from scipy.stats.contingency import association, crosstab

from duckdb_anon.methods.slicing import (
    association_matrix,
    equal_width,
    pam,
    phi_squared,
    related_columns,
)
from tests.reference.merging import HOSPITAL_A, HOSPITAL_B, attribute, hospital


def test_hospital_associations_are_those_of_the_worked_example():
    # order of the quasi-identifiers: zip, age, sex; age in two intervals; zip codes as names
    expected = {"A": (0.0044, 0.2, 0.7333), "B": (0.25, 0.75, 0.75)}
    for name, rows in (("A", HOSPITAL_A), ("B", HOSPITAL_B)):
        zips = attribute("zip", [str(r[2]) for r in rows], "nominal")
        _, age, sex = hospital(rows).qi
        age_sex = phi_squared(equal_width(age, 2), sex.codes.astype(np.int64))
        sex_zip = phi_squared(sex.codes.astype(np.int64), zips.codes.astype(np.int64))
        age_zip = phi_squared(equal_width(age, 2), zips.codes.astype(np.int64))
        assert (age_sex, sex_zip, age_zip) == pytest.approx(expected[name], abs=5e-5)


def test_random_columns_agree_with_the_definition():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        left, right = rng.integers(0, rng.integers(1, 7), n), rng.integers(0, rng.integers(1, 7), n)
        varied = min(len(set(left)), len(set(right))) > 1
        expected = association(crosstab(left, right).count, method="cramer") ** 2 if varied else 0
        assert phi_squared(left, right) == pytest.approx(expected, abs=1e-12)


def test_intervals_are_equally_wide_and_the_last_is_closed():
    column = attribute("x", [0.0, 1.0, 2.4, 2.5, 9.9, 10.0, None])
    assert equal_width(column, 4).tolist() == [0, 0, 0, 1, 3, 3, 4]


def test_null_is_a_category_of_its_own():
    left = attribute("x", [1, 1, None, None])
    right = attribute("y", ["a", "a", "b", "b"])
    assert association_matrix([left, right])[0, 1] == pytest.approx(1.0)


def test_no_single_exchange_of_medoids_would_be_better():
    rng = np.random.default_rng(1)
    for _ in range(30):
        half = np.triu(rng.random((6, 6)), 1)
        distance = half + half.T
        chosen = np.unique(pam(distance, 2)).tolist()
        cost = distance[:, chosen].min(axis=1).sum()
        for keep in chosen:
            for other in set(range(6)) - set(chosen):
                assert distance[:, [keep, other]].min(axis=1).sum() >= cost - 1e-9


def test_related_attributes_share_a_column_and_keep_their_order():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    columns = [attribute("a", a.tolist()), attribute("b", b.tolist()), attribute("a2", (3 - a).tolist())]
    assert related_columns(columns, 2) == (("a", "a2"), ("b",))
    assert related_columns(columns, 9) == (("a",), ("b",), ("a2",))
    assert related_columns([], 2) == ()
