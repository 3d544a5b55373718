"""The released rows as DuckDB draws them off: some at a time, out of the arrays that the kernel left.

Answered as lists, the obvious way, each cell would be held five times over in eight bytes (the list, its copies in
arrow and in two materialized CTEs, the unnested vectors), and a release could not have more than 2^31 cells. Here codes
stay in the four bytes they are made in, and no more than `RUN` times a vector's rows are in a list at once. They are
put in their released order before, whole columns side by side on all threads, for DuckDB asks on one.

Cost: a call of Python for each 524,288 rows of a column: a call costs as much as two thousand rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from duckdb_anon.engine import held
from duckdb_anon.engine.arrow import give_back
from duckdb_anon.kernels.array_ops import gathered
from duckdb_anon.kernels.partition.sort_count import order_by
from duckdb_anon.kernels.thread_pool import side_by_side
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import Cells, Whole

Column = TypeVar("Column", CodeArray, IntArray, FloatArray)

RUN = 256
"""Rows that DuckDB draws off as one list; it asks for the lists of a vector, 2048 of them, together."""

CODES, WHOLE, REAL = "_anon_codes", "_anon_wholes", "_anon_reals"
TYPES = {CODES: "INTEGER[]", WHOLE: "BIGINT[]", REAL: "DOUBLE[]"}
_ARROW = {CODES: pa.int32(), WHOLE: pa.int64(), REAL: pa.float64()}


@dataclass
class ReleasedRows:
    """Columns with one entry a row of the kernel, and the order in which its rows are released.

    Attributes:
        order: which of the kernel's rows is released first, second, ..., shape (rows,).
        codes: columns of codes, group numbers and row numbers below 2^31, each of shape (kernel rows,).
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
        """Put the rows in order and hold them for a statement until each was drawn off; return their number."""
        order = self.order.astype(np.int32) if len(self.order) < 2**31 else self.order
        self.order = self.order[:0]
        self.codes, self.wholes = _in_order(self.codes, order), _in_order(self.wholes, order)
        self.reals = _in_order(self.reals, order)
        self.left = (len(self.codes) + len(self.wholes) + len(self.reals)) * len(order)
        return held.hold(statement, self) if self.left else 0


def in_buckets(order: IntArray, cells: Mapping[str, Cells]) -> IntArray:
    """An order in which the rows of a bucket stand together, buckets by their numbers, and rows of one as they came.

    The numbers stand beside the rows, so this order tells no more than they do. Rows are grouped by bucket in half the
    time so, and the first buckets are found without reading the others.

    Args:
        order: rows in random order.
        cells: what is released of them.
    """
    bucket = cells.get(BUCKET.key)
    if not isinstance(bucket, Whole):
        return order
    return order[order_by(bucket.values[order])]


def _in_order(columns: list[Column], order: IntArray | CodeArray) -> list[Column]:
    return side_by_side(lambda column: gathered(column, order), columns)


def drawing(function: str) -> Callable[[pa.StructArray], pa.Array]:
    """What a SQL function of `TYPES` does with {rows: number, place: of a column, row: first of a run}: lists of runs.

    Args:
        function: name of the SQL function.
    """

    def drawn(call: pa.StructArray) -> pa.ListArray:
        number, place = call.field("rows")[0].as_py(), call.field("place")[0].as_py()
        rows = held.held(number)
        column = {CODES: rows.codes, WHOLE: rows.wholes, REAL: rows.reals}[function][place]
        first = call.field("row").to_numpy(zero_copy_only=False)
        last = np.minimum(first + RUN, len(column))
        offsets = np.concatenate([[0], np.cumsum(last - first)])
        if (first[1:] == last[:-1]).all():
            cells = column[first[0] : last[-1]]
        else:
            cells = np.concatenate([column[a:b] for a, b in zip(first, last, strict=True)])
        with rows.lock:
            rows.left -= len(cells)
            done = rows.left == 0
        if done:
            held.released(number)
            del rows
            give_back()
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(cells, _ARROW[function]))

    return drawn
