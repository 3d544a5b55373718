"""Cell generalization: the published cells of the worked example, and its promises on random tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.kernels.slicing.cell_generalization import (
    CellRows,
    SlicedTable,
    check_repaired,
    median_parts,
    parts_of_cells,
    repair,
    still_violated,
)
from duckdb_anon.kernels.slicing.covers import EXACT, Cover
from duckdb_anon.kernels.slicing.validity_rules import PairRule, ValidityRule, ValidityRules, unseen_pairs
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.released_columns import Interval, Node, ValueSet
from tests.reference.merging import FEMALE_DISEASES, HOSPITAL_A, HOSPITAL_B, attribute, hospital, possible, together


def _printed(cover: Cover, values: list[object]) -> list[str]:
    """The printed value of each slot as the paper writes it."""
    cells = cover.cells
    if isinstance(cells, Node):
        return [cells.labels[cells.node[g]] for g in cells.index]
    if isinstance(cells, ValueSet):
        sets = [cells.codes[cells.offsets[g] : cells.offsets[g + 1]] for g in cells.index]
        return [str(values[s[0]]) if len(s) == 1 else "*" for s in sets]
    assert isinstance(cells, Interval)
    ends = [(values[cells.lower[g]], values[cells.upper[g]]) for g in cells.index]
    return [str(low) if low == high else f"{low}-{high}" for low, high in ends]


def _repaired(rows: list[tuple[int, str, int, str]], diseases: list[str], zips: list[int]) -> list[Counter[str]]:
    """Cells after a given permutation: slot i keeps its (age, sex), gets zips[i] and diseases[i]."""
    table = hospital(rows, zip_as_tree=True)
    place = {d: c for d, c in zip([r[3] for r in rows], table.sensitive[0].codes, strict=True)}
    zip_code = {r[2]: c for r, c in zip(rows, table.qi[0].codes, strict=True)}
    codes = [np.array([zip_code[z] for z in zips]), table.qi[1].codes, table.qi[2].codes]
    names = sorted(place)
    rule = ValidityRule({2: np.array([False, True])}, np.array([d in FEMALE_DISEASES for d in names]))
    sliced = SlicedTable(
        table.qi, [(1, 2), (0,)], codes, np.array([place[d] for d in diseases]), np.repeat([0, 1], 4), 2,
        frozenset({1}),
    )  # fmt: skip
    covers = repair(sliced, ValidityRules((rule,)))
    ages, sexes = sorted({r[0] for r in rows}), ["F", "M"]
    age_sex = [f"({a}, {s})" for a, s in zip(_printed(covers[1], ages), _printed(covers[2], sexes), strict=True)]
    codes_printed = _printed(covers[0], [])
    return [Counter(age_sex[:4]), Counter(codes_printed[:4]), Counter(age_sex[4:]), Counter(codes_printed[4:])]


def test_cells_of_hospital_a_are_those_of_table_6() -> None:
    diseases = ["Ovarian Cancer", "Gastritis", "Flu", "Breast Cancer", "Fever", "Dyspepsia", "Cancer", "Fever"]
    zips = [47905, 47901, 47905, 47901, 47308, 47902, 47308, 47902]
    first, first_zip, second, second_zip = _repaired(HOSPITAL_A, diseases, zips)
    assert first == Counter({"(22, *)": 2, "(33-52, *)": 2})
    assert first_zip == Counter({"47905": 2, "47901": 2})
    assert second == Counter({"(54, M)": 1, "(60, F)": 2, "(64, F)": 1})
    assert second_zip == Counter({"47308": 2, "47902": 2})


def test_cells_of_hospital_b_are_those_of_table_7() -> None:
    diseases = ["Blood Cancer", "Gastritis", "Flu", "Breast Cancer", "Flu", "Fever", "Cancer", "Dyspepsia"]
    zips = [47907, 47905, 47903, 47905, 47308, 47902, 47309, 47902]
    first, first_zip, second, second_zip = _repaired(HOSPITAL_B, diseases, zips)
    assert first == Counter({"(22, *)": 2, "(33-58, *)": 2})
    assert first_zip == Counter({"4790*": 2, "47905": 2})
    assert second == Counter({"(30, M)": 1, "(60, F)": 1, "(65, F)": 2})
    assert second_zip == Counter({"4730*": 2, "47902": 2})


def test_left_over_rows_join_the_combination_that_costs_least() -> None:
    ages = attribute("age", [20, 20, 50, 50, 58])
    rows = CellRows([ages], [ages.codes], [np.ones(5, dtype=bool)], np.zeros(5, dtype=np.int64))
    assert parts_of_cells(rows, 2).tolist() == [EXACT, EXACT, 0, 0, 0]


def test_a_cell_smaller_than_k_becomes_one_part() -> None:
    ages = attribute("age", [20, 50, 20, 50])
    rows = CellRows([ages], [ages.codes], [np.ones(4, dtype=bool)], np.array([0, 0, 1, 1]))
    assert parts_of_cells(rows, 3).tolist() == [0, 0, 1, 1]


def test_the_cheaper_attribute_of_a_rule_is_generalized() -> None:
    age, sex = attribute("age", [20, 21, 90, 91, 92]), attribute("sex", ["F", "M", "F", "M", "X"])
    bucket = np.array([0, 0, 1, 1, 2])
    rule = ValidityRule(
        {0: np.array([True, False, True, True, True]), 1: np.array([True, False, False])}, np.array([True])
    )
    nothing = np.zeros(5, dtype=np.int32)
    sliced = SlicedTable([age, sex], [(0,), (1,)], [age.codes, sex.codes], nothing, bucket, 1)
    covers = repair(sliced, ValidityRules((rule,)))
    assert covers[0].generalized.tolist() == [True, True, False, False, False]  # one year is cheap
    assert covers[1].generalized.tolist() == [False, False, True, True, False]  # ages: only the whole range


def test_a_rule_that_nothing_can_satisfy_is_an_error() -> None:
    sex = attribute("sex", ["F", "M"])
    sliced = SlicedTable([sex], [(0,)], [sex.codes], np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.int64), 2)
    with pytest.raises(ParameterError, match="forbidden by rules := with every value of sex"):
        repair(sliced, ValidityRules((ValidityRule({0: np.array([True, True])}, np.array([True])),)))


def test_unseen_pairs_are_absent_though_expected() -> None:
    sex = attribute("sex", ["F"] * 50 + ["M"] * 50)
    disease = attribute("d", ["flu", "ovary"] * 25 + ["flu"] * 49 + ["rare"])
    (pairs,) = unseen_pairs([sex], disease)
    assert isinstance(pairs, PairRule)
    forbidden = pairs.forbidden[pairs.row_of_code][:, pairs.column_of_code]
    # columns flu, ovary, rare; a rare value is not expected often enough to be missed among women
    assert forbidden.tolist() == [[False, False, False], [False, True, False]]
    slots, _ = ValidityRules((), (pairs,)).violated(
        [np.array([0, 1, 1], dtype=np.int32)], np.array([1, 1, 2], dtype=np.int32)
    )
    assert slots.tolist() == [1]


def test_random_tables_are_repaired_wherever_a_repair_exists() -> None:
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(60):
        n, k = 60, int(rng.integers(1, 4))
        age = attribute("age", [None if v == 9 else int(v) for v in rng.integers(0, 10, n)])
        sex = attribute("sex", rng.choice(["F", "M"], n).tolist())
        tree = [(str(z), "low" if z < 47303 else "high", "*") for z in range(47300, 47306)]
        zips = attribute("zip", [str(z) for z in rng.integers(47300, 47305, n).tolist()], "hierarchy", tree)
        sensitive = rng.integers(0, 4, n).astype(np.int32)
        bucket = compact(np.sort(rng.integers(0, 8, n)))
        qi = [age, sex, zips]
        written = [
            ValidityRule({0: rng.random(age.domain) < 0.5, 1: np.array([True, False])}, rng.random(4) < 0.5),
            *(ValidityRule({2: rng.random(zips.domain) < 0.3}, rng.random(4) < 0.5) for _ in range(3)),
        ]
        rules = ValidityRules.of(written, ())
        sliced = SlicedTable(qi, [(0, 1), (2,)], [a.codes for a in qi], sensitive, bucket, k)
        groups = together([(_places(rule.qi), set(np.flatnonzero(rule.sensitive).tolist())) for rule in written])
        whole = [set(range(a.domain)) for a in qi]
        exists = all(possible(whole, s, group) for s in set(sensitive.tolist()) for group in groups)
        if not exists:
            refused += 1
            with pytest.raises(ParameterError, match="forbidden by rules"):
                repair(sliced, rules)
            continue
        covers = repair(sliced, rules)
        check_repaired(sliced, rules, covers)
        assert all(c.contains(a.codes).all() for c, a in zip(covers, qi, strict=True))
        printed = [[c.contains(np.full(n, v)) for v in range(c.attribute.domain)] for c in covers]
        for row, s in enumerate(sensitive.tolist()):
            shown = [{v for v, covered in enumerate(values) if covered[row]} for values in printed]
            assert all(possible(shown, s, group) for group in groups)
        sizes = np.bincount(bucket)
        for column in ((0, 1), (2,)):
            boxed = np.any([covers[q].generalized for q in column], axis=0)
            key = np.stack([covers[q].cells.index for q in column] + [bucket])
            _, group, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
            assert np.all(count[group.ravel()][boxed] >= np.minimum(k, sizes[bucket[boxed]]))
    assert 0 < refused < 60


def _places(predicates: Mapping[int, BoolArray]) -> dict[int, set[int]]:
    """Codes of which the predicate on each quasi-identifier is true."""
    return {q: set(np.flatnonzero(holds).tolist()) for q, holds in predicates.items()}


def test_a_value_that_a_part_had_hidden_is_not_printed_again() -> None:
    # With the job raised, parts by sex hide the ages; once sex is raised too, each age occurs twice and shows again.
    job, sex = attribute("job", ["a", "b", "c", "d"]), attribute("sex", ["F", "M", "F", "M"])
    age = attribute("age", [20, 20, 30, 30])
    secret = np.array([0, 0, 0, 1], dtype=np.int32)
    first, second = np.array([True, False]), np.array([False, True])
    written = [
        ValidityRule({0: np.array([True, False, False, False])}, first),
        ValidityRule({2: first}, first),
        ValidityRule({1: second}, second),
    ]
    rules = ValidityRules.of(written, ())
    codes = [job.codes, sex.codes, age.codes]
    sliced = SlicedTable([job, sex, age], [(0, 1, 2)], codes, secret, np.zeros(4, dtype=np.int64), 2)
    covers = repair(sliced, rules)
    assert len(still_violated(rules, covers, *rules.violated(codes, secret))) == 0
    assert covers[2].generalized.all()


def test_parts_have_k_items_and_stay_inside_their_set() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 2, 3, 5):
        sets = compact(rng.integers(0, 9, 80))
        axes = [rng.integers(0, 6, 80).astype(float), rng.random(80)]
        part = median_parts(sets, axes, [5.0, 1.0], k)
        sizes, whole = np.bincount(part), np.bincount(sets)
        for p in range(len(sizes)):
            owners = np.unique(sets[part == p])
            assert len(owners) == 1
            assert sizes[p] >= min(k, whole[owners[0]])


def test_equal_items_are_never_separated() -> None:
    values = np.array([1.0, 1, 1, 2, 2, 3])
    part = median_parts(np.zeros(6, dtype=np.int64), [values], [2.0], 2)
    assert part[0] == part[1] == part[2]
    assert part[3] == part[4]


def test_the_relatively_widest_attribute_is_cut_first() -> None:
    narrow, wide = np.array([0.0, 1, 0, 1]), np.array([0.0, 0, 9, 9])
    part = median_parts(np.zeros(4, dtype=np.int64), [narrow, wide], [10.0, 10.0], 2)
    assert part.tolist() == [0, 0, 1, 1]


def test_nothing_to_cut_gives_one_part() -> None:
    assert median_parts(np.zeros(4, dtype=np.int64), [np.ones(4)], [0.0], 2).tolist() == [0, 0, 0, 0]
    assert median_parts(np.zeros(0, dtype=np.int64), [np.ones(0)], [0.0], 2).tolist() == []
