"""Numbers and orders of rows whose columns do not fit one integer, against Python's own sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels.partition import sort_count
from duckdb_anon.kernels.row_keys import keys_of

ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.one_of(st.integers(-1, 4), st.integers(-1, 2**40))] * width), min_size=1, max_size=30
    )
)


@given(ROWS)
def test_rows_are_numbered_in_the_order_of_their_columns(rows):
    keys = keys_of([np.array(column) for column in zip(*rows, strict=True)])
    different = sorted(set(rows))
    assert keys.of_row.tolist() == [different.index(row) for row in rows]
    assert keys.first.tolist() == [rows.index(row) for row in different]


@pytest.mark.parametrize("bound", [7, 2**40])
def test_order_is_stable_also_where_keys_do_not_fit_one_integer(bound):
    rng = np.random.default_rng(0)
    major, minor = rng.integers(0, 2**22 if bound > 7 else 5, 300), rng.integers(0, bound, 300)
    assert sort_count.order_by(major, minor, bound).tolist() == np.lexsort((minor, major)).tolist()
