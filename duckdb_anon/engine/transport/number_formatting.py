"""Values to numbers on their type's own scale, and new numbers back to text that DuckDB casts to the type.

Text is the one form every type reads exactly, and casting it to the type of the column needs no knowledge of that
type while planning, so new values work for temporary tables and DataFrames too. Cost: one text a distinct number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.engine.arrow import by_duckdb, steps
from duckdb_anon.model.number_scale import Scale

_INT64 = np.iinfo(np.int64)
_DAYS = 2**31 - 2  # beyond are DuckDB's infinities
_MICROSECONDS = (-9_223_372_022_400_000_000, 2**63 - 2)
_NANOSECONDS = (-9_223_286_400_000_000_000, 2**63 - 2)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def scale_of(values: pa.Array) -> Scale | None:
    """Scale of the finite distinct values of a column in rising order; None where it would not be exact."""
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        greatest = float(np.finfo(kind.to_pandas_dtype()).max)
        return Scale("real", numbers, low=-greatest, high=greatest)
    if pa.types.is_integer(kind):
        ends = np.iinfo(kind.to_pandas_dtype())
        return _shifted("integer", values.to_numpy(zero_copy_only=False), int(ends.min), int(ends.max))
    if pa.types.is_decimal128(kind):
        greatest_steps = 10**kind.precision - 1
        return _shifted("decimal", _unscaled(values), -greatest_steps, greatest_steps, kind.scale)
    if pa.types.is_date32(kind):
        days = steps(values).to_numpy(zero_copy_only=False).astype(np.int64)
        return Scale("date", days, low=-_DAYS, high=_DAYS)
    if pa.types.is_time32(kind) or pa.types.is_time64(kind):
        ticks = steps(values).to_numpy(zero_copy_only=False)
        return Scale("time", ticks.astype(np.int64), unit=kind.unit, low=0, high=86_400 * _PER_SECOND[kind.unit])
    if pa.types.is_timestamp(kind):
        ticks = steps(values).to_numpy(zero_copy_only=False)
        low, high = _timestamp_ends(kind.unit)
        return Scale("timestamp", ticks, unit=kind.unit, zoned=kind.tz is not None, low=low, high=high)
    return None


def texts(scale: Scale, numbers: NDArray[Any]) -> pa.StringArray:
    """Text of each number, as DuckDB reads it into the column's type."""
    fitted = scale.fitted(numbers)
    if scale.line == "real":
        return pa.array(fitted, pa.float64()).cast(pa.string())
    if scale.line == "date":
        return by_duckdb(pa.array(fitted, pa.int32()).cast(pa.date32()), "v::varchar")
    steps = pa.array(fitted, pa.int64())
    if scale.line == "time":
        return by_duckdb(steps.cast(pa.time64(scale.unit)), "v::varchar")
    if scale.line == "timestamp":
        return by_duckdb(steps.cast(pa.timestamp(scale.unit, "UTC" if scale.zoned else None)), "v::varchar")
    if not scale.origin and not scale.digits:
        return steps.cast(pa.string())
    return by_duckdb(steps, _decimal(scale))


def _decimal(scale: Scale) -> str:
    """SQL of the text of a number of steps `v`."""
    steps = f"(v::hugeint + {scale.origin})"
    if not scale.digits:
        return f"{steps}::varchar"
    unit = f"{10**scale.digits}::hugeint"
    fraction = f"lpad((abs({steps}) % {unit})::varchar, {scale.digits}, '0')"
    return f"case when {steps} < 0 then '-' else '' end || (abs({steps}) // {unit}) || '.' || {fraction}"


def _timestamp_ends(unit: str) -> tuple[int, int]:
    if unit == "ns":
        return _NANOSECONDS
    per = 10**6 // _PER_SECOND[unit]
    return -(-_MICROSECONDS[0] // per), _MICROSECONDS[1] // per


def _unscaled(values: pa.Array) -> NDArray[Any]:
    """Steps of decimals: int64 where they all fit, else Python integers."""
    words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    low, high = words[:, 0], words[:, 1]
    if (high == low >> 63).all():
        return low.copy()
    numbers: NDArray[Any] = high.astype(object) * 2**64 + low.view(np.uint64).astype(object)
    return numbers


def _shifted(line: Any, steps: NDArray[Any], low: int, high: int, digits: int = 0) -> Scale | None:
    """Steps as int64, counted from the smallest where they do not fit."""
    origin = 0
    if len(steps):
        low, high = min(low, int(steps[0])), max(high, int(steps[-1]))
    if len(steps) and not (_INT64.min <= int(steps[0]) and int(steps[-1]) <= _INT64.max):
        origin = int(steps[0])
        if int(steps[-1]) - origin > _INT64.max:
            return None
        steps = steps - steps.dtype.type(origin) if steps.dtype != object else steps - origin
    ends = max(low - origin, _INT64.min), min(high - origin, _INT64.max)
    return Scale(line, steps.astype(np.int64), origin, digits, low=ends[0], high=ends[1])
