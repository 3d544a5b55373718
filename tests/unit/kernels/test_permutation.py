"""Permutations inside groups, exactly, and what repair may change."""

from collections import Counter
from itertools import combinations, permutations, product
from math import factorial

import numpy as np
import pytest

from duckdb_anon.kernels.permutation import marginal_calibration
from duckdb_anon.kernels.permutation.marginal_calibration import LEAST_COUNT, repaired
from duckdb_anon.kernels.permutation.permute_within_groups import _shuffle, permuted
from duckdb_anon.kernels.thread_pool import allowed
from duckdb_anon.model.coded_table import Attribute
from tests.reference.cover_lp import nominal, ordered


def shuffles(size: int) -> list[tuple[int, ...]]:
    """What the shuffle makes of every combination of choices it has, each as likely as the others."""
    result = []
    for choice in product(*(range(i + 1) for i in range(size))):
        chance = np.array([(c + 0.5) / (i + 1) for i, c in enumerate(choice)])
        source = np.empty(size, dtype=np.int64)
        _shuffle(np.arange(size), np.array([0, size]), chance, np.arange(size), source)
        result.append(tuple(int(s) for s in source))
    return result


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_permutation_is_equally_likely(size):
    counts = Counter(shuffles(size))
    assert set(counts) == set(permutations(range(size)))
    assert set(counts.values()) == {1}


@pytest.mark.parametrize("columns", [((0, 1, 2), (5, 5, 7)), ((0, 0, 0), (1, 1, 2)), ((0, 1, 2), (2, 0, 1))])
def test_an_insider_finds_each_row_with_exactly_one_over_the_group(columns):
    # all outcomes of a group of three with two quasi-identifiers and a sensitive value that tells rows apart; the
    # rows of the release stand in random order, and she knows every quasi-identifier of the group
    outcomes: dict[tuple[tuple[int, ...], ...], Counter[tuple[int, int]]] = {}
    for first, second, order in product(shuffles(3), shuffles(3), permutations(range(3))):
        rows = [(columns[0][first[i]], columns[1][second[i]], i) for i in range(3)]
        release = tuple(rows[i] for i in order)
        seen = outcomes.setdefault(tuple(row[:2] for row in release), Counter())
        seen.update((person, order.index(person)) for person in range(3))
    total = factorial(3) ** 3
    for person in range(3):
        best = sum(max(seen[person, place] for place in range(3)) for seen in outcomes.values())
        assert best * 3 == total


def triple_error(columns: list[np.ndarray], published: list[np.ndarray], amount: np.ndarray, least: int) -> float:
    """Sum of |published - original| amounts over the cells of all triples that have so many rows."""
    total = 0.0
    for chosen in combinations(range(len(columns)), 3):
        rows, before, after = np.zeros((3, 4, 4, 4))
        np.add.at(rows, tuple(columns[c] for c in chosen), 1)
        np.add.at(before, tuple(columns[c] for c in chosen), amount)
        np.add.at(after, tuple(published[c] for c in chosen), amount)
        total += float(np.abs(before - after)[rows >= least].sum())
    return total


@pytest.mark.parametrize("large", [1, 1 << 17])
def test_repair_keeps_groups_and_brings_marginals_and_sums_nearer(large, monkeypatch):
    monkeypatch.setattr(marginal_calibration, "_LARGE", large)
    rng = np.random.default_rng(6)
    base = rng.integers(0, 4, 6000)
    attributes = [nominal(((base + rng.integers(0, 2, 6000)) % 4).tolist(), f"a{k}") for k in range(4)]
    wage = np.rint(rng.lognormal(base * 0.5, 0.7) * 100)
    group = rng.permutation(np.repeat(np.arange(400), 15))
    source = permuted(group, 4, rng)
    secret = nominal(((base + rng.integers(0, 2, 6000)) % 4).tolist(), "s")
    codes = [a.codes for a in attributes]

    def repair(sensitive: Attribute) -> np.ndarray:
        return repaired(attributes, [sensitive], group, source.copy(), np.random.default_rng(7))

    def moved(rows: np.ndarray) -> list[np.ndarray]:
        return [c[each] for c, each in zip(codes, rows, strict=True)]

    better = repair(secret)
    for rows in better:
        assert (group[rows] == group).all() and len(set(rows.tolist())) == 6000
    errors = [
        triple_error([*codes, secret.codes], [*moved(rows), secret.codes], np.ones(6000), LEAST_COUNT)
        for rows in (source, better)
    ]
    assert errors[1] < 0.5 * errors[0]
    repairs = [repair(ordered(wage))]
    monkeypatch.setattr(marginal_calibration, "_summed", lambda sensitive, rows: np.empty((rows, 0), dtype=np.int32))
    repairs.append(repair(ordered(wage)))
    sums, counts, none = (triple_error(codes, moved(rows), wage, 0) for rows in (*repairs, source))
    assert sums < 0.5 * none
    assert sums < 0.8 * counts


def test_one_record_moves_no_sum_by_more_than_its_rounding():
    values = np.array([1.0] * 5000 + [1e6])
    moved = marginal_calibration._summed([ordered(values), nominal(list("ab") * 2500 + ["a"])], len(values))
    assert moved.shape == (5001, 1)
    assert moved.max() == marginal_calibration.BASE * marginal_calibration.UNIT


def test_what_is_drawn_and_exchanged_does_not_depend_on_the_threads(monkeypatch):
    monkeypatch.setattr(marginal_calibration, "_LARGE", 1)
    seen = np.random.default_rng(9)
    attributes = [ordered(seen.integers(0, 5, 3000)) for _ in range(4)]
    group = seen.permutation(np.repeat(np.arange(300), 10))
    results = []
    for many in (1, 2, 5):
        rng = np.random.default_rng(10)
        with allowed(many):
            results.append(repaired(attributes[:3], attributes[3:], group, permuted(group, 3, rng), rng))
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()
