"""Numbers of buckets tell which hold the same counts, and nothing else."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from duckdb_anon.kernels import bucket_numbers
from duckdb_anon.kernels.bucket_numbers import numbered_by_kind
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.kinds import BELOW

Bucket = tuple[tuple[int, int], ...]


def _numbers(buckets: list[Bucket]) -> IntArray:
    cells = [cell for bucket in buckets for cell in bucket]
    return numbered_by_kind(
        np.cumsum([0, *(len(bucket) for bucket in buckets)]),
        np.array([code for code, _ in cells], dtype=np.int32),
        np.array([count for _, count in cells], dtype=np.int64),
    )


def _drawn(seed: int, kinds: int, buckets: int) -> list[Bucket]:
    pick = random.Random(seed)
    made: list[Bucket] = []
    for _ in range(kinds):
        codes = sorted(pick.sample(range(40), pick.randrange(1, 6)))
        made.append(tuple((code, pick.choice((1, 1, 2))) for code in codes))
    return [pick.choice(made) for _ in range(buckets)]


@pytest.mark.parametrize("seed", range(20))
def test_the_low_bits_are_the_kind_and_places_within_a_kind_follow_each_other(seed: int) -> None:
    buckets = _drawn(seed, kinds=1 + seed, buckets=120)
    numbers = _numbers(buckets).tolist()
    kinds = {bucket: number % BELOW for bucket, number in zip(buckets, numbers, strict=True)}
    first = list(dict.fromkeys(buckets))
    seen: Counter[Bucket] = Counter()
    for bucket, number in zip(buckets, numbers, strict=True):
        assert number == seen[bucket] * BELOW + first.index(bucket) + 1
        seen[bucket] += 1
    assert len(set(kinds.values())) == len(kinds)


def test_buckets_of_too_many_kinds_are_numbered_from_one_on() -> None:
    few = [((code, 1),) for code in range(6)]
    assert _numbers([*few, few[0]]).tolist() == [1, 2, 3, 4, 5, 6, 7]
    many = [((code, 1),) for code in range(BELOW)]
    assert _numbers([*many, *many, *many]).max() == 3 * BELOW
    assert _numbers([*many[1:], *many[1:]]).max() == BELOW + BELOW - 1


def test_no_buckets_have_no_numbers() -> None:
    assert _numbers([]).tolist() == []


def test_kinds_that_fall_together_by_chance_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_numbers, "_mixed", lambda values: values * np.uint64(0))
    buckets: list[Bucket] = [((0, 1), (1, 1)), ((0, 1), (2, 1))] * 4
    assert _numbers(buckets).tolist() == list(range(1, 9))


def test_values_and_their_names_do_not_order_the_kinds() -> None:
    """Kinds follow each other as in the order of the buckets, which is random, whatever values they hold."""
    buckets = _drawn(5, kinds=9, buckets=200)
    renamed = [tuple(sorted((39 - code, count) for code, count in bucket)) for bucket in buckets]
    assert (_numbers(buckets) == _numbers(renamed)).all()
