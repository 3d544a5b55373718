"""Promises of MuCo's random output tables, on random groups of every kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duckdb_anon.kernels.random_output_tables.output_tables import cover
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import RequirementError
from tests.reference.cover_lp import distances, full_cost, in_tree, merged_cost, nominal, ordered

KINDS = st.sampled_from(["ordered", "real", "nominal", "hierarchy"])
DELTAS = st.sampled_from([1.0, 0.75, 0.5, 0.37, 0.3, 0.2, 1 / 6, 0.1])


@st.composite
def groups(draw: st.DrawFn, delta: float, largest: int = 45) -> tuple[Attribute, np.ndarray]:
    """An attribute with ties and one to four groups that can meet delta."""
    least = int(np.ceil(1 / delta - 1e-9))
    sizes = draw(st.lists(st.integers(least, max(least, largest)), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows, kind = sum(sizes), draw(KINDS)
    if kind == "ordered":
        attribute = ordered(rng.integers(0, draw(st.integers(1, 40)), rows))
    elif kind == "real":
        attribute = ordered(rng.normal(size=rows) * 10.0 ** draw(st.integers(-6, 6)))
    elif kind == "nominal":
        attribute = nominal(rng.integers(0, draw(st.integers(1, 12)), rows))
    else:
        attribute = in_tree(rng.integers(0, 14, rows), [3, 1, 5, 2, 3])
    return attribute, rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


@given(st.data(), DELTAS)
def test_no_table_is_cheaper(data, delta):
    attribute, group = data.draw(groups(delta, 30))
    tables = cover(attribute, group, delta)
    for number in range(tables.classes.groups):
        codes, count = np.unique(attribute.codes[group == number], return_counts=True)
        distance = distances(attribute)[np.ix_(codes, codes)]
        largest = distance.max()
        expected = merged_cost(distance / largest, count, delta) * largest if largest else 0.0
        assert tables.cost[number] == pytest.approx(expected, abs=1e-6 * largest)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=9), DELTAS)
def test_merging_equal_records_and_dropping_empty_columns_lose_nothing(values, delta):
    expected = full_cost(values, delta)
    attribute, group = ordered(values), np.zeros(len(values), dtype=np.int64)
    if len(values) < int(np.ceil(1 / delta - 1e-9)):
        assert expected is None
        with pytest.raises(RequirementError):
            cover(attribute, group, delta)
    else:
        assert cover(attribute, group, delta).cost[0] == pytest.approx(expected, abs=1e-6 * (1 + max(values)))
