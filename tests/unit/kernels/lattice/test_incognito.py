"""The lattice search against trying everything, and the worked hospital example."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from duckdb_anon.kernels.lattice import (
    Counter,
    Generalizations,
    cheapest,
    failing_rows,
    ladder_of,
    minimal_nodes,
    valid_nodes,
)
from duckdb_anon.kernels.lattice.search import _search
from duckdb_anon.kernels.partition import (
    All,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    Requirement,
)
from duckdb_anon.model.coded_table import Attribute, CodedTable, Combinations
from tests.reference import incognito
from tests.reference.merging import HOSPITAL_A, attribute, hospital


def _ladders(qi: tuple[Attribute, ...]) -> list[Generalizations]:
    return [ladder_of(a, branching=2) for a in qi]


def _counter(table: CodedTable) -> Counter:
    """Count by hand what DuckDB would: a row of each combination, and how many rows have it."""
    rows = _rows(table)
    first = {row: i for i, row in reversed(list(enumerate(rows)))}
    counts = [sum(row == other for other in rows) for row in first]
    counted = Combinations(np.array(list(first.values())), np.array(counts))
    return Counter(_ladders(table.qi), table.sensitive[0].codes, counted)


def _maps(ladders: list[Generalizations]) -> list[list[dict[Hashable, Hashable]]]:
    return [[dict(enumerate(place.tolist())) for place in ladder.place_of_code] for ladder in ladders]


def _rows(table: CodedTable) -> list[tuple[int, ...]]:
    columns = [a.codes.tolist() for a in (*table.qi, *table.sensitive)]
    return list(zip(*columns, strict=True))


def _random_table(seed: int) -> CodedTable:
    pick = random.Random(seed)
    # leaves in another order than their labels
    tree = [("b2", "p", "*"), ("a1", "p", "*"), ("b1", "q", "*"), ("a2", "q", "*")]
    n = pick.randrange(6, 40)

    def some(values: list[Any]) -> list[Any]:
        return [pick.choice(values) for _ in range(n)]

    qi = (
        attribute("age", some([20, 30, 35, 50, 70, None])),
        attribute("sex", some(["f", "m", None])),
        attribute("zip", some([path[0] for path in tree]), "hierarchy", tree),
    )
    return CodedTable(n, qi, (attribute("disease", some(["x", "y", "z", "w"])),))


def _valid(table: CodedTable, requirement: Requirement, allowed: int = 0, monotone: bool = True) -> set[Any]:
    counter = _counter(table)
    return valid_nodes(
        counter,
        lambda found: int(failing_rows(found, counter.table_counts, requirement).sum()) <= allowed,
        monotone=monotone,
    )


def _hospital() -> tuple[CodedTable, list[Generalizations]]:
    table = hospital(HOSPITAL_A, zip_as_tree=True)
    named = {a.name: a for a in table.qi}
    table = CodedTable(table.rows, (named["sex"], named["zip"]), table.sensitive)
    return table, _ladders(table.qi)


def test_hospital_lattice_has_the_worked_entropy_levels() -> None:
    table, ladders = _hospital()
    maps, rows = _maps(ladders), _rows(table)
    found = [[round(incognito.smallest_entropy_l(rows, maps, (s, z)), 3) for z in range(4)] for s in range(2)]
    assert found == [[1.0, 2.0, 2.0, 3.0], [2.0, 2.0, 2.0, 6.727]]


@pytest.mark.parametrize(("least", "minimal"), [(2.0, [(0, 1), (1, 0)]), (2.5, [(0, 3)])])
def test_hospital_minimal_nodes_are_the_worked_ones(least: float, minimal: list[tuple[int, ...]]) -> None:
    table, _ = _hospital()
    assert minimal_nodes(_valid(table, EntropyDiversity(least))) == minimal


def test_nodes_that_fail_for_fewer_attributes_are_never_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = _counter(_hospital()[0])
    counted: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def noted(subset: Any, nodes: Any) -> list[Any]:
        nodes = list(nodes)
        counted.extend((subset, node) for node in nodes)
        return nodes

    real = _search
    monkeypatch.setattr(
        "duckdb_anon.kernels.lattice.search._search",
        lambda counter, subset, nodes, *rest: real(counter, subset, noted(subset, nodes), *rest),
    )
    requirement = EntropyDiversity(2.5)
    valid_nodes(counter, lambda found: not failing_rows(found, counter.table_counts, requirement).any())
    assert [node for subset, node in counted if len(subset) == 2] == [(0, 3), (1, 3)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (KAnonymity(3), lambda values: len(values) >= 3),
        (EntropyDiversity(2.0), incognito.entropy_l(2.0)),
        (FrequencyDiversity(2), incognito.frequency_l(2)),
        (DistinctDiversity(2), lambda values: len(set(values)) >= 2),
        (All((KAnonymity(4), DistinctDiversity(2))), lambda values: len(values) >= 4 and len(set(values)) >= 2),
    ],
)
def test_valid_nodes_are_those_found_by_trying_everything(seed: int, requirement: Requirement, holds: Any) -> None:
    table = _random_table(seed)
    maps, rows = _maps(_ladders(table.qi)), _rows(table)
    assert _valid(table, requirement) == incognito.valid(rows, maps, holds)
    allowed = table.rows // 5
    monotone = isinstance(requirement, (KAnonymity, DistinctDiversity))
    assert _valid(table, requirement, allowed, monotone) == incognito.valid(rows, maps, holds, allowed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("allowed", [0, 6])
def test_the_chosen_node_has_the_least_loss_of_all(seed: int, allowed: int) -> None:
    table = _random_table(seed)
    ladders = _ladders(table.qi)
    counter = _counter(table)
    requirement = KAnonymity(4)
    nodes = _valid(table, requirement, allowed)
    rows, maps = _rows(table), _maps(ladders)

    def loss(node: tuple[int, ...]) -> float:
        total = 0.0
        small = {
            key
            for key in {tuple(m[level][v] for m, level, v in zip(maps, node, r, strict=False)) for r in rows}
            if sum(tuple(m[lv][v] for m, lv, v in zip(maps, node, r, strict=False)) == key for r in rows) < 4
        }
        for r in rows:
            key = tuple(m[level][v] for m, level, v in zip(maps, node, r, strict=False))
            ncp = [ladder.ncp(level)[place] for ladder, level, place in zip(ladders, node, key, strict=True)]
            total += 1.0 if key in small else float(np.mean(ncp))
        return round(total / len(rows), 12)

    expected = min((loss(node), sum(node), node) for node in nodes)[2]
    assert cheapest(counter, nodes, requirement, allowed > 0) == expected


def test_levels_of_ordered_values_nest_and_keep_null_apart_until_the_last() -> None:
    column = attribute("age", [None, *range(21)])
    ladder = ladder_of(column, branching=2)
    assert [ladder.places(level) for level in range(ladder.height + 1)] == [22, 17, 9, 5, 3, 1]
    for level in range(1, ladder.height + 1):
        ladder.up(level - 1, level)  # raises where a place would be split
        pairs = set(zip(ladder.place_of_code[level - 1], ladder.place_of_code[level], strict=True))
        assert len(pairs) == ladder.places(level - 1)
    assert ladder.ncp(0).max() == 0
    assert ladder.ncp(ladder.height).tolist() == [1.0]
    assert (ladder.place_of_code[-2][:-1] != ladder.place_of_code[-2][-1]).all()


def test_constant_columns_have_one_level() -> None:
    assert ladder_of(attribute("age", [5, 5])).height == 0
    assert ladder_of(attribute("sex", ["f", "f"])).height == 0
