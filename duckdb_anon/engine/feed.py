"""The rows of a call as DuckDB hands them over: a vector at a time, kept in as few bytes as their numbers need.

Listing a whole table into one value, the obvious way, holds it four times over (the state of the aggregate, the
list, its copy in arrow, the table itself) and in the width of its types. Here each vector is narrowed as it comes,
and widened again one column at a time when that column is coded.

`opened` gives a statement the number of an empty feed, `put` adds a vector, `taken` ends it. A statement that fails
in between leaves a feed behind, which goes when its connection opens one in another statement.

Cost: one call of Python for each 2048 rows.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine.arrow import step_type, steps
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

Statement = tuple[int, int, int]
"""Number of the database instance, of the connection in it, and of the statement."""

_WIDTHS = (np.int8, np.int16, np.int32)


@dataclass
class Feed:
    """Rows put so far: the pieces of each column, with the types the columns have."""

    statement: Statement
    pieces: dict[str, list[pa.Array]] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    rows: int = 0

    def __len__(self) -> int:
        """Rows put so far."""
        return self.rows

    def put(self, rows: pa.StructArray) -> None:
        """Add the rows of one vector."""
        columns = [(rows.type.field(i).name, rows.field(i)) for i in range(rows.type.num_fields)]
        for name, column in columns:
            self.types.setdefault(name, column.type)
            self.pieces.setdefault(name, []).append(_narrowed(column, self.pieces[name]))
        self.rows += len(rows)

    def field(self, name: str) -> pa.Array:
        """One column in its own type. It is handed over: the feed has it no more."""
        tick()
        pieces, kind = self.pieces.pop(name), self.types[name]
        whole = pa.chunked_array([_widened(piece, kind) for piece in pieces], kind).combine_chunks()
        if isinstance(whole, pa.ChunkedArray) and whole.num_chunks > 1:
            raise RequirementError(
                f"a column of {self.rows:,} rows holds more than 2 GB of text, which arrow's offsets cannot reach; "
                "work in parts: duckdb-anon release ... --part-rows 1000000"
            )
        return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


_feeds: dict[int, Feed] = {}
_numbers = itertools.count(1)
_lock = threading.Lock()


def opened(statement: Statement) -> int:
    """Open a feed for a call of `statement`; return its number."""
    with _lock:
        for number, feed in list(_feeds.items()):
            if feed.statement[:2] == statement[:2] and feed.statement != statement:
                del _feeds[number]
        number = next(_numbers)
        _feeds[number] = Feed(statement)
        return number


def put(number: int, rows: pa.StructArray) -> None:
    """Add a vector to feed `number`; several threads may."""
    with _lock:
        _feeds[number].put(rows)


def taken(number: int) -> Feed:
    """The feed `number`, which ends."""
    with _lock:
        return _feeds.pop(number)


def _narrowed(column: pa.Array, before: list[pa.Array]) -> pa.Array:
    """The same numbers in the narrowest type that holds those of this vector; other columns as they are."""
    kind = column.type
    if pa.types.is_dictionary(kind) and before:
        # every vector brings a copy of the names of an enum; one is enough
        return pa.DictionaryArray.from_arrays(column.indices, before[0].dictionary)
    whole = pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    if not whole or pa.types.is_uint64(kind):
        return column
    number = steps(column)
    ends = pc.min_max(number)
    low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
    for width in _WIDTHS:
        if np.iinfo(width).min <= low and high <= np.iinfo(width).max:
            return (
                number.cast(pa.from_numpy_dtype(width))
                if number.type.bit_width > 8 * np.dtype(width).itemsize
                else number
            )
    return number


def _widened(piece: pa.Array, kind: Any) -> pa.Array:
    return piece if piece.type == kind else piece.cast(step_type(kind)).cast(kind)
