"""A function that rewritten queries on randomized releases call: lists in, a list out.

joint_counts(codes, rows, sizes, chances)    original rows of each combination of values of randomized columns
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.joint_counts import joint_counts


def _joint_counts(cells: Any, rows: Any, sizes: Any, chances: Any) -> pa.Array | None:
    if cells is None or sizes is None or not len(cells):
        return None
    domains = np.asarray(sizes, dtype=np.int64)
    flat = cells.flatten()
    # a value that is in no domain has no place among the cells
    if flat.null_count or not len(domains) or min(domains) < 1:
        return None
    places = np.asarray(flat, dtype=np.int64).reshape(-1, len(domains))
    pairs = zip(domains.tolist(), _counts(chances).tolist(), strict=True)
    counts = joint_counts(places, _counts(rows), [RetentionChannel(*pair) for pair in pairs])
    return None if counts is None else pa.array(counts.ravel())


def _row_by_row(work: Callable[..., pa.Array | None], kind: pa.DataType) -> Callable[..., pa.Array]:
    """A function of columns from one of a row's lists and numbers, None for NULL."""

    def answer(*columns: pa.Array) -> pa.Array:
        found = [work(*(_of(column, k) for column in columns)) for k in range(len(columns[0]))]
        offsets = np.cumsum([0, *(0 if row is None else len(row) for row in found)])
        values = pa.concat_arrays([pa.array([], kind), *(row.cast(kind) for row in found if row is not None)])
        missing = pa.array([row is None for row in found])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=missing)

    return answer


FUNCTIONS: dict[str, tuple[Callable[..., pa.Array], str]] = {
    "joint_counts": (_row_by_row(_joint_counts, pa.float64()), "DOUBLE[]"),
}
"""Each with the type that it returns."""


def _of(column: pa.Array, k: int) -> Any:
    """A row's list as an array, or its number; None for NULL."""
    return column[k].values if pa.types.is_list(column.type) else column[k].as_py()


def _counts(rows: pa.Array) -> Any:
    return pc.fill_null(rows.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
