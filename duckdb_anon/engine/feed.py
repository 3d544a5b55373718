"""The rows of a call as DuckDB hands them over: a vector at a time, kept in as few bytes as their numbers need.

Listing a whole table into one value, the obvious way, holds it four times over (the state of the aggregate, the
list, its copy in arrow, the table itself) and in the width of its types. Here each vector is narrowed as it comes,
and widened again one column at a time when that column is coded.

`opened` gives a statement the number of an empty feed, `put` adds a vector, `taken` ends it.

Cost: one call of Python for each 2048 rows.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine import held
from duckdb_anon.engine.arrow import Texts, step_type, steps
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

_WIDTHS = (np.int8, np.int16, np.int32)


@dataclass
class Feed:
    """Rows put so far: the pieces of each column, with the types the columns have; and when it was opened."""

    pieces: dict[str, list[pa.Array]] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    rows: int = 0
    since: float = field(default_factory=time.monotonic)

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

    def field(self, name: str) -> Any:
        """One column in its own type, texts as `Texts`. It is handed over: the feed has it no more."""
        tick()
        pieces, kind = self.pieces.pop(name), self.types[name]
        if pa.types.is_string(kind) and all(pa.types.is_dictionary(piece.type) for piece in pieces):
            return _together(pieces, self.rows)
        whole = _one([_widened(piece, kind) for piece in pieces], kind)
        if whole is None:
            raise RequirementError(_too_long(self.rows))
        return whole

    def whole(self, kind: pa.StructType) -> pa.StructArray:
        """All rows, whose type is `kind`. They are handed over: the feed has them no more."""
        if not self.rows:
            return pa.array([], kind)
        columns = [self.field(one.name) for one in kind]
        plain = [c.encoded.dictionary_decode() if isinstance(c, Texts) else c for c in columns]
        return pa.StructArray.from_arrays(plain, fields=list(kind))


_lock = threading.Lock()


def opened(statement: held.Statement) -> int:
    """Open a feed for a call of `statement`; return its number."""
    return held.hold(statement, Feed())


def put(number: int, rows: pa.StructArray) -> None:
    """Add a vector to feed `number`; several threads may."""
    with _lock:
        held.held(number).put(rows)


def since(number: int) -> float:
    """When feed `number` was opened, by `time.monotonic`: its statement had begun to run."""
    return float(held.held(number).since)


def taken(number: int) -> tuple[held.Statement, Feed]:
    """The feed `number`, which ends, and the statement it was opened for."""
    statement, feed = held.released(number)
    return statement, feed


def _narrowed(column: pa.Array, before: list[pa.Array]) -> pa.Array:
    """The same values in fewer bytes: numbers in the narrowest type that holds this vector's, texts once each."""
    kind = column.type
    if pa.types.is_dictionary(kind) and before:
        # every vector brings a copy of the names of an enum; one is enough
        return pa.DictionaryArray.from_arrays(column.indices, before[0].dictionary)
    if pa.types.is_string(kind):
        return _shorter(column)
    whole = pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    if not whole or pa.types.is_uint64(kind):
        return column
    number = steps(column)
    ends = pc.min_max(number)
    return _fitting(number, ends["min"].as_py() or 0, ends["max"].as_py() or 0)


def _fitting(number: pa.Array, low: int, high: int) -> pa.Array:
    for width in _WIDTHS:
        if np.iinfo(width).min <= low and high <= np.iinfo(width).max:
            narrower = number.type.bit_width > 8 * np.dtype(width).itemsize
            return number.cast(pa.from_numpy_dtype(width)) if narrower else number
    return number


def _shorter(column: pa.Array) -> pa.Array:
    """Texts with places among the different ones; as they are where most are different."""
    encoded = pc.dictionary_encode(column)
    different = len(encoded.dictionary)
    if 2 * different > len(column):
        return column
    return pa.DictionaryArray.from_arrays(_fitting(encoded.indices, 0, different), encoded.dictionary)


def _one(pieces: list[pa.Array], kind: pa.DataType) -> pa.Array | None:
    """One array of all pieces, None where it would hold more than its offsets reach."""
    try:
        whole = pa.chunked_array(pieces, kind).combine_chunks()
    except pa.ArrowException:
        return None
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return whole.combine_chunks() if whole.num_chunks < 2 else None


def _together(pieces: list[pa.Array], rows: int) -> Texts:
    each = [pa.DictionaryArray.from_arrays(piece.indices.cast(pa.int32()), piece.dictionary) for piece in pieces]
    try:
        encoded = pa.chunked_array(each).unify_dictionaries().combine_chunks()
    except pa.ArrowException as error:
        raise RequirementError(_too_long(rows)) from error
    return Texts(encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded)


def _too_long(rows: int) -> str:
    return (
        f"a column of {rows:,} rows holds more than 2 GB of text, which arrow's offsets cannot reach; work in parts: "
        "duckdb-anon release ... --part-rows 1000000, or duckdb_anon.release(..., part_rows=1000000)"
    )


def _widened(piece: pa.Array, kind: Any) -> pa.Array:
    if pa.types.is_dictionary(piece.type) and not pa.types.is_dictionary(kind):
        return piece.dictionary_decode()
    return piece if piece.type == kind else piece.cast(step_type(kind)).cast(kind)
