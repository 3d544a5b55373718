"""Random tables with NULLs, ties and hierarchies: partitions keep their promises and match slow versions."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.partition import privacy_models as models
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.methods.rmr import BoxSpace
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import RequirementError
from tests.reference import mondrian as slow

TREE = [
    ("a1", "A", "top"), ("a2", "A", "top"), ("a3", "A", "top"), ("b1", "B", "top"), ("b2", "B", "top"),
    ("c", "c", "top"),
]  # fmt: skip
COLUMNS = {
    "number": st.one_of(st.none(), st.sampled_from([0.0, 1.0, 1.5, 4.0, 9.0])),
    "score": st.one_of(st.sampled_from([float("nan"), float("inf")]), st.integers(-3, 3).map(float)),
    "word": st.one_of(st.none(), st.sampled_from("pqrstu")),
    "place": st.one_of(st.none(), st.sampled_from([path[0] for path in TREE])),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Attribute, ...], np.ndarray]:
    """Two to four attributes of mixed kinds and a sensitive column, 1 to 40 rows."""
    rows = draw(st.integers(1, 40))
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=2, max_size=4, unique=True))
    qi = []
    for name in names:
        values = draw(st.lists(COLUMNS[name], min_size=rows, max_size=rows))
        if name == "place" and any(v is not None for v in values):
            qi.append(slow.attribute(name, values, "hierarchy", TREE))
        else:
            qi.append(slow.attribute(name, values, "nominal" if name in ("word", "place") else "ordered"))
    sensitive = draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows))
    return tuple(qi), slow.attribute("sensitive", sensitive).codes


REQUIREMENTS = st.sampled_from(
    [
        models.KAnonymity(1), models.KAnonymity(2), models.KAnonymity(5), models.DistinctDiversity(2), models.DistinctDiversity(3),
        models.FrequencyDiversity(1.5), models.FrequencyDiversity(2), models.EntropyDiversity(1.8), models.RecursiveDiversity(1.5, 2),
        models.TCloseness(0.4, "equal"), models.TCloseness(0.2, "ordered"),
        models.All((models.KAnonymity(3), models.DistinctDiversity(2), models.TCloseness(0.5, "ordered"))),
    ]
)  # fmt: skip


def predicate(requirement: object, sensitive: np.ndarray) -> slow.Predicate:
    """The requirement as a slow function of a group."""
    table = sensitive.tolist()

    def holds(group: slow.Group) -> bool:
        values = [table[row] for row in group]
        match requirement:
            case models.KAnonymity(k):
                return len(group) >= k
            case models.DistinctDiversity(least):
                return len(set(values)) >= least
            case models.FrequencyDiversity(least):
                return max(Counter(values).values()) * least <= len(values)
            case models.EntropyDiversity(least):
                return slow.effective_entropy(values) >= least - 1e-9
            case models.RecursiveDiversity(c, least):
                return slow.recursive(values, c, least)
            case models.TCloseness(t, "equal"):
                return slow.equal_emd(values, table) <= t + 1e-9
            case models.TCloseness(t, "ordered"):
                return slow.ordered_emd(values, table) <= t + 1e-9
            case models.All(parts):
                return all(predicate(part, sensitive)(group) for part in parts)
        raise AssertionError(requirement)

    return holds


def as_sets(group_of_row: np.ndarray) -> set[slow.Group]:
    return {tuple(np.flatnonzero(group_of_row == g).tolist()) for g in range(int(group_of_row.max()) + 1)}


@given(tables(), REQUIREMENTS, st.sampled_from(["range", "distinct", "spread"]), st.sampled_from(["strict", "relaxed"]))
def test_median_cuts_equal_the_group_by_group_algorithm(table, requirement, width, mode):
    qi, sensitive = table
    holds = predicate(requirement, sensitive)
    if not holds(tuple(range(len(sensitive)))):
        with pytest.raises(RequirementError):
            partition(qi, sensitive, requirement, width=width, mode=mode)
        return
    got = partition(qi, sensitive, requirement, width=width, mode=mode)
    assert as_sets(got) == slow.mondrian(qi, holds, width, mode)


@given(tables(), REQUIREMENTS)
def test_loss_cuts_satisfy_the_requirement_and_leave_no_gainful_cut(table, requirement):
    qi, sensitive = table
    holds = predicate(requirement, sensitive)
    if not holds(tuple(range(len(sensitive)))):
        with pytest.raises(RequirementError):
            partition(qi, sensitive, requirement, cut="loss")
        return
    groups = as_sets(partition(qi, sensitive, requirement, cut="loss"))
    assert sorted(row for group in groups for row in group) == list(range(len(sensitive)))
    for group in groups:
        assert holds(group)
        for attribute in qi:
            for parts in slow.loss_cuts(attribute, group):
                if slow.gain(attribute, group, parts) > 1e-9:
                    assert not all(holds(part) for part in parts)


@given(tables(), REQUIREMENTS, st.sampled_from(["median", "loss"]), st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_of_the_rows(table, requirement, cut, random):
    qi, sensitive = table
    order = list(range(len(sensitive)))
    random.shuffle(order)
    moved = tuple(dataclasses.replace(attribute, codes=attribute.codes[order]) for attribute in qi)
    try:
        first = partition(qi, sensitive, requirement, cut=cut)
    except RequirementError:
        return
    again = partition(moved, sensitive[order], requirement, cut=cut)
    assert np.array_equal(again, first[order])


@given(tables())
def test_width_of_a_box_is_the_penalty_of_the_tight_box(table):
    qi, _ = table
    space = BoxSpace(qi)
    for group in as_sets(partition(qi, None, models.KAnonymity(1)) // 2):
        rows = np.array(group)
        space.gather(group[0], rows)
        penalties = [slow.ncp(attribute, group, as_set=True) for attribute in qi]
        assert space.widths(rows[:1])[0] == pytest.approx(np.mean(penalties))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=80), st.integers(1, 4))
def test_assign_deals_different_values_wherever_shares_allow(rows, least):
    group_of_row = np.array([group for group, _ in rows])
    group_of_row = np.unique(group_of_row, return_inverse=True)[1]
    sensitive = np.array([value for _, value in rows], dtype=np.int32)
    eligible = all(
        slow.effective_frequency(sensitive[list(group)].tolist()) >= least for group in as_sets(group_of_row)
    )
    if not eligible:
        with pytest.raises(RequirementError):
            assign(group_of_row, sensitive, least)
        return
    new = assign(group_of_row, sensitive, least)
    for group in as_sets(new):
        values = sensitive[list(group)]
        assert len(group) >= least
        assert len(set(values.tolist())) == len(group)
        assert len(set(group_of_row[list(group)].tolist())) == 1


@given(st.lists(st.sampled_from([path[0] for path in TREE]), min_size=2, max_size=30), st.data())
def test_hierarchical_distance_equals_moving_mass_up_the_tree(values, data):
    tree = [("x" + path[0] if path[0] == path[1] else path[0], path[1], path[2]) for path in TREE]
    values = ["xc" if value == "c" else value for value in values]
    attribute = slow.attribute("place", values, "hierarchy", tree)
    groups = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    groups = np.unique(groups, return_inverse=True)[1]
    requirement = models.TCloseness(0.1, "hierarchical", attribute.hierarchy, attribute.leaf_of_code)
    got = requirement.distance(Groups(groups, attribute.codes, np.bincount(attribute.codes)))
    for number in range(int(groups.max()) + 1):
        inside = [values[row] for row in np.flatnonzero(groups == number)]
        assert got[number] == pytest.approx(slow.tree_emd(inside, values, tree), abs=1e-12)
