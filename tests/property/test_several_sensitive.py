"""Requirements on several sensitive columns ask the same of each as if it were the only one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.guarantees.privacy_spec import all_of, every_column
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_models import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    PrivacyModel,
    RecursiveDiversity,
    TCloseness,
)
from tests.reference import mondrian as slow

REQUIREMENTS: list[PrivacyModel] = [
    DistinctDiversity(2),
    EntropyDiversity(1.7),
    FrequencyDiversity(1.6),
    RecursiveDiversity(2.0, 2),
    TCloseness(0.3, "ordered"),
    TCloseness(0.3, "equal"),
]


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from("xyz"), st.integers(0, 1)),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(REQUIREMENTS),
    st.integers(1, 3),
)
def test_a_group_holds_where_each_column_alone_holds(rows, requirement, columns):
    group = np.unique([row[0] for row in rows], return_inverse=True)[1]
    kinds = ("ordered", "nominal", "ordered")
    sensitive = [slow.attribute(f"s{i}", [row[1 + i] for row in rows], kinds[i]) for i in range(columns)]
    codes, each = every_column(sensitive, lambda _: requirement)
    held = all_of(each).holds(Groups(group, codes, np.bincount(codes)))
    alone = [requirement.holds(Groups(group, a.codes, np.bincount(a.codes))) for a in sensitive]
    assert held.tolist() == np.all(alone, axis=0).tolist()
