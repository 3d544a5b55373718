"""A requirement's rules, checked on one part at a time, say what its array form says of all groups."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.partition import privacy_models as models
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import Checks, CheckSpace, satisfied
from duckdb_anon.kernels.slicing.chance import CommonValue, LinkableValues, Population
from tests.reference import mondrian as slow

VALUES = 7
TREE = [(str(v), "ABC"[v // 3], "*") for v in range(VALUES)]
PLACE = slow.attribute("place", [str(v) for v in range(VALUES)], "hierarchy", TREE)
SHARE = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])
FOLDED = np.arange(VALUES, dtype=np.int32) // 2
LIMITS = st.floats(0.02, 0.9)


def of_persons() -> st.SearchStrategy[models.PrivacyModel]:
    diverse = st.one_of(
        st.builds(models.FrequencyDiversity, st.floats(1, 4)),
        st.builds(models.EntropyDiversity, st.floats(1, 5)),
        st.builds(models.RecursiveDiversity, st.floats(0.3, 4), st.integers(1, 5)),
    )
    flat = st.one_of(
        st.builds(models.PersonShare, st.floats(1, 6)),
        st.builds(models.OfRows, diverse),
        st.builds(models.of_persons_and_rows, diverse, st.floats(1, 4)),
    )
    return st.one_of(flat, st.builds(lambda part: models.OfColumn(part, "folded", FOLDED), flat))


def requirements() -> st.SearchStrategy[models.PrivacyModel]:
    flat_single = st.one_of(
        st.builds(models.KAnonymity, st.integers(1, 9)),
        st.builds(models.DistinctDiversity, st.integers(1, 5)),
        st.builds(models.FrequencyDiversity, st.floats(1, 4)),
        st.builds(models.EntropyDiversity, st.floats(1, 5)),
        st.builds(models.RecursiveDiversity, st.floats(0.3, 4), st.integers(1, 5)),
        st.builds(models.TCloseness, LIMITS, st.sampled_from(["equal", "ordered"])),
    )
    tree = st.builds(lambda t: models.TCloseness(t, "hierarchical", PLACE.hierarchy, PLACE.leaf_of_code), LIMITS)
    other = st.one_of(
        st.builds(lambda least: models.ConditionalDiversity(least, FOLDED.astype(np.int64)), st.floats(1, 3)),
        st.builds(
            lambda rate, alpha: CommonValue(rate, alpha, Population(SHARE)), LIMITS, LIMITS,
        ),
        st.builds(
            lambda d, alpha: LinkableValues(d, alpha, Population(SHARE)), st.integers(1, 4), LIMITS,
        ),
    )  # fmt: skip
    column = st.builds(lambda part: models.OfColumn(part, "folded", FOLDED), flat_single)
    flat = st.one_of(flat_single, tree, other, column)
    return st.one_of(flat, st.builds(lambda parts: models.All(tuple(parts)), st.lists(flat, min_size=2, max_size=3)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, VALUES - 1)), min_size=1, max_size=60), requirements())
def test_rules_agree_with_the_array_form(rows, requirement):
    check(rows, None, requirement)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, VALUES - 1), st.integers(0, 9)), min_size=1, max_size=60),
    st.one_of(requirements(), of_persons()),
)
def test_rules_agree_with_the_array_form_where_persons_have_several_rows(rows, requirement):
    check([row[:2] for row in rows], np.array([row[2] for row in rows], dtype=np.int32), requirement)


def check(rows: list[tuple[int, int]], person: np.ndarray | None, requirement: models.PrivacyModel) -> None:
    rows = [*rows, *((4, v) for v in range(VALUES))]  # every value occurs in the table
    if person is not None:
        person = np.append(person, np.arange(VALUES)).astype(np.int32)
    group = np.unique([g for g, _ in rows], return_inverse=True)[1]
    sensitive = np.array([s for _, s in rows], dtype=np.int32)
    groups = Groups(group, sensitive, person=person)
    expected = requirement.holds(groups)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(groups) + 1))
    rules = Checks.of(requirement.checks(groups.table_counts), sensitive, person)
    tally = CheckSpace.of(rules)
    codes, every = sensitive.astype(np.int64), np.arange(len(order))
    for _ in range(2):  # the working space is left as it was found
        got = [satisfied(rules, tally, codes, every, order, int(a), int(b)) for a, b in pairwise(starts)]
        assert got == expected.tolist()


def test_recursive_diversity_reads_no_further_than_its_counts():
    rules = Checks.of(models.RecursiveDiversity(2, 9).checks(np.array([3, 2])), np.array([0, 1], dtype=np.int32), None)
    codes = np.array([0, 0, 1], dtype=np.int64)
    assert not satisfied(rules, CheckSpace.of(rules), codes, codes, np.arange(3), 0, 3)
