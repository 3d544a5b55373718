"""The rows of a call as DuckDB hands them over: a vector at a time, kept in as few bytes as their numbers need.

Listing a whole table into one value, the obvious way, takes four times its memory (the state of the aggregate, the
list, its copy in arrow, the table itself) and in the width of its types. Here many vectors at a time are narrowed as
they come, the last of them and all of a smaller table when its columns are coded, which several threads do; a column is
widened again when it is coded.

`open_buffer` gives a statement the number of an empty buffer, `put` adds a vector, `take_buffer` ends it.

Cost: one call of Python for each 2048 rows, a few of arrow for each `_MOST_BYTES` and column.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine import statement_store
from duckdb_anon.engine.arrow import Encoded, decoded, step_type, steps
from duckdb_anon.kernels.array_ops import gathered, tally
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

_WIDTHS = (np.int8, np.int16, np.int32)
_SAMPLE = 2048
"""Texts that are sampled before all are encoded."""
_FEW = 16
"""Bits of whole numbers that are few enough to be encoded by counting."""
_MOST_BYTES = 1 << 24
"""Bytes that wait before they are narrowed. Arrow then works on many rows without the GIL, so that DuckDB puts more of
them meanwhile: each time arrow is done with a few, it would wait for the GIL until DuckDB lets it go."""


@dataclass
class InputBuffer:
    """Rows put so far: the pieces of each column, with the types the columns have.

    Attributes:
        pieces: of each column, the same rows in the same place of every list.
        types: of each column.
        rows: how many were put.
        waiting: vectors that are in no piece yet.
        size: their bytes.
        last: those of them that waited at the end, by column.
    """

    pieces: dict[str, list[pa.Array]] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    rows: int = 0
    waiting: list[pa.StructArray] = field(default_factory=list)
    size: int = 0
    last: dict[str, list[pa.Array]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """Rows put so far."""
        return self.rows

    def put(self, rows: pa.StructArray) -> None:
        """Add the rows of one vector."""
        with self.lock:
            self.waiting.append(rows)
            self.size += rows.nbytes
            self.rows += len(rows)
            batch = self._batch() if self.size >= _MOST_BYTES else []
        self._keep(batch)

    def ended(self) -> InputBuffer:
        """The buffer with all of its rows, of which some are narrowed when their column is read."""
        batch = self._batch()
        for k, one in enumerate(batch[0].type if batch else ()):
            self.types.setdefault(one.name, one.type)
            self.last[one.name] = [rows.field(k) for rows in batch]
        return self

    def _batch(self) -> list[pa.StructArray]:
        batch, self.waiting, self.size = self.waiting, [], 0
        return batch

    def _keep(self, batch: list[pa.StructArray]) -> None:
        """Make pieces of some vectors, while other threads put theirs."""
        if not batch:
            return
        kind = batch[0].type
        narrowed = [_narrowed([rows.field(i) for rows in batch], kind.field(i).type) for i in range(kind.num_fields)]
        with self.lock:
            for i, piece in enumerate(narrowed):
                self.types.setdefault(kind.field(i).name, kind.field(i).type)
                self.pieces.setdefault(kind.field(i).name, []).append(piece)

    def field(self, name: str) -> Any:
        """One column in its own type, `Encoded` where it has few values. The buffer then drops it."""
        tick()
        pieces, kind = self.pieces.pop(name, []), self.types[name]
        if name in self.last:
            pieces.append(_narrowed(self.last.pop(name), kind))
        if pa.types.is_string(kind) and all(pa.types.is_dictionary(piece.type) for piece in pieces):
            return _together(pieces, self.rows)
        if pieces and all(pa.types.is_integer(piece.type) and piece.type.bit_width <= _FEW for piece in pieces):
            return _encoded(pieces, kind)
        whole = _one([_widened(piece, kind) for piece in pieces], kind)
        if whole is None:
            raise RequirementError(_too_long(self.rows))
        return whole


@dataclass(frozen=True)
class InputTable:
    """A table that was buffered, whose columns are widened when they are read.

    Attributes:
        buffer: its rows.
        type: its columns.
    """

    buffer: InputBuffer
    type: pa.StructType

    def __len__(self) -> int:
        """Rows of the table."""
        return self.buffer.rows

    def field(self, name: str) -> pa.Array:
        """One column in its own type. It is handed over: the table has it no more."""
        if not self.buffer.rows:
            return pa.array([], self.type.field(name).type)
        return decoded(self.buffer.field(name))


def open_buffer(statement: statement_store.Statement) -> int:
    """Open a buffer for a call of `statement`; return its number."""
    return statement_store.put(statement, InputBuffer())


def put(number: int, rows: pa.StructArray) -> None:
    """Add a vector to buffer `number`; several threads may."""
    statement_store.get(number).put(rows)


def put_rows(buffered: pa.StructArray) -> pa.Array:
    """Add rows to the buffer they name; a one for each row, of which a query makes a number of rows."""
    put(buffered.field("buffer")[0].as_py(), buffered.field("row"))
    return pa.array(np.ones(len(buffered), dtype=np.int64))


def take_buffer(number: int) -> InputBuffer:
    """The buffer `number`, which ends."""
    buffer: InputBuffer = statement_store.pop(number)
    return buffer.ended()


def _narrowed(vectors: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The same values in fewer bytes: numbers in the narrowest type that holds them all, texts once each."""
    if pa.types.is_dictionary(kind):
        # every vector brings a copy of the names of an enum; one is enough
        vectors = [pa.DictionaryArray.from_arrays(vector.indices, vectors[0].dictionary) for vector in vectors]
    if pa.types.is_string(kind) and (shorter := _shorter(vectors, kind)) is not None:
        return shorter
    column = _one(vectors, kind)
    if column is None:
        raise RequirementError(_too_long(sum(map(len, vectors))))
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


