"""Buckets of Anatomy: the promises of the paper's algorithm, and its own slow version."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from duckdb_anon.kernels.bucketize import anatomize

HOSPITAL = [0, 0, 1, 2, 3, 4, 5, 6]  # Fever twice, six other diseases once


def _contents(bucket: list[int], values: list[int]) -> list[list[int]]:
    inside: defaultdict[int, list[int]] = defaultdict(list)
    for b, v in zip(bucket, values, strict=True):
        inside[b].append(v)
    return list(inside.values())


def _dealt(values: list[int], least: int, seed: int = 0) -> list[list[int]]:
    codes = np.array(values, dtype=np.int32)
    return _contents(anatomize(codes, least, np.random.default_rng(seed)).tolist(), values)


def test_hospital_makes_four_pairs_or_two_buckets_of_eight_records() -> None:
    assert sorted(len(b) for b in _dealt(HOSPITAL, 2)) == [2, 2, 2, 2]
    sizes = {tuple(sorted(len(b) for b in _dealt(HOSPITAL, 3, seed))) for seed in range(40)}
    assert sizes == {(4, 4), (3, 5)}
    assert sorted(len(b) for b in _dealt(HOSPITAL, 4)) == [4, 4]


def test_which_records_share_a_bucket_is_left_to_chance() -> None:
    codes = np.repeat(np.arange(4, dtype=np.int32), 6)
    together = Counter(
        (bucket[6:12] == bucket[0]).argmax()
        for bucket in (anatomize(codes, 4, np.random.default_rng(seed)) for seed in range(1200))
    )
    chi2 = sum((count - 200) ** 2 / 200 for count in together.values())
    assert len(together) == 6
    assert chi2 < 20.5  # 0.999 quantile with 5 degrees of freedom
