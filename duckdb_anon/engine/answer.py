"""A kernel's answer beside its rows: lists by type, as arrow hands them to DuckDB in one struct.

Cost: a copy of the lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.memory_estimate import MOST_ROWS
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import RequirementError

Array = np.ndarray[Any, Any]
RETURN_TYPE = "STRUCT(error VARCHAR, n BIGINT, rows BIGINT, i BIGINT[][], d DOUBLE[][], s VARCHAR[][], l INTEGER[][][])"
_INTS = pa.list_(pa.list_(pa.int64()))
ARROW = pa.struct(
    [
        ("error", pa.string()),
        ("n", pa.int64()),
        ("rows", pa.int64()),
        ("i", _INTS),
        ("d", pa.list_(pa.list_(pa.float64()))),
        ("s", pa.list_(pa.list_(pa.string()))),
        ("l", pa.list_(pa.list_(pa.list_(pa.int32())))),
    ]
)
LIST_OF = {
    "CODE": "i",
    "BIGINT": "i",
    "INTEGER": "i",
    "BOOLEAN": "i",
    "DOUBLE": "d",
    "DOUBLE OR NULL": "d",
    "VARCHAR": "s",
}


@dataclass
class AnswerLists:
    """The kernel's answer before it becomes arrow: lists by type, in the order they were asked for."""

    i: list[Array] = field(default_factory=list)
    d: list[Array] = field(default_factory=list)
    s: list[Sequence[str | None]] = field(default_factory=list)
    l: list[tuple[Array, Array]] = field(default_factory=list)  # noqa: E741  (named as in the SQL it becomes)


def answer(function: str, count: int, lists: AnswerLists, rows: int = 0) -> pa.Array:
    """One-element struct array of an answer.

    Args:
        function: SQL function, for messages.
        count: rows of the answer.
        lists: everything in it that is no cell of a row.
        rows: number under which its rows are held, 0 where there is nothing to draw off.

    Raises:
        RequirementError: there are more entries than a list can have.
    """
    most = max(sum(len(a) for a in lists.i), sum(len(a) for a in lists.d), *(len(v) for _, v in lists.l), 0)
    if most > MOST_ROWS:
        raise RequirementError(
            f"{function}: the answer has {most:,} entries and DuckDB's lists hold {MOST_ROWS:,}; work in parts "
            "(duckdb-anon release ... --part-rows 1000000, or duckdb_anon.release(..., part_rows=1000000)), or name "
            "fewer columns"
        )
    ints = _nested([np.asarray(a) for a in lists.i], pa.int64())
    reals = _nested([np.asarray(a) for a in lists.d], pa.float64())
    texts = _texts(lists.s)
    inner = [_list_array(offsets, np.asarray(values, np.int32), pa.int32()) for offsets, values in lists.l]
    middle = pa.concat_arrays(inner) if inner else pa.array([], type=pa.list_(pa.int32()))
    sizes = np.cumsum([0] + [len(a) for a in inner])
    nested = pa.ListArray.from_arrays(pa.array(sizes, pa.int32()), middle)
    lists_of_lists = pa.ListArray.from_arrays(pa.array([0, len(nested)], pa.int32()), nested)
    return pa.StructArray.from_arrays(
        [
            pa.array([None], pa.string()),
            *(pa.array([n], pa.int64()) for n in (count, rows)),
            ints,
            reals,
            texts,
            lists_of_lists,
        ],
        fields=list(ARROW),
    )


def _nested(arrays: list[np.ndarray[Any, Any]], kind: pa.DataType) -> pa.Array:
    flat = np.concatenate(arrays) if arrays else np.zeros(0)
    offsets = np.cumsum([0] + [len(a) for a in arrays])
    inner = _list_array(offsets, flat, kind)
    return pa.ListArray.from_arrays(pa.array([0, len(arrays)], pa.int32()), inner)


def _texts(sequences: Sequence[Sequence[str | None]]) -> pa.Array:
    flat = [pa.array(texts, pa.string()) for texts in sequences]
    offsets = np.cumsum([0] + [len(a) for a in flat])
    values = pa.concat_arrays(flat) if flat else pa.array([], pa.string())
    inner = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), inner)


def _list_array(offsets: IntArray, flat: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat, kind))
