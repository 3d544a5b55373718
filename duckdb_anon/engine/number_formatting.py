"""Values to numbers on their type's own scale, and new numbers back to text that DuckDB casts to the type.

Text is the one form every type reads exactly, and casting it to the type of the column needs no knowledge of that
type while planning, so new values work for temporary tables and DataFrames too. Cost: one text a distinct number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from duckdb_anon.engine.arrow import steps
from duckdb_anon.model.number_scale import Numbers, Scale

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
    if scale.line in ("integer", "decimal"):
        if scale.origin:
            return pa.array([_decimal(int(n) + scale.origin, scale.digits) for n in fitted], pa.string())
        return _whole(fitted, scale.digits)
    if scale.line == "time":
        return _clock(fitted, scale.unit)
    return _calendar(fitted, scale)


def moment_texts(values: pa.Array) -> list[str]:
    """Text of dates, times or timestamps, none of them NULL, as DuckDB reads it into the column's type.

    Args:
        values: of any unit, infinite ones included.
    """
    scale = scale_of(values)
    if scale is None:
        raise TypeError(f"{values.type} is no date, time or timestamp")
    greatest = 2**31 - 1 if scale.line == "date" else 2**63 - 1
    infinite = {greatest: "infinity", -greatest: "-infinity"}
    written = texts(scale, scale.numbers).to_pylist()
    return [infinite.get(int(number), text) for number, text in zip(scale.numbers, written, strict=True)]


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
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.view(np.uint64).astype(object)
    return whole


def _shifted(line: Any, steps: NDArray[Any], low: int, high: int, digits: int = 0) -> Scale | None:
    """Steps as int64, counted from the smallest where they do not fit.

    HUGEINT travels as DECIMAL(38, 0), whose ends are nearer than those of its values.
    """
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


def _decimal(steps: int, digits: int) -> str:
    """Decimal text of a number of steps."""
    sign, text = "-" if steps < 0 else "", str(abs(steps)).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}" if digits else sign + text


def _whole(steps: Numbers, digits: int) -> pa.StringArray:
    if not digits:
        return pa.array(steps, pa.int64()).cast(pa.string())
    words = np.stack([steps, steps >> 63], axis=1).astype(np.int64)  # type: ignore[operator]
    kind = pa.decimal128(38, digits)
    written = pa.Array.from_buffers(kind, len(steps), [None, pa.py_buffer(words.tobytes())]).cast(pa.string())
    # numbers near 0 are written with an exponent, which DuckDB does not read down to the last digit
    small = np.abs(steps) < 10**digits // 10**5 if digits > 5 else np.zeros(len(steps), dtype=bool)
    if not small.any():
        return written
    spelled = pa.array([_decimal(int(n), digits) if s else None for n, s in zip(steps, small, strict=True)])
    return pc.coalesce(spelled, written)


def _clock(ticks: Numbers, unit: str) -> pa.StringArray:
    per_day = 86_400 * _PER_SECOND[unit]
    kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    short = np.where(ticks >= per_day, 0, ticks).astype(np.int32 if unit in ("s", "ms") else np.int64)
    written = pa.array(short).cast(kind).cast(pa.string())
    # midnight at the end of the day is a time of its own
    return pc.if_else(pa.array(ticks >= per_day), pa.scalar("24:00:00"), written)


def _calendar(ticks: Numbers, scale: Scale) -> pa.StringArray:
    """Dates and timestamps. Years before 1 and after 9999 are written the way DuckDB reads them."""
    days = scale.line == "date"
    kind = pa.date32() if days else pa.timestamp(scale.unit)
    per_day = 1 if days else 86_400 * _PER_SECOND[scale.unit]
    day = ticks // per_day
    plain = (day >= -719_162) & (day <= 2_932_896)
    kept = np.where(plain, ticks, 0)
    written = pa.array(kept.astype(np.int32) if days else kept).cast(kind).cast(pa.string())
    zone = "+00" if scale.zoned else ""
    if not plain.all():
        odd: list[str | None] = [None] * len(ticks)
        for i in np.flatnonzero(~plain):
            odd[i] = _odd_date(int(day[i])) + ("" if days else f" {_tick_text(int(ticks[i]) % per_day, scale.unit)}")
        written = pc.coalesce(pa.array(odd, pa.string()), written)
    return pc.binary_join_element_wise(written, zone, "") if zone else written


def _odd_date(day: int) -> str:
    text = str(np.datetime64(day, "D"))
    sign, digits = text[0] == "-", text.lstrip("+-")
    year, rest = digits.split("-", 1)
    before = 1 - (-int(year) if sign else int(year))
    return f"{before:04d}-{rest} (BC)" if before > 0 else f"{int(year):04d}-{rest}"


def _tick_text(ticks: int, unit: str) -> str:
    per = _PER_SECOND[unit]
    seconds, part = divmod(ticks, per)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{part:0{len(str(per)) - 1}d}" if part else text
