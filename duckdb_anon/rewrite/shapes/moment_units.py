"""Moments as the whole numbers that ends of boxes are reckoned with, and back: SQL with a hole `{x}`.

Microseconds since 1970 (since midnight for times of day), but nanoseconds for the types that hold them: rounded to
microseconds an end would lie inside its box, and a bound taken from it would not hold.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import is_zoned


def in_nanoseconds(kind: str) -> bool:
    """Tell whether a type holds nanoseconds.

    >>> in_nanoseconds('TIMESTAMPTZ_NS'), in_nanoseconds('TIMESTAMP')
    (True, False)
    """
    return kind.strip().upper().endswith("_NS")


def counted(kind: str) -> str:
    """The number of a moment.

    >>> counted('TIMESTAMP_NS'), counted('TIME')
    ('epoch_ns({x})', 'epoch_us({x})')
    """
    return "epoch_ns({x})" if in_nanoseconds(kind) else "epoch_us({x})"


def timestamp(kind: str) -> str:
    """The timestamp of a number, in its column's type.

    >>> timestamp('TIMESTAMP WITH TIME ZONE'), timestamp('TIMESTAMP_NS')
    ('make_timestamptz({x})::TIMESTAMP WITH TIME ZONE', 'make_timestamp_ns({x})::TIMESTAMP_NS')
    """
    if not in_nanoseconds(kind):
        return f"{'make_timestamptz' if is_zoned(kind) else 'make_timestamp'}({{x}})::{kind}"
    return "(make_timestamp_ns({x}) at time zone 'UTC')" if is_zoned(kind) else f"make_timestamp_ns({{x}})::{kind}"


def finite(kind: str) -> str:
    """Whether a moment or number is finite.

    >>> finite('TIMESTAMPTZ_NS'), finite('DATE')
    ('isfinite({x}::timestamptz)', 'isfinite({x})')
    """
    # DuckDB 2.0 has none of TIMESTAMPTZ_NS
    return "isfinite({x}::timestamptz)" if kind.strip().upper() == "TIMESTAMPTZ_NS" else "isfinite({x})"
