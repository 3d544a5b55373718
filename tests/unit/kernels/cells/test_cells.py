"""Cells of every kind against loops over the values that each may stand for, and over all completions of small tables."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from duckdb_anon.kernels.cells.cells import Lists, Noisy, Ranges
from duckdb_anon.kernels.cells.learn import learn_shares
from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.kernels.plausible import Drawing, LinkedRelease, read_release
from duckdb_anon.measures.utility.distributions import joint_shares
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.function_specs import ColumnInfo, Report, Roles
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.number_scale import Scale
from duckdb_anon.model.release_formats import read
from duckdb_anon.registry import ENTRIES

NONE = np.zeros(0, dtype=np.int32)
AGES = Attribute(
    "x", "ordered", NONE, np.array([20.0, 30, 35, 50, 90]), 5, -1, NONE, scale=Scale("integer", np.array([20, 30, 35, 50, 90])),
)  # fmt: skip
NAMES = Attribute("x", "nominal", NONE, np.arange(5.0), 5, -1, NONE)


def towns() -> Attribute:
    """Codes a to e under the leaves b, e, a, c, d: (b e) (a c) d."""
    tree = Hierarchy.of_paths(
        tuple(("*", *path) for path in (("1", "b"), ("1", "e"), ("2", "a"), ("2", "c"), ("3", "d"))), "t"
    )
    leaf = {label: k for k, label in enumerate(["b", "e", "a", "c", "d"])}
    return replace(NAMES, kind="hierarchy", hierarchy=tree, leaf_of_code=np.array([leaf[c] for c in "abcde"], np.int32))


Told = list[dict[int, Fraction]]
"""For each row the values that it may have, by code, with the share of each."""


def even(codes: list[int]) -> dict[int, Fraction]:
    return {code: Fraction(1, len(codes)) for code in codes}


def below(tree: Attribute, node: int) -> list[int]:
    """Codes of the leaves below a node."""
    found = tree.tree()[0]
    leaves = range(found.first_leaf[node], found.first_leaf[node] + found.leaf_count[node])
    return [int(tree.code_of_leaf[leaf]) for leaf in leaves]


def examples(rng: np.random.Generator) -> Iterator[tuple[str, Ranges, Told]]:
    """A column of each kind at random, and what its cells tell."""
    for domain in (AGES, NAMES, towns()):
        codes = rng.integers(0, 5, 6)
        yield f"values {domain.kind}", Ranges.of_codes(domain, codes.astype(np.int32)), [even([int(c)]) for c in codes]
        counts, size = rng.integers(1, 4, 9), np.array([2, 4, 3])
        members = np.concatenate([rng.permutation(5)[:k] for k in size]).astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(size)])
        parts = [
            list(zip(members[a:b].tolist(), counts[a:b].tolist(), strict=True)) for a, b in itertools.pairwise(ends)
        ]
        lists = Ranges.of_codes(domain, members)
        yield f"sets {domain.kind}", Lists.of_members(lists, ends), [even([c for c, _ in part]) for part in parts]
        shares = [{c: Fraction(n, sum(m for _, m in part)) for c, n in part} for part in parts]
        yield f"counts {domain.kind}", Lists.of_members(lists, ends, counts), shares
    low = rng.integers(0, 5, 6)
    high = np.minimum(low + rng.integers(0, 4, 6), 4)
    low[0] = high[0] = -1
    told = [
        even(list(range(5) if a < 0 else range(a, b + 1))) for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    yield "intervals", Ranges.of_ends(AGES, low, high), told
    tree = towns()
    nodes = rng.integers(0, len(tree.tree()[0].level), 6).astype(np.int32)
    yield "nodes", Ranges.of_nodes(tree, nodes), [even(below(tree, int(node))) for node in nodes]


CASES = [
    pytest.param(*case, id=f"{case[0]} {seed}") for seed in range(3) for case in examples(np.random.default_rng(seed))
]


def dense(told: Told) -> np.ndarray:
    """Share of each value in each row."""
    return np.array([[float(row.get(code, 0)) for code in range(5)] for row in told])


@pytest.mark.parametrize(("name", "column", "told"), CASES)
def test_cells_cover_and_share_what_a_loop_over_their_values_says(name, column, told):
    every, shares = np.arange(5), dense(told)
    for cells in (column, column.different, column.of_rows(np.arange(len(told)))):
        found = cells.shares.toarray()[cells.of_row]
        assert np.allclose(found, shares)
        assert (cells.covers(every).T[cells.of_row] == (shares > 0)).all()
        assert (cells.sizes[cells.of_row] == (shares > 0).sum(axis=1)).all()
        bins = np.array([0, 0, 1, 1, 2])
        flat = (shares > 0) / (shares > 0).sum(axis=1, keepdims=True)
        assert np.allclose(cells.in_bins(bins).toarray()[cells.of_row], flat @ (bins[:, None] == np.arange(3)))
    alike = [[a == b for b in told] for a in told]
    if (
        "nodes" not in name and "counts" not in name
    ):  # two nodes may cover the same, counts have the same shares doubled
        assert (column.different.of_row[:, None] == column.different.of_row).tolist() == alike


def apart(domain: Attribute, a: int, b: int) -> float:
    """Distance of two values."""
    if domain.kind == "ordered":
        return abs(float(domain.positions[a] - domain.positions[b])) / 70
    if domain.kind == "nominal":
        return float(a != b)
    paths = [
        dict.fromkeys(node for node in range(len(domain.tree()[0].level)) if code in below(domain, node))
        for code in (a, b)
    ]
    return min(int(domain.tree()[0].level[node]) for node in paths[0] if node in paths[1]) / 2


@pytest.mark.parametrize(("name", "column", "told"), CASES)
def test_a_value_is_as_far_from_a_cell_as_from_the_nearest_value_it_covers(name, column, told):
    found = column.distance(np.arange(5))
    for row, values in enumerate(told):
        for code in range(5):
            nearest = min(apart(column.domain, code, value) for value in values)
            if column.several:
                nearest = float(code not in values)
            elif "nodes" in name and nearest:  # a node is as far as the lowest node above both
                nearest = max(apart(column.domain, code, value) for value in values)
            assert found[code, row] == pytest.approx(nearest), (code, values)


@pytest.mark.parametrize(("name", "column", "told"), CASES)
def test_draws_come_from_cells_by_their_shares(name, column, told):
    rows = np.repeat(np.arange(len(told)), 4000)
    drawn = column.of_rows(rows).draw(np.random.default_rng(5)).reshape(len(told), -1)
    for row, shares in zip(drawn, dense(told), strict=True):
        seen = np.bincount(row, minlength=5) / len(row)
        assert (seen[shares == 0] == 0).all() and np.abs(seen - shares).max() < 0.04


LEARNT = [case for case in CASES if "counts" not in str(case.id)]
"""Counts are dealt to the rows of their bucket."""


@pytest.mark.parametrize(("name", "column", "told"), LEARNT)
def test_a_round_of_learning_counts_all_completions(name, column, told):
    cells = column.different
    rows = np.bincount(cells.of_row).astype(np.float64)
    shares = learn_shares(cells, rows, np.ones(5), rounds=1)
    completions = list(itertools.product(*told))
    counted = sum(np.bincount(completion, minlength=5) for completion in completions) / len(completions) / len(told)
    weighted = dense(told).mean(axis=0)
    assert np.allclose(shares[column.line.atom_of_code], weighted)
    if all(len(set(row.values())) == 1 for row in told) and len({len(row) for row in told}) == 1:
        assert np.allclose(counted, weighted)


@pytest.mark.parametrize(("name", "column", "told"), LEARNT)
def test_odds_are_the_share_of_a_bin_that_a_cell_covers_and_atoms_are_drawn_by_shares(name, column, told):
    cells = column.different
    shares, bins = np.array([0.1, 0.3, 0.2, 0.25, 0.15]), np.array([0, 0, 1, 2, 2])
    offsets, found, odds = cells.odds(shares, bins)
    atom, rng = column.line.atom_of_code, np.random.default_rng(2)
    for row, values in enumerate(told):
        cell = cells.of_row[row]
        covered = np.zeros(5)
        covered[[atom[value] for value in values]] = 1
        mass = {b: float((shares * covered)[bins == b].sum() / shares[bins == b].sum()) for b in range(3)}
        here = dict(
            zip(found[offsets[cell] : offsets[cell + 1]].tolist(), odds[offsets[cell] : offsets[cell + 1]], strict=True)
        )
        assert {b: m for b, m in mass.items() if m} == pytest.approx(here)
        for b in here:
            many = np.full(4000, b, dtype=np.int32)
            drawn = cells.inside(np.full(4000, cell, dtype=np.int32), many, rng.random(4000), shares, bins)
            expected = shares * covered * (bins == b)
            assert np.abs(np.bincount(drawn, minlength=5) / 4000 - expected / expected.sum()).max() < 0.04


def test_noisy_cells_have_the_odds_of_their_channel():
    values = Ranges.of_codes(NAMES, np.arange(5, dtype=np.int32))
    noisy = Noisy(values.line, values.first, values.last, extra=np.full(5, 0.5), base=np.full(5, 0.1))
    shares, bins = np.array([0.1, 0.3, 0.2, 0.25, 0.15]), np.array([0, 0, 1, 2, 2])
    odds = noisy.odds(shares, bins)[2].reshape(5, 3)
    for cell in range(5):
        for b in range(3):
            inside = shares[bins == b] * np.where(np.flatnonzero(bins == b) == cell, 0.6, 0.1)
            assert odds[cell, b] == pytest.approx(inside.sum() / shares[bins == b].sum())


def test_shares_behind_a_channel_are_the_likeliest():
    # d = 5 values, kept with probability .5 or replaced by one of the other four; the last one is never the true one
    every, rows = np.arange(5, dtype=np.int32), np.array([400.0, 250.0, 150.0, 120.0, 80.0])
    values = Ranges.of_codes(NAMES, every)
    noisy = Noisy(values.line, values.first, values.last, extra=np.full(5, 0.375), base=np.full(5, 0.125))
    shares = learn_shares(noisy, rows, np.ones(5), 200)

    def likelihood(x):
        return (rows * np.log(0.125 + 0.375 * x)).sum()

    assert noisy.mass(shares) == pytest.approx(0.125 + 0.375 * shares)
    assert shares.sum() == pytest.approx(1) and shares.min() >= 0
    rng = np.random.default_rng(3)
    for other in rng.dirichlet(np.ones(5), 2000):
        assert likelihood(0.98 * shares + 0.02 * other) <= likelihood(shares) + 1e-9
    # where no inverted count is below 0 they are the inverted counts
    inside = np.array([300.0, 250.0, 180.0, 140.0, 130.0])
    found = learn_shares(noisy, inside, np.ones(5), 200)
    assert found == pytest.approx((inside / 1000 - 0.125) / 0.375, abs=1e-3)


def test_joint_shares_are_those_of_all_completions():
    rng = np.random.default_rng(4)
    columns = {name: (column, told) for name, column, told in examples(rng) if len(told) == 6}
    for one, other in itertools.permutations(columns, 2):
        (a, told_a), (b, told_b) = columns[one], columns[other]
        found = joint_shares(ReadTable(6, {"a": a, "b": b}), ["a", "b"])
        expected = sum(np.outer(x, y) for x, y in zip(dense(told_a), dense(told_b), strict=True)) / 6
        assert np.allclose(found, expected), (one, other)


@dataclass(frozen=True, eq=False)
class Coded(Ranges):
    """A format of its own: numbers, of which the small and the large ones are coded '<= n' and '>= n'."""

    @classmethod
    def of_texts(cls, domain: Attribute, texts: list[str]) -> "Coded":
        """Read texts such as '35', '<= 30' and '>= 50'."""
        number = {float(place): code for code, place in enumerate(domain.positions)}
        ends = []
        for text in texts:
            code = number[float(text.split()[-1])]
            ends.append((0 if "<=" in text else code, domain.size - 1 if ">=" in text else code))
        lower, upper = (np.array(each) for each in zip(*ends, strict=True))
        return cls.of_ends(domain, lower, upper)


TRUE = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
TEXTS = ["<= 30"] * 4 + ["35"] * 2 + [">= 50"] * 4
OTHER = ["20", "20", "30", "30", "35", "35", "50", "50", "90", "90"]


def call_of(entry: Report, texts: list[str]) -> MeasureCall:
    """A call of a measure on a table of ages and names, and on its release with coded ages."""
    names = Ranges.of_codes(NAMES, np.arange(10, dtype=np.int32) % 3)
    original = ReadTable(10, {"x": Ranges.of_codes(AGES, np.array(TRUE, np.int32)), "s": names})
    kinds = {"x": "STRUCT(lower INTEGER, upper INTEGER)", "s": "INTEGER", "row_id": "BIGINT"}
    contents = read(kinds, {"x": "INTEGER", "s": "INTEGER"}, labelled=("x", "s"), sensitive=("s",))
    released = {"x": Coded.of_texts(AGES, texts), "s": names}
    release = ReadTable(10, released, contents, {contents.source: np.arange(10.0)})
    roles = Roles(qi=(ColumnInfo("x", kind="ordered"),), sensitive=(ColumnInfo("s", kind="nominal"),))
    params = {parameter.name: parameter.default for parameter in entry.parameters}
    params |= {"tables": {}, "read": list(entry.tables), "targets": None, "known": None, "call": None}
    read_tables = {"original": original, "release": release, "population": original}
    return MeasureCall({name: read_tables[name] for name in entry.tables}, roles, params, np.random.default_rng(1))


MEASURES = ("information_loss", "distortion_ratio", "disclosure", "k_map", "k_marginal", "inference", "linkage_risk",
            "attribute_risk", "distribution_distance", "singling_out", "linkability", "propensity",
            "unique_exact_matches", "delta_presence")  # fmt: skip


@pytest.mark.parametrize("name", MEASURES)
def test_a_new_format_is_one_class_that_measures_read(name):
    entry = next(entry for entry in ENTRIES if entry.name == name)
    assert isinstance(entry, Report)
    coded, plain = (entry.columns(entry.compute(call_of(entry, texts))) for texts in (TEXTS, OTHER))
    assert len(coded[next(iter(coded))]) == len(plain[next(iter(plain))]) > 0
    assert name in ("distribution_distance", "delta_presence", "linkability", "k_marginal") or coded != plain
    if name == "information_loss":  # <= 30 spans 10 of 70, >= 50 spans 40
        assert coded["ncp"][0] == pytest.approx((4 * 10 + 4 * 40) / 10 / 70)
    if name == "k_map":
        assert coded["k"] == [2]
        assert coded["highest"] == [0.5] and coded["unmatched"] == [0]
    if name == "disclosure":
        assert coded["identity"][0] == pytest.approx((4 / 4 + 2 / 2 + 4 / 4) / 10)


def test_an_interval_from_minus_infinity_covers_all_numbers_up_to_its_end():
    ages = replace(AGES, special_from=4, minus_infinity=4)
    cells = Ranges.of_ends(ages, np.array([4, 4, 1]), np.array([2, 4, 3]))
    assert cells.covers(np.arange(5)).T.tolist() == [[1, 1, 1, 0, 0], [0, 0, 0, 0, 1], [0, 1, 1, 1, 0]]


@pytest.mark.parametrize("line", ["integer", "real"])
def test_draws_have_both_ends_of_the_classes_whose_boxes_are_tight(line):
    numbers = np.array([0, 3, 4, 5, 8, 9], dtype=np.int64 if line == "integer" else np.float64)
    places = numbers.astype(np.float64)
    domain = Attribute("x", "ordered", NONE, places, 6, -1, NONE, scale=Scale(line, numbers))
    lower, upper = np.repeat([0, 1, 2], 5), np.repeat([2, 4, 5], 5)
    names = Ranges.of_codes(NAMES, np.arange(15, dtype=np.int32) % 3)
    contents = read({"x": "STRUCT(lower DOUBLE, upper DOUBLE)", "s": "INTEGER"}, {"x": "DOUBLE", "s": "INTEGER"})
    table = ReadTable(15, {"x": Ranges.of_ends(domain, lower, upper), "s": names}, contents)
    release = read_release("impute", table, ["s"], np.random.default_rng(1))
    codes, drawn = Drawing([LinkedRelease(release)], np.random.default_rng(2)).draws(1)[0][0]["x"]
    assert (codes == -1).all()
    for low, high, found in zip(numbers[lower[::5]], numbers[upper[::5]], drawn.reshape(3, 5), strict=True):
        assert (found.min(), found.max()) == (low, high)


def test_a_new_format_is_drawn_from():
    entry = next(entry for entry in ENTRIES if entry.name == "k_map")
    release = call_of(entry, TEXTS).release
    read_back = read_release("impute", release, ["s"], np.random.default_rng(1))
    codes, numbers = Drawing([LinkedRelease(read_back)], np.random.default_rng(2)).draws(1)[0][0]["x"]
    found = np.where(codes < 0, numbers, 0)
    assert (found[:4] <= 30).all() and (found[:4] >= 20).all() and (found[6:] >= 50).all() and (found[6:] <= 90).all()
