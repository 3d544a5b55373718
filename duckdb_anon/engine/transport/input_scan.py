"""The rows of a call as DuckDB hands them over, a vector at a time.

Listing a whole table into one value, the obvious way, takes four times its memory (the state of the aggregate, the
list, its copy in arrow, the table itself). Here some megabytes of vectors at a time become pieces of columns, texts
with each value once, and a column is dropped once it is coded.

`open_buffer` gives a statement the number of an empty buffer, `put_rows` adds a vector, `take_buffer` ends it.

Cost: one call of Python for each 2048 rows, a few of arrow for each `_MOST_BYTES` and column.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

_MOST_BYTES = 1 << 24
"""Bytes of vectors that wait before they become pieces."""

Statement = tuple[int, int, int]
"""Number of the database instance, of the connection in it, and of the statement."""
_stored: dict[int, tuple[Statement, Any]] = {}
_lock = threading.RLock()


def put(statement: Statement, value: object) -> int:
    """Store an object for `statement` and return its number; what its connection's earlier ones left is dropped."""
    with _lock:
        for number, (owner, _) in list(_stored.items()):
            if owner[:2] == statement[:2] and owner != statement:
                del _stored[number]
        number = 1 + secrets.randbits(62)  # SQL names an object by its number, which other statements must not guess
        _stored[number] = statement, value
        return number


def get(number: int) -> Any:
    """The object stored under `number`."""
    with _lock:
        return _stored[number][1]


def pop(number: int) -> Any:
    """Remove the object stored under `number` and return it."""
    with _lock:
        return _stored.pop(number)[1]


@dataclass
class InputTable:
    """Rows put so far."""

    rows: int = 0  # how many were put
    type: pa.StructType = field(default_factory=lambda: pa.struct([]))  # the columns, once all rows are there
    # of each column, the same rows in the same place of every list
    pieces: dict[str, list[pa.Array]] = field(default_factory=dict)
    waiting: list[pa.StructArray] = field(default_factory=list)  # vectors that are in no piece yet
    size: int = 0  # their bytes
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """Rows put so far."""
        return self.rows

    def put(self, rows: pa.StructArray) -> None:
        """Add the rows of one vector; several threads may."""
        with self.lock:
            self.waiting.append(rows)
            self.size += rows.nbytes
            self.rows += len(rows)
            if self.size >= _MOST_BYTES:
                self.put_together()

    def put_together(self) -> None:
        """Make pieces of the vectors that wait."""
        vectors, self.waiting, self.size = self.waiting, [], 0
        for k, column in enumerate(vectors[0].type if vectors else ()):
            piece = _piece([rows.field(k) for rows in vectors], column.type)
            self.pieces.setdefault(column.name, []).append(piece)

    def field(self, name: str) -> pa.Array:
        """One column, texts with each value once. It is handed over: the table has it no more."""
        tick()
        pieces = self.pieces.pop(name, [])
        kind = pieces[0].type if pieces else self.type.field(name).type
        try:
            return pa.chunked_array(pieces, kind).unify_dictionaries().combine_chunks()
        except pa.ArrowException as error:
            raise RequirementError(
                f"a column of {self.rows:,} rows holds more than 2 GB of text, which arrow's offsets cannot reach. "
                "Work in parts: duckdb-anon release ... --part-rows 1000000, or duckdb_anon.release(..., "
                "part_rows=1000000)"
            ) from error


def open_buffer(statement: Statement) -> int:
    """Open a buffer for a call of `statement`; return its number."""
    return put(statement, InputTable())


def put_rows(buffered: pa.StructArray) -> pa.Array:
    """Add rows to the buffer they name; a one for each row, of which a query makes a number of rows."""
    get(buffered.field("buffer")[0].as_py()).put(buffered.field("row"))
    return pa.array(np.ones(len(buffered), dtype=np.int64))


def take_buffer(number: int, kind: pa.StructType) -> InputTable:
    """The table in buffer `number`, which ends; `kind` has its columns."""
    table: InputTable = pop(number)
    table.put_together()
    table.type = kind
    return table


def _piece(vectors: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """One array of all vectors."""
    if pa.types.is_dictionary(kind):
        # every vector brings a copy of the names of an enum; one is enough
        vectors = [pa.DictionaryArray.from_arrays(vector.indices, vectors[0].dictionary) for vector in vectors]
    column = pa.chunked_array(vectors, kind)
    if pa.types.is_string(kind):
        column = column.dictionary_encode()
    return column.combine_chunks()
