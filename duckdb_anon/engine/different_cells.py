"""Cells of groups as those that differ, and which of them each released row shows.

A table has tens of thousands of groups and a column of it some hundred different boxes, where values repeat: so few are
decoded once and stay in the cache when rows look them up.

Cost: a sort of the groups' cells, and a pass over the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.array_ops import gathered
from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.kernels.row_keys import Keys, keys_of, keys_of_lists
from duckdb_anon.model import released_columns as c
from duckdb_anon.model.coded_table import CodeArray, IntArray

FRAMED = (c.Interval, c.ValueSet, c.Node, c.NodeSet)
"""Cells that hold one entry a group and for each row the number of its group."""


def different(cells: Any) -> Any:
    """The same released rows with each different cell once.

    Args:
        cells: one of `FRAMED`.

    >>> boxes = different(c.Interval("age", np.array([3, 0, 3]), np.array([4, 1, 4]), np.array([0, 1, 2, 1])))
    >>> boxes.lower.tolist(), boxes.upper.tolist(), boxes.index.tolist()
    ([0, 3], [1, 4], [1, 0, 1, 0])
    >>> sets = different(c.ValueSet("job", np.array([0, 2, 3, 5]), np.array([1, 4, 2, 1, 4]), np.array([2, 1, 0])))
    >>> sets.offsets.tolist(), sets.codes.tolist(), sets.index.tolist()
    ([0, 1, 3], [2, 1, 4], [1, 0, 1])
    """
    if isinstance(cells, c.Interval):
        keys = keys_of([cells.lower, cells.upper])
        return replace(cells, lower=cells.lower[keys.first], upper=cells.upper[keys.first], index=_of_row(keys, cells))
    if isinstance(cells, c.Node):
        keys = keys_of([cells.node])
        return replace(cells, node=cells.node[keys.first], index=_of_row(keys, cells))
    members = cells.codes if isinstance(cells, c.ValueSet) else cells.nodes
    keys = keys_of_lists(cells.offsets, members)
    offsets, members = _lists(cells.offsets, members, keys.first)
    told = {"codes": members} if isinstance(cells, c.ValueSet) else {"nodes": members}
    return replace(cells, offsets=offsets, index=_of_row(keys, cells), **told)


def _of_row(keys: Keys, cells: Any) -> NDArray[Any]:
    """Which of the different cells each released row shows."""
    return gathered(keys.of_row.astype(np.int32), cells.index)


def _lists(offsets: IntArray, members: CodeArray, which: IntArray) -> tuple[IntArray, CodeArray]:
    """Some of the lists, in the order they are named in."""
    sizes = np.diff(offsets)[which]
    return np.concatenate([[0], np.cumsum(sizes)]), members[ranges(offsets[which], sizes)]
