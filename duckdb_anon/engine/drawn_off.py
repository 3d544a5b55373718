"""The released rows as DuckDB draws them off: a piece at a time, out of the arrays that the kernel left.

Answered as lists, the obvious way, each cell would be held five times over in eight bytes (the list, its copies in
arrow and in two materialized CTEs, the unnested vectors), and a release could not have more than 2^31 cells. Here codes
stay in the four bytes they are made in, columns are put in their released order side by side, and SQL unnests lists of
`PIECE` rows, for each of which arrow and DuckDB hand the numbers on as they lie.

Cost: a gather of each column; a call of Python for each 2048 pieces.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.engine import held
from duckdb_anon.engine.memory import give_back
from duckdb_anon.kernels.threads import side_by_side
from duckdb_anon.model.progress import tick
from duckdb_anon.model.table import CodeArray, FloatArray, IntArray

TOGETHER = 8
"""Code columns that one call of SQL draws off."""

PIECE = 1 << 16
"""Rows of the lists that are drawn off."""

CODES, WHOLE, REAL = "_anon_codes", "_anon_wholes", "_anon_reals"
_LISTS = ", ".join(f"c{k} INTEGER[]" for k in range(TOGETHER))
TYPES = {CODES: f"STRUCT({_LISTS})", WHOLE: "BIGINT[]", REAL: "DOUBLE[]"}
_NAMES = [f"c{k}" for k in range(TOGETHER)]


@dataclass
class ReleasedRows:
    """Columns with one entry a row of the kernel, and the order in which its rows are released.

    Attributes:
        order: which of the kernel's rows is released first, second, ..., shape (rows,).
        codes: columns of codes, group numbers and row numbers below 2^31, each of shape (kernel rows,), and of shape
            (rows,) once they are held.
        wholes: columns of whole numbers.
        reals: columns of real numbers.
    """

    order: IntArray
    codes: list[CodeArray] = field(default_factory=list)
    wholes: list[IntArray] = field(default_factory=list)
    reals: list[FloatArray] = field(default_factory=list)
    left: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def held_for(self, statement: held.Statement) -> int:
        """Hold the rows, in their order, for a statement until each of them was drawn off; return their number."""
        order: NDArray[Any] = self.order.astype(np.int32) if len(self.order) < 2**31 else self.order
        columns: list[tuple[list[Any], int]] = [
            (column, k) for column in (self.codes, self.wholes, self.reals) for k in range(len(column))
        ]
        side_by_side(lambda place: _put_in_order(*place, order), columns)
        calls = -(-len(self.codes) // TOGETHER) + len(self.wholes) + len(self.reals)
        self.left = calls * len(self.order)
        return held.hold(statement, self) if self.left else 0


def _put_in_order(columns: list[Any], place: int, order: NDArray[Any]) -> None:
    tick()
    columns[place] = columns[place][order]


Pieces = tuple[pa.Array, Sequence[tuple[int, int]]]
"""Offsets of some lists, and the spans of rows they hold, end to end."""


def _lists(pieces: Pieces, column: NDArray[Any], kind: pa.DataType) -> pa.Array:
    offsets, spans = pieces
    taken = [column[low:high] for low, high in spans]
    return pa.ListArray.from_arrays(offsets, pa.array(taken[0] if len(taken) == 1 else np.concatenate(taken), kind))


def _codes(rows: ReleasedRows, first: int, pieces: Pieces) -> pa.Array:
    columns = [_lists(pieces, codes, pa.int32()) for codes in rows.codes[first : first + TOGETHER]]
    columns += [pa.nulls(len(pieces[0]) - 1, pa.list_(pa.int32()))] * (TOGETHER - len(columns))
    return pa.StructArray.from_arrays(columns, _NAMES)


def _wholes(rows: ReleasedRows, first: int, pieces: Pieces) -> pa.Array:
    return _lists(pieces, rows.wholes[first], pa.int64())


def _reals(rows: ReleasedRows, first: int, pieces: Pieces) -> pa.Array:
    return _lists(pieces, rows.reals[first], pa.float64())


def _pieces(starts: IntArray, count: int) -> Pieces:
    """Lists of the rows from each of some places on; pieces that follow one another are one span."""
    ends = np.minimum(starts + PIECE, count)
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    spans = zip(starts[np.append(0, breaks)].tolist(), ends[np.append(breaks, len(ends)) - 1].tolist(), strict=True)
    return pa.array(np.append(0, np.cumsum(ends - starts)), pa.int32()), list(spans)


def drawing(function: str) -> Callable[[pa.StructArray], pa.Array]:
    """What a SQL function of `TYPES` does with a vector of {rows: number, first: column, row: first of a piece}.

    Args:
        function: name of the SQL function.
    """
    draw = {CODES: _codes, WHOLE: _wholes, REAL: _reals}[function]

    def drawn(call: pa.StructArray) -> pa.Array:
        number, first = call.field("rows")[0].as_py(), call.field("first")[0].as_py()
        rows = held.held(number)
        pieces = _pieces(call.field("row").to_numpy(zero_copy_only=False), len(rows.order))
        told = draw(rows, first, pieces)
        with rows.lock:
            rows.left -= sum(high - low for low, high in pieces[1])
            done = rows.left == 0
        if done:
            held.released(number)
            del rows
            give_back()
        return told

    return drawn
