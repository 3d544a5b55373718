"""What DuckDB's values look like in Arrow: one array of plain values, numbers behind dates and times, types by name.

Types are read by their DuckDB text everywhere (`model.release_formats.duckdb_types`); `type_text` gives it for
columns that only
Arrow has seen. Cost: a pass over the values that are changed.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.model.coded_table import FloatArray

Answers = Callable[..., pa.Array]
"""A function DuckDB calls with columns."""
MOST_ROWS = 2**31 - 1
"""Offsets of Arrow's lists are 32-bit integers."""


def owned(array: pa.Array) -> pa.Array:
    """Copy into arrow's own memory."""
    # DuckDB frees it on its own thread, for which one that holds the GIL may wait; numpy needs the GIL to free
    return pa.concat_arrays([array, array.slice(0, 0)])


def in_one_piece(array: pa.Array) -> pa.Array:
    """A column that may come in chunks as one array."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def listed_rows(array: pa.Array) -> pa.StructArray:
    """Rows of a one-element list array; an aggregate over no rows arrives as NULL."""
    return in_one_piece(array.flatten())


def plain(array: pa.Array) -> pa.Array:
    """Return enums as text, extension types as their storage, and -0.0 as 0.0."""
    array = in_one_piece(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = pc.add(array, pa.scalar(0.0, array.type))
    return array


@functools.lru_cache(maxsize=1000)
def type_text(kind: pa.DataType) -> str:
    """DuckDB's text of a type.

    >>> type_text(pa.list_(pa.int32())), type_text(pa.decimal128(9, 2)), type_text(pa.timestamp("us"))
    ('INTEGER[]', 'DECIMAL(9,2)', 'TIMESTAMP')
    """
    with _database().cursor() as con:
        return str(con.from_arrow(pa.table({"v": pa.nulls(0, kind)})).types[0])


def steps(values: pa.Array) -> pa.Array:
    """Dates and times as the whole numbers they are kept as, other values as they are.

    >>> steps(pa.array([1, None], pa.date32())).to_pylist(), steps(pa.array(["a"])).to_pylist()
    ([1, None], ['a'])
    """
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_temporal(kind) else values


def by_duckdb(values: pa.Array, sql: str) -> pa.Array:
    """What DuckDB makes of values.

    >>> by_duckdb(pa.array(["44-03-15 (BC)", "tomorrow"]), "try_cast(v as date) is null").to_pylist()
    [False, True]
    """
    with _database().cursor() as con:
        con.execute("set TimeZone = 'UTC'")
        return (
            con.from_arrow(pa.table({"v": values})).project(f"{sql} as v").to_arrow_table().column(0).combine_chunks()
        )


def batches(con: duckdb.DuckDBPyConnection, sql: str, rows: int = 100_000) -> Any:
    """The rows of a query, as a reader of record batches."""
    with warnings.catch_warnings():
        # DuckDB advises a relation instead, which is refused while a statement is being bound
        warnings.simplefilter("ignore", UserWarning)
        return con.execute(sql).to_arrow_reader(rows)


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """An empty database of the package's own: opening one takes longer than most queries on it."""
    return duckdb.connect(config={"threads": 1})


def as_numbers(values: pa.Array) -> FloatArray:
    """Numbers, decimals, dates and times as float64."""
    values = steps(values)
    if pa.types.is_decimal(values.type):  # pyarrow's own cast is off in the last bit
        values = by_duckdb(values, "v::double")
    numbers: FloatArray = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def owning(function: Answers) -> Answers:
    """The same function on columns of one piece each; whatever it returns is in arrow's own memory."""

    @functools.wraps(function)
    def copying(*columns: pa.Array) -> pa.Array:
        return owned(function(*map(in_one_piece, columns)))

    return copying


def give_back() -> None:
    """Give what was freed back to the system: DuckDB, whose turn is next, allocates by itself and cannot reuse it."""
    pa.default_memory_pool().release_unused()
    # glibc keeps arrays of many megabytes once some were freed
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
