"""A function that rewritten queries on randomized releases call: lists in, a list out.

joint_counts(codes, rows, sizes, chances)    original rows of each combination of values of randomized columns
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.joint_counts import joint_counts
from duckdb_anon.model.coded_table import FloatArray


def _of_columns(*columns: pa.Array) -> pa.Array:
    """The counts of each row of columns, NULL where there are none."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([_of_row(*row) for row in rows], pa.list_(pa.float64()))


def _of_row(cells: list[int | None] | None, rows: Any, sizes: list[int] | None, chances: Any) -> Any:
    # a value that is in no domain has no place among the cells
    if not cells or not sizes or None in cells or min(sizes) < 1:
        return None
    places = np.array(cells, dtype=np.int64).reshape(-1, len(sizes))
    channels = [RetentionChannel(size, chance) for size, chance in zip(sizes, _numbers(chances).tolist(), strict=True)]
    counts = joint_counts(places, _numbers(rows), channels)
    return None if counts is None else counts.ravel()


def _numbers(values: list[float | None]) -> FloatArray:
    return np.array([0.0 if value is None else value for value in values], dtype=np.float64)


JOINT_COUNTS = ("joint_counts", _of_columns, "DOUBLE[]", False)
"""Name, function, type of its result, and that it has no side effects."""
