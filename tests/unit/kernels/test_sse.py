"""Groups by squared error against writing everything out."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.partition import privacy_models as models
from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.model.errors import RequirementError
from tests.reference.cover_lp import nominal, ordered
from tests.reference.sse import best_gain, matrix, squared_error


@st.composite
def tables(draw: st.DrawFn):
    rows = draw(st.integers(4, 24))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    attributes = []
    for name in range(draw(st.integers(1, 3))):
        domain = draw(st.sampled_from([1, 2, 4, 30]))
        values = rng.integers(0, domain, rows)
        attributes.append(nominal(values.tolist(), f"a{name}") if draw(st.booleans()) else ordered(values))
    return attributes, draw(st.integers(1, 4)), rng.integers(0, 3, rows).astype(np.int32)


@given(case=tables(), diverse=st.booleans())
def test_the_first_cut_is_the_best_and_the_last_groups_allow_none(case, diverse):
    attributes, least, secret = case
    limit = len(secret) / np.bincount(secret).max() * 0.9
    model = (
        models.All((models.KAnonymity(least), models.FrequencyDiversity(limit)))
        if diverse
        else models.KAnonymity(least)
    )
    group = partition(attributes, secret, model, cut="sse")
    assert np.bincount(group).min() >= least
    if diverse:
        for g in range(group.max() + 1):
            assert np.bincount(secret[group == g]).max() * limit <= (group == g).sum() + 1e-6
    rows = matrix(features_of(attributes), [a.codes for a in attributes])
    kinds = [a.kind == "nominal" for a in attributes]

    def best(mine: np.ndarray) -> float:
        codes = [a.codes[mine] for a in attributes]
        return best_gain(rows[mine], codes, kinds, least, [(secret[mine].tolist(), limit)] if diverse else [])

    for g in range(group.max() + 1):
        assert best(group == g) == pytest.approx(0, abs=1e-9)
    if group.max() == 1:
        gain = squared_error(rows) - squared_error(rows[group == 0]) - squared_error(rows[group == 1])
        assert gain == pytest.approx(best(np.full(len(group), True)))


def test_equal_rows_are_never_separated():
    rng = np.random.default_rng(1)
    attributes = [ordered(rng.integers(0, 4, 500)), nominal(rng.integers(0, 3, 500).tolist())]
    group = partition(attributes, None, models.KAnonymity(5), cut="sse")
    seen = np.unique(np.stack([a.codes for a in attributes] + [group]), axis=1)
    assert seen.shape[1] == len(np.unique(np.stack([a.codes for a in attributes]), axis=1).T)


def test_samples_choose_cuts_but_never_waive_the_requirement(monkeypatch):
    monkeypatch.setattr(sys.modules["duckdb_anon.kernels.partition.partition"], "SAMPLE", 50)
    rng = np.random.default_rng(2)
    attributes = [ordered(rng.integers(0, 90, 3000)), nominal(rng.integers(0, 9, 3000).tolist())]
    secret = rng.integers(0, 4, 3000).astype(np.int32)
    group = partition(attributes, secret, models.All((models.KAnonymity(7), models.FrequencyDiversity(2.5))), cut="sse")
    assert 150 < group.max() + 1 <= 3000 // 7
    for g in range(group.max() + 1):
        mine = secret[group == g]
        assert len(mine) >= 7 and np.bincount(mine).max() * 2.5 <= len(mine)


ALIKE = np.zeros(4, dtype=np.int64)


def test_a_person_with_several_values_of_a_part_counts_once_in_it():
    secret, person = np.array([0, 1, 2, 0], np.int32), np.array([0, 0, 0, 1], np.int32)
    age, model = ordered(np.arange(4)), models.ConditionalDiversity(2.0, ALIKE)
    with pytest.raises(RequirementError, match="the largest l this table can meet is 1"):
        partition([age], secret, model, person=person, cut="sse")
    assert partition([age], secret, models.OfRows(model), person=person, cut="sse").tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("cut", ["median", "loss", "sse"])
def test_shares_within_a_part_are_of_its_persons(cut):
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(300, dtype=np.int32), 3)
    secret = rng.integers(0, 12, 900).astype(np.int32)
    part_of_code, age = np.arange(12) // 6, ordered(np.repeat(rng.integers(0, 50, 300), 3))
    group = partition([age], secret, models.ConditionalDiversity(1.8, part_of_code), person=person, cut=cut)
    for g in range(group.max() + 1):
        mine = group == g
        for part in range(2):
            of_part = mine & (part_of_code[secret] == part)
            persons = len(set(person[of_part].tolist()))
            for code in set(secret[of_part].tolist()):
                assert len(set(person[of_part & (secret == code)].tolist())) * 1.8 <= persons + 1e-9
    assert group.max() > 5
