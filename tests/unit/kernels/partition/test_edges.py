"""Rounded ends of intervals: the kernel against a slow reference, and what every end stands for."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.engine.transport.column_coding import code_column
from duckdb_anon.kernels.partition.interval_rounding import rounded
from duckdb_anon.model.released_columns import Interval
from tests.reference.edges import lower_ends, upper_ends

VALUE = st.one_of(st.integers(-6, 6), st.integers(-300, 300), st.integers(-100_000, 100_000))


def _ends(values: list[Any], least: int, whose: list[int] | None = None, kind: Any = None) -> tuple[Any, dict, dict]:
    """Published start and end of intervals that start or end at each value, as the kernel gives them, on its scale."""
    attribute = code_column("test", "v", pa.array(values, kind), "ordered")
    codes = np.arange(attribute.special_from, dtype=np.int32)
    domain = len(codes)
    # from each value to the largest, from the smallest to each value: boxes of one value stay as they are
    lower = np.concatenate([codes, np.zeros_like(codes)])
    upper = np.concatenate([np.full_like(codes, domain - 1), codes])
    box = Interval("v", lower, upper, np.arange(len(lower)))
    person = None if whose is None else np.asarray(whose, dtype=np.int32)
    found = rounded(attribute, box, least, person)
    numbers = np.concatenate([attribute.scale.numbers, np.zeros(attribute.domain - domain), found.new])
    if attribute.scale.line != "real":
        numbers = np.concatenate(
            [attribute.scale.numbers, np.zeros(attribute.domain - domain, np.int64), found.new.astype(np.int64)]
        )
    starts = {attribute.scale.numbers[c]: numbers[found.lower[c]] for c in codes[:-1]}
    ends = {attribute.scale.numbers[c]: numbers[found.upper[domain + c]] for c in codes[1:]}
    return attribute, starts, ends


@given(st.lists(st.tuples(VALUE, st.integers(0, 6)), min_size=2, max_size=40), st.integers(1, 6), st.booleans())
def test_ends_are_those_of_the_reference(rows, least, of_persons):
    rows = rows if of_persons else [(value, number) for number, (value, _) in enumerate(rows)]
    values, whose = [value for value, _ in rows], [person for _, person in rows]
    if len(set(values)) == 1:
        return
    _, starts, ends = _ends(values, least, whose if of_persons else None)
    wanted = upper_ends(rows, least)
    assert ends == {value: wanted[value] for value in ends}
    wanted = lower_ends(rows, least)
    assert starts == {value: wanted[value] for value in starts}


@pytest.mark.parametrize(
    ("values", "kind", "top", "bottom"),
    [
        ([*range(20, 90)] * 9 + [123, 3], pa.int8(), 127, 0),
        ([0] * 50 + [84_321], pa.int64(), 100_000, 0),
        ([0.0] * 50 + [84.321], pa.float64(), 100.0, 0.0),
        ([0.25 * i for i in range(400)] + [1e6 / 7], pa.float32(), 250_100.0, 0.0),
        ([Decimal(i) / 100 for i in range(1000, 4000)] + [Decimal("84321.99")], pa.decimal128(9, 2), 10_004_000, 1000),
        ([date(1930, 1, 1) + timedelta(days=9 * i) for i in range(3000)] + [date(1820, 4, 7)], pa.date32(), None, None),
        ([datetime(2020, 1, 1) + timedelta(minutes=7 * i) for i in range(3000)], pa.timestamp("us"), None, None),
        ([time(i // 60, i % 60) for i in range(600, 900)], pa.time64("us"), None, None),
    ],
)  # fmt: skip
def test_extremes_of_every_type_become_round(values, kind, top, bottom):
    attribute, starts, ends = _ends(values, 5, kind=kind)
    assert all(end >= number for number, end in ends.items())
    assert all(start <= number for number, start in starts.items())
    greatest, least = max(ends.values()), min(starts.values())
    if top is not None:
        assert (greatest, least) == (top, bottom)
    elif attribute.scale.line == "date":
        assert (date(1970, 1, 1) + timedelta(days=int(least))).isoformat() == "1680-01-01"
    else:
        assert greatest % 60_000_000 == 0 and least % 60_000_000 == 0


def test_a_column_that_cannot_be_reckoned_with_has_shared_ends_or_none():
    values = [Decimal(0)] * 3 + [Decimal(7)] + [Decimal(10) ** 30] * 3 + [Decimal(10) ** 35]
    attribute = code_column("test", "v", pa.array(values, pa.decimal128(38, 0)), "ordered")
    assert attribute.scale is None
    lower, upper = np.array([0, 0, 1], dtype=np.int32), np.array([1, 2, 3], dtype=np.int32)
    found = rounded(attribute, Interval("v", lower, upper, np.arange(3)), 3)
    assert found.lower.tolist() == [0, 0, -1] and found.upper.tolist() == [2, 2, -1]
