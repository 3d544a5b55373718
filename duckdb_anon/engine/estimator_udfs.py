"""Functions by which rewritten queries learn the shares of the values in cells: lists in, lists out.

Each is called on one row: the distinct cells of a column as a list, and how many rows have each. Nothing is kept from
call to call: learning costs less than finding the cells does.

    box_shares(cells, rows, within, of_null)     share of each box that lies in one of the intervals
    box_means(cells, rows, within, slope, shift) mean of slope * value + shift there, 0 elsewhere
    box_values(cells)                            values of each box of whole numbers, NULL for one of too many
    box_weights(cells, rows)                     weight of each value of each box, NULL last where it may be anything
    member_weights(members, rows, prior)         weight of each member of each set
    joint_counts(codes, rows, sizes, chances)    original rows of each combination of values of randomized columns
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine.arrow import as_numbers
from duckdb_anon.kernels.interval_em import Boxes, member_weights
from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.joint_counts import joint_counts
from duckdb_anon.model.learnt import MOST_LISTED

_NUMBERS = pa.list_(pa.float64())
_WHOLES = pa.list_(pa.int64())
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
"""By unit of a timestamp; as doubles, since neither the range of seconds nor each nanosecond is one of them."""


def _box_shares(cells: Any, rows: Any, within: Any, of_null: Any) -> pa.Array:
    boxes = _boxes(cells, rows)
    return pa.array(boxes.means(_pieces(within, boxes), 0.0, 1.0, bool(of_null)))


def _box_means(cells: Any, rows: Any, within: Any, slope: Any, shift: Any) -> pa.Array:
    boxes = _boxes(cells, rows)
    return pa.array(boxes.means(_pieces(within, boxes), float(slope), float(shift), False))


def _box_values(cells: Any) -> pa.Array:
    if cells is None or not len(cells):
        return pa.array([], _WHOLES)
    values, offsets, null, wide = _boxes(cells, None).values(MOST_LISTED)
    listed = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, mask=null))
    return pc.if_else(pa.array(wide), None, listed)


def _box_weights(cells: Any, rows: Any) -> pa.Array:
    weights, offsets = _boxes(cells, rows).weights(MOST_LISTED)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(weights))


def _member_weights(sets: Any, rows: Any, prior: Any) -> pa.Array:
    if sets is None or not len(sets):
        return pa.array([], _NUMBERS)
    offsets = np.asarray(sets.offsets, dtype=np.int64)
    flat = sets.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    offsets = offsets - offsets[0]
    codes = pc.dictionary_encode(flat, null_encoding="encode").indices
    weights = None if prior is None else prior.flatten().cast(pa.float64()).to_numpy(zero_copy_only=False)
    learnt = member_weights(codes.to_numpy(zero_copy_only=False).astype(np.int64), weights, offsets, _counts(rows))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(learnt))


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
        offsets = np.cumsum([0, *(0 if one is None else len(one) for one in found)])
        values = pa.concat_arrays([pa.array([], kind), *(one.cast(kind) for one in found if one is not None)])
        missing = pa.array([one is None for one in found])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=missing)

    return answer


FUNCTIONS: dict[str, tuple[Callable[..., pa.Array], str]] = {
    "box_shares": (_row_by_row(_box_shares, pa.float64()), "DOUBLE[]"),
    "box_means": (_row_by_row(_box_means, pa.float64()), "DOUBLE[]"),
    "box_values": (_row_by_row(_box_values, _WHOLES), "BIGINT[][]"),
    "box_weights": (_row_by_row(_box_weights, _NUMBERS), "DOUBLE[][]"),
    "member_weights": (_row_by_row(_member_weights, _NUMBERS), "DOUBLE[][]"),
    "joint_counts": (_row_by_row(_joint_counts, pa.float64()), "DOUBLE[]"),
}
"""Each with the type that it returns."""


def _of(column: pa.Array, k: int) -> Any:
    """A row's list as an array, or its number; None for NULL."""
    return column[k].values if pa.types.is_list(column.type) else column[k].as_py()


def _boxes(cells: pa.Array | None, rows: pa.Array | None) -> Boxes:
    """Cells as arrays of numbers: days since 1970, microseconds, or what they are."""
    if cells is None or not len(cells):
        none = np.zeros(0, dtype=bool)
        return Boxes(np.zeros(0, np.int64), np.zeros(0, np.int64), none, none, np.zeros(0), 1)
    null = cells.is_null().to_numpy(zero_copy_only=False)
    ends = cells.flatten() if cells.null_count == 0 else [_field(cells, k) for k in range(2)]
    unknown = ends[0].is_null().to_numpy(zero_copy_only=False) & ~null
    kind = ends[0].type
    counted = pa.types.is_integer(kind) or pa.types.is_date(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    lower, upper = (_numbers(end, counted) for end in ends)
    counts = np.ones(len(cells)) if rows is None else _counts(rows)
    return Boxes(lower, upper, null, unknown, counts, int(counted), pa.types.is_date(kind))


def _field(cells: pa.StructArray, k: int) -> pa.Array:
    return pc.struct_field(cells, [k])


def _numbers(ends: pa.Array, counted: bool) -> Any:
    kind = ends.type
    if pa.types.is_date32(kind):
        ends = ends.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        ends = pc.multiply(ends.view(pa.int64()).cast(pa.float64(), safe=False), _MICROSECONDS[kind.unit])
    elif pa.types.is_decimal(kind):
        return as_numbers(ends)
    exact = (pa.types.is_integer(kind) and kind != pa.uint64()) or pa.types.is_date(kind)
    whole = pa.int64() if counted and exact else pa.float64()
    return pc.fill_null(ends.cast(whole, safe=False), 0).to_numpy(zero_copy_only=False)


def _counts(rows: pa.Array) -> Any:
    return pc.fill_null(rows.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)


def _pieces(within: pa.Array | None, boxes: Boxes) -> Any:
    """Intervals as rows of two ends; NULL is open."""
    pairs = within.to_pylist() if within is not None else []
    if boxes.lower.dtype == np.int64:
        ends = np.iinfo(np.int64)
        whole = [(ends.min if a is None else int(a), ends.max if b is None else int(b)) for a, b in pairs]
        return np.array(whole, dtype=np.int64).reshape(-1, 2)
    found = [(-math.inf if low is None else low, math.inf if high is None else high) for low, high in pairs]
    return np.array(found, dtype=np.float64).reshape(-1, 2)
