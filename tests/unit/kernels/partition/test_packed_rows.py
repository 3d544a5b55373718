"""Rows whose codes share words: extremes are those of the codes, whatever the domains are."""

import numpy as np
import pytest

from duckdb_anon.kernels.partition.partition_state import Columns, Rows, extremes
from duckdb_anon.model.coded_table import Attribute


@pytest.mark.parametrize("domains", [(1,), (2, 2, 1), (128,) * 17, (40, 70_000, 3, 2)])
def test_extremes_of_packed_codes_are_those_of_the_codes(domains):
    rng = np.random.default_rng(1)
    qi = tuple(
        Attribute("a", "ordered", rng.choice([0, d - 1, d // 2], 50), np.arange(float(d)), d, -1, np.zeros(d, np.int64))
        for d in domains
    )
    columns = Columns.of(qi)
    rows = Rows.of(qi, columns, None)
    low, high = np.zeros((2, len(domains)), np.int64)
    for size in (1, 2, 20):
        rows.order[:size] = rng.permutation(50)[:size]
        extremes(columns, rows, 0, size, low, high)
        chosen = [attribute.codes[rows.order[:size]] for attribute in qi]
        assert low.tolist() == [code.min() for code in chosen]
        assert high.tolist() == [code.max() for code in chosen]
