"""Arrow columns to codes."""

import random
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckdb_anon.engine.arrow import as_numbers
from duckdb_anon.engine.transport.column_coding import canonical_order, code_column


def test_null_lies_one_range_beyond_the_maximum():
    a = code_column("f", "a", pa.array([30, None, 10]), "ordered")
    assert a.codes.tolist() == [1, 2, 0]
    assert a.positions.tolist() == [10, 30, 50]
    assert (a.null_code, a.special_from) == (2, 2)


def test_not_finite_values_are_farthest_from_all_others():
    a = code_column("f", "a", pa.array([1.0, float("nan"), 3.0, float("inf"), -float("inf"), None]), "ordered")
    assert a.special_from == 2
    assert a.domain == 6
    assert len(set(a.codes.tolist())) == 6
    far = a.positions[2:]
    assert np.abs(far[:, None] - a.positions[:2]).min() >= a.span
    assert np.diff(far).min() >= a.span


def test_minus_zero_is_zero():
    a = code_column("f", "a", pa.array([0.0, -0.0]), "ordered")
    assert a.domain == 1


def test_canonical_order_ignores_row_order():
    rng = np.random.default_rng(1)
    columns = [pa.array(rng.integers(0, 9, 200)) for _ in range(3)]
    turned = rng.permutation(200)
    first = [code_column("f", "a", c, "ordered") for c in columns]
    second = [code_column("f", "a", c.take(pa.array(turned)), "ordered") for c in columns]
    one, two = canonical_order(first, np.arange(200)), canonical_order(second, turned)
    for a, b in zip(first, second, strict=True):
        assert (a.codes[one] == b.codes[two]).all()


@pytest.mark.parametrize(("digits", "scale"), [(4, 1), (18, 3), (18, 0), (38, 0), (38, 10), (25, 20)])
def test_decimals_become_the_numbers_that_duckdb_makes_of_them(digits, scale):
    rng = random.Random(digits)
    drawn = [rng.randrange(1 - 10**d, 10**d) for d in range(1, digits + 1) for _ in range(20)]
    written = [f"{Decimal(number).scaleb(-scale):f}" for number in drawn]
    con = duckdb.connect()
    con.execute(f"create table t as select unnest({written})::decimal({digits}, {scale}) as x")
    values = con.sql("select x from t").to_arrow_table().column("x").combine_chunks()
    expected = [x for (x,) in con.execute("select x::double from t").fetchall()]
    assert as_numbers(values).tolist() == expected