def _shorter(vectors: list[pa.Array], kind: pa.DataType) -> pa.Array | None:
    """Texts with places among the different ones; None where most are different.

    The texts themselves are never put together, and arrow is called few times, for each time it waits for the GIL. What
    hardly repeats in a sample from all over is not tried: a table of all texts would be several times as large.
    """
    looked_at = vectors[:: max(1, len(vectors) // 64)]
    rows = -(-_SAMPLE // max(1, len(looked_at)))
    sample = pa.chunked_array([vector.slice(0, rows) for vector in looked_at], kind)
    if 100 * len(sample.unique()) > 99 * len(sample):
        return None
    texts = pa.chunked_array(vectors, kind)
    encoded = texts.dictionary_encode().unify_dictionaries()
    values = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], kind)
    if 2 * len(values) > len(texts):
        return None
    places = _one([chunk.indices for chunk in encoded.chunks], pa.int32())
    return None if places is None else pa.DictionaryArray.from_arrays(_fitting(places, 0, len(values)), values)


def _one(pieces: list[pa.Array], kind: pa.DataType) -> pa.Array | None:
    """One array of all pieces, None where it would hold more than its offsets reach."""
    try:
        whole = pa.chunked_array(pieces, kind).combine_chunks()
    except pa.ArrowException:
        return None
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return whole.combine_chunks() if whole.num_chunks < 2 else None


def _encoded(pieces: list[pa.Array], kind: pa.DataType) -> Encoded:
    """Numbers of few bits with each value once, found by counting."""
    width = max((piece.type for piece in pieces), key=lambda narrow: narrow.bit_width)
    column = pa.chunked_array([piece.cast(width) for piece in pieces]).combine_chunks()
    if column.null_count:
        encoded = column.dictionary_encode()
        places, values = encoded.indices, encoded.dictionary
    else:
        number = column.to_numpy()
        low = int(number.min())
        place = number.astype(np.int32) - np.int32(low)
        counts = np.zeros(int(place.max()) + 1, dtype=np.int64)
        tally(place, counts)
        places = pa.array(gathered(np.cumsum(counts > 0, dtype=np.int32) - np.int32(1), place))
        values = pa.array((np.flatnonzero(counts) + low).astype(number.dtype))
    return Encoded(pa.DictionaryArray.from_arrays(places, _widened(values, kind)))


def _together(pieces: list[pa.Array], rows: int) -> Encoded:
    each = [pa.DictionaryArray.from_arrays(piece.indices.cast(pa.int32()), piece.dictionary) for piece in pieces]
    try:
        encoded = pa.chunked_array(each).unify_dictionaries().combine_chunks()
    except pa.ArrowException as error:
        raise RequirementError(_too_long(rows)) from error
    return Encoded(encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded)


def _too_long(rows: int) -> str:
    return (
        f"a column of {rows:,} rows holds more than 2 GB of text, which arrow's offsets cannot reach. Work in parts: "
        "duckdb-anon release ... --part-rows 1000000, or duckdb_anon.release(..., part_rows=1000000)"
    )


def _widened(piece: pa.Array, kind: Any) -> pa.Array:
    if pa.types.is_dictionary(piece.type) and not pa.types.is_dictionary(kind):
        return piece.dictionary_decode()
    return piece if piece.type == kind else piece.cast(step_type(kind)).cast(kind)
