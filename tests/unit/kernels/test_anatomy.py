"""Buckets of Anatomy: the promises of the paper's algorithm, and its own slow version."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from duckdb_anon.kernels.bucketize import anatomize, largest_l
from duckdb_anon.model.errors import RequirementError
from tests.reference import anatomy

HOSPITAL = [0, 0, 1, 2, 3, 4, 5, 6]  # Fever twice, six other diseases once


def _contents(bucket: list[int], values: list[int]) -> list[list[int]]:
    inside: defaultdict[int, list[int]] = defaultdict(list)
    for b, v in zip(bucket, values, strict=True):
        inside[b].append(v)
    return list(inside.values())


def _dealt(values: list[int], least: int, seed: int = 0) -> list[list[int]]:
    codes = np.array(values, dtype=np.int32)
    return _contents(anatomize(codes, least, np.random.default_rng(seed)).tolist(), values)


def _eligible(seed: int, least: int) -> list[int]:
    pick = random.Random(seed)
    values = [min(int(pick.expovariate(0.4)), 9) for _ in range(pick.randrange(least, 90))]
    while max(Counter(values).values()) * least > len(values):
        values.append(10 + len(values))
    return values


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("least", [1, 2, 3, 5, 8])
def test_buckets_hold_l_different_values_and_are_as_many_as_in_the_paper(seed: int, least: int) -> None:
    values = _eligible(seed, least)
    buckets = _dealt(values, least, seed)
    slow = _contents(anatomy.anatomize(values, least, seed), values)
    assert sorted(v for b in buckets for v in b) == sorted(values)
    assert all(len(b) >= least and len(set(b)) == len(b) for b in buckets)
    assert len(buckets) == len(slow) == len(values) // least
    assert sum(len(b) - least for b in buckets) == sum(len(b) - least for b in slow) < least


def test_hospital_makes_four_pairs_or_two_buckets_of_eight_records() -> None:
    assert sorted(len(b) for b in _dealt(HOSPITAL, 2)) == [2, 2, 2, 2]
    sizes = {tuple(sorted(len(b) for b in _dealt(HOSPITAL, 3, seed))) for seed in range(40)}
    assert sizes == {(4, 4), (3, 5)}
    assert sorted(len(b) for b in _dealt(HOSPITAL, 4)) == [4, 4]


def test_a_value_too_frequent_is_an_error_that_names_the_largest_l() -> None:
    codes = np.array(HOSPITAL, dtype=np.int32)
    assert largest_l(codes) == 4
    with pytest.raises(RequirementError, match=r"l := 5 is not possible.*2 of 8 rows.*largest possible l is 4"):
        anatomize(codes, 5, np.random.default_rng(0))


def test_l_of_one_gives_every_record_a_bucket_of_its_own() -> None:
    assert sorted(len(b) for b in _dealt(HOSPITAL, 1)) == [1] * 8


def test_no_records_make_no_buckets() -> None:
    assert len(anatomize(np.empty(0, dtype=np.int32), 3, np.random.default_rng(0))) == 0
    assert largest_l(np.empty(0, dtype=np.int32)) == 0


def test_which_records_share_a_bucket_is_left_to_chance() -> None:
    codes = np.repeat(np.arange(4, dtype=np.int32), 6)
    together = Counter(
        (bucket[6:12] == bucket[0]).argmax()
        for bucket in (anatomize(codes, 4, np.random.default_rng(seed)) for seed in range(1200))
    )
    chi2 = sum((count - 200) ** 2 / 200 for count in together.values())
    assert len(together) == 6
    assert chi2 < 20.5  # 0.999 quantile with 5 degrees of freedom
