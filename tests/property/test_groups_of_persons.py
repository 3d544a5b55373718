"""Groups of whole persons on random tables, every promise counted out by plain loops."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.partition.partition import person_level
from duckdb_anon.kernels.partition.privacy_models import (
    All,
    FrequencyDiversity,
    KAnonymity,
    OfRows,
    PersonShare,
    diverse_persons,
)
from duckdb_anon.methods.partition_params import cut_groups
from duckdb_anon.model.errors import RequirementError
from tests.reference.cover_lp import nominal, ordered


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, ...]:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    many = rng.integers(1, draw(st.sampled_from([2, 4, 9])), draw(st.integers(4, 40)))
    person = rng.permutation(np.repeat(np.arange(len(many)), many)).astype(np.int32)
    rows = len(person)
    born = rng.integers(0, 30, len(many))[person]
    changing = rng.integers(0, 3, rows)
    qi = (ordered(born.tolist()), nominal((changing + person % 3).tolist()))
    secret = rng.integers(0, draw(st.sampled_from([3, 9, 30])), rows).astype(np.int32)
    return qi, secret, person


@given(case=tables(), k=st.integers(1, 6), least=st.sampled_from([1.0, 1.5, 2.0]),
       cut=st.sampled_from(["sse", "loss", "median"]))  # fmt: skip
def test_groups_hold_whole_persons_and_every_share(case, k, least, cut):
    qi, secret, person = case
    asked = All((KAnonymity(k), PersonShare(float(k)), diverse_persons(least)))
    try:
        group = cut_groups("test", qi, secret, asked, {"cut": cut, "width": "range"}, person)
    except RequirementError as error:
        assert "table as one group fails" in str(error)
        group = np.zeros(len(person), dtype=np.int64)
        assert not _kept(group, secret, person, k, least)
        return
    assert _kept(group, secret, person, k, least)
    homes = defaultdict(set)
    for g, p in zip(group.tolist(), person.tolist(), strict=True):
        homes[p].add(g)
    assert all(len(found) == 1 for found in homes.values())


def _kept(group: Any, secret: Any, person: Any, k: int, least: float) -> bool:
    rows = list(zip(group.tolist(), secret.tolist(), person.tolist(), strict=True))
    for g in range(int(group.max()) + 1):
        mine = [(s, p) for other, s, p in rows if other == g]
        persons = {p for _, p in mine}
        having = {s: {p for v, p in mine if v == s} for s, _ in mine}
        if len(persons) < k or max(map(len, having.values())) * least > len(persons) + 1e-9:
            return False
        if max(sum(p == q for _, q in mine) for p in persons) * max(k, least) > len(mine) + 1e-9:
            return False
        if max(sum(s == v for v, _ in mine) for s in having) * least > len(mine) + 1e-9:
            return False
    return True


@given(case=tables())
def test_a_person_has_one_value_one_of_hers(case):
    qi, _, person = case
    for attribute, whole in zip(qi, person_level(qi, person), strict=True):
        for p in set(person.tolist()):
            own = sorted(attribute.codes[person == p].tolist())
            chosen = set(whole.codes[person == p].tolist())
            assert len(chosen) == 1
            if attribute.kind == "ordered":
                assert chosen == {own[(len(own) - 1) // 2]}
            else:
                assert own.count(*chosen) == max(map(own.count, own))


def test_a_person_with_most_of_the_rows_is_refused():
    person = np.array([0] * 9 + [1, 2, 3], dtype=np.int32)
    qi = (ordered(person.tolist()),)
    with pytest.raises(
        RequirementError, match=r"at most 1/3 of a group's rows may belong to one individual; .* 1/1.333 are"
    ):
        cut_groups("test", qi, None, PersonShare(3.0), {"cut": "sse", "width": "range"}, person)
    secret = np.arange(12, dtype=np.int32)
    assert FrequencyDiversity(3).min_size == PersonShare(3).min_size == OfRows(FrequencyDiversity(3)).min_size == 3
    with pytest.raises(RequirementError, match="one individual"):
        cut_groups("test", qi, secret, diverse_persons(2), {"cut": "loss", "width": "range"}, person)
