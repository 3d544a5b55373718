"""Functions that estimates call: shares of values inside generalized cells, learnt from all cells of a column.

learnt_ranges(cells), learnt_segments(cells)   of whole and of other numbers, a list of {low, high, size}
learnt_members(cells), learnt_leaves(cells)    of sets and of nodes, a list of {cell, value, prior, size}

They give lists of segments {first_value, last_value, density} or of members {value, share}; NULL where nothing is
learnt, so that records are spread evenly. What is learnt is kept for further queries of the process, by the cells. More
than `MOST` distinct ends are put together to fewer segments; of more than `MOST` distinct values nothing is learnt.
Source: expectation maximisation, Dempster, Laird and Rubin (1977); see `duckdb_anon.kernels.cells.learn`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType

from duckdb_anon.kernels.cells.cells import Lists
from duckdb_anon.kernels.cells.learn import NODE_ROUNDS, SET_ROUNDS, learnt_density, member_shares
from duckdb_anon.kernels.cells.line import Line

MOST, PUT_TOGETHER = 5000, 1000
"""Distinct ends or values of a column whose shares are learnt one by one, and segments that more ends are put in."""
_MOST_KEPT = 200
_kept: dict[bytes, Any] = {}
Columns = Mapping[str, pa.Array]
Learn = Callable[[Columns], Any]


def segments(cells: Columns) -> Sequence[tuple[float, float, float]]:
    """Segments of an ordered column, each with the share of records per unit; none where nothing is learnt.

    Args:
        cells: lower and upper ends of intervals, whole numbers of 64 bits or float64, and their numbers of records.
    """
    lower, upper, size = (cells[name].to_numpy(zero_copy_only=False) for name in ("low", "high", "size"))
    discrete = int(lower.dtype == np.int64)
    starts, density = learnt_density(lower, upper, np.maximum(size.astype(np.float64), 0), discrete)
    if len(density) > MOST:
        mass = np.append(0.0, np.cumsum(density * np.diff(starts)))
        which = np.linspace(0, len(density), PUT_TOGETHER + 1).astype(np.int64)
        starts, density = starts[which], np.diff(mass[which]) / np.diff(starts[which])
    if len(density) < 2:  # one segment is spread evenly
        return ()
    ends = starts[1:] - discrete
    found = zip(starts[:-1].tolist(), ends.tolist(), density.tolist(), strict=True)
    return [(first, last, share) for first, last, share in found if share > 0]


def members(cells: Columns, rounds: int) -> Sequence[tuple[str | None, float]]:
    """Values of a column that lists them, as texts, each with its share; none where nothing is learnt.

    Args:
        cells: one row a member: the number of its cell, the value, its share of the cell when spread evenly, and the
            number of records of the cell; in the order of cells.
        rounds: how often shares are improved.
    """
    encoded = cells["value"].dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy().astype(np.int64)
    if not 1 < len(encoded.dictionary) <= MOST:
        return ()
    number, prior, size = (cells[name].to_numpy(zero_copy_only=False) for name in ("cell", "prior", "size"))
    _, first = np.unique(number, return_index=True)
    offsets = np.append(first, len(codes)).astype(np.int64)
    prior = prior.astype(np.float64) if rounds == NODE_ROUNDS else np.ones(len(codes))
    line = Line.of_widths(np.ones(len(encoded.dictionary)))
    lists = Lists(line, codes, codes, offsets=offsets, weight=prior)
    shares = member_shares(lists, size[first].astype(np.float64), rounds)
    return list(zip(encoded.dictionary.to_pylist(), shares.tolist(), strict=True))


def _learnt(learn: Learn, order: Sequence[str], kind: pa.DataType, *arguments: pa.ChunkedArray) -> pa.Array:
    """What is learnt from the list in each row of the first argument."""
    names = [field.name for field in kind.value_type]
    found = []
    for cells in arguments[0] if arguments else ():
        columns = _columns(cells, order)
        rows = None if columns is None else _once(learn, columns)
        found.append([dict(zip(names, row, strict=True)) for row in rows] if rows else None)
    return pa.array(found, kind)


def _columns(cells: pa.Scalar, order: Sequence[str]) -> Columns | None:
    """The fields of a list of cells, in order; None where there are other ones or NULL among their numbers."""
    fields = {"cell", "value", "prior", "size"} if "cell" in order else {"low", "high", "size"}
    if not cells.is_valid or not pa.types.is_list(cells.type) or not pa.types.is_struct(cells.type.value_type):
        return None
    listed = cells.values
    if {field.name for field in listed.type} != fields or len(listed) == 0:
        return None
    table = pa.table({field.name: listed.field(field.name) for field in listed.type})
    table = table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in order]))
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    numbers = [array for name, array in columns.items() if name != "value"]
    known = all((pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) for array in numbers)
    return columns if known and not any(array.null_count for array in numbers) else None


def _once(learn: Learn, columns: Columns) -> Any:
    """What is learnt from columns, now or before."""
    text = repr([(name, str(array.type)) for name, array in columns.items()]).encode()
    digest = blake2b(repr(learn).encode() + text, digest_size=16)
    for array in columns.values():
        for buffer in pa.concat_arrays([array]).buffers():
            digest.update(b"" if buffer is None else memoryview(buffer))
    key = digest.digest()
    if key not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = learn(columns)
    return _kept[key]


def _segments_of(number: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("first_value", number), ("last_value", number), ("density", pa.float64())]))


_MEMBERS = pa.list_(pa.struct([("value", pa.string()), ("share", pa.float64())]))
_ENDS, _CELLS = ("low", "high", "size"), ("cell", "value")
FUNCTIONS: tuple[tuple[str, Callable[..., pa.Array], str, bool], ...] = (
    ("learnt_ranges", partial(_learnt, segments, _ENDS, _segments_of(pa.int64())),
     "STRUCT(first_value BIGINT, last_value BIGINT, density DOUBLE)[]", False),
    ("learnt_segments", partial(_learnt, segments, _ENDS, _segments_of(pa.float64())),
     "STRUCT(first_value DOUBLE, last_value DOUBLE, density DOUBLE)[]", False),
    ("learnt_members", partial(_learnt, partial(members, rounds=SET_ROUNDS), _CELLS, _MEMBERS),
     "STRUCT(value VARCHAR, share DOUBLE)[]", False),
    ("learnt_leaves", partial(_learnt, partial(members, rounds=NODE_ROUNDS), _CELLS, _MEMBERS),
     "STRUCT(value VARCHAR, share DOUBLE)[]", False),
)  # fmt: skip
"""Names, functions, types of their results, and that they have no side effects."""


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Let a connection of the package's own call them."""
    for name, function, kind, acts in FUNCTIONS:
        con.create_function(
            name, function, None, kind, type=PythonUDFType.ARROW, null_handling=FunctionNullHandling.SPECIAL,
            side_effects=acts,
        )  # fmt: skip
