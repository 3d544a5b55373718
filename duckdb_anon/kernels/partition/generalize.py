"""The published value of each group on an attribute: the tightest box around its rows.

Ordered attributes give intervals, nominal ones the set of values that occur, hierarchies the lowest common ancestor.
Their width is the normalized certainty penalty (Xu et al. 2006): 0 for a single value; share of the range for ordered
attributes, of the leaves below the lowest common ancestor for hierarchies, of the domain for sets of nominal values; 1
where NULL (or NaN, infinity) is mixed with values. Cost: one pass over the rows an attribute; a sort for each nominal
one where groups and values are many.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.partition.sort_count import count_cells, offsets_of
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.released_columns import Interval, Node, ValueSet


def boxes(
    attributes: Iterable[Attribute], group_of_row: IntArray, index: IntArray | None = None
) -> dict[str, Interval | ValueSet | Node]:
    """Return the tight box of every group on each attribute.

    `index`: group of each released row; `group_of_row` if None. Returns: by name of attribute: `Interval` for ordered
    ones (lower = upper = -1 where NULL, NaN or infinity meets values), `ValueSet` for nominal ones, `Node` for
    hierarchies.

    >>> age = Attribute('age', 'ordered', np.array([2, 0, 1], dtype=np.int32), np.arange(3.0), 3, -1, np.arange(3))
    >>> box = boxes([age], np.array([0, 1, 0]))['age']
    >>> box.lower.tolist(), box.upper.tolist()
    ([1, 0], [2, 0])
    """
    groups = int(group_of_row.max(initial=-1)) + 1
    index = group_of_row if index is None else index
    attributes = list(attributes)
    each = parallel_map(lambda attribute: _box(attribute, group_of_row, groups, index), attributes)
    return {attribute.name: box for attribute, box in zip(attributes, each, strict=True)}


def _box(attribute: Attribute, group_of_row: IntArray, groups: int, index: IntArray) -> Interval | ValueSet | Node:
    if attribute.kind == "nominal":
        group, code, _ = count_cells(group_of_row, attribute.codes, groups, attribute.domain)
        return ValueSet(attribute.name, offsets_of(group, groups), code.astype(np.int32), index)
    if attribute.hierarchy is not None:
        low, high = _extremes(group_of_row, attribute.place_of_code[attribute.codes], groups)
        node, _ = attribute.hierarchy.common(low, high)
        return Node(attribute.hierarchy.labels, node.astype(np.int32), index)
    return interval(attribute, *_extremes(group_of_row, attribute.codes, groups), index)


def _extremes(group_of_row: IntArray, codes: CodeArray, groups: int) -> tuple[CodeArray, CodeArray]:
    """Smallest and largest code of each group, every group occupied, shape (groups,)."""
    low = np.full(groups, np.iinfo(codes.dtype).max, dtype=codes.dtype)
    high = np.full(groups, -1, dtype=codes.dtype)
    _widen(group_of_row, codes, low, high)
    return low, high


@compiled
def _widen(group_of_row: IntArray, codes: CodeArray, low: CodeArray, high: CodeArray) -> None:
    for i in range(len(codes)):
        group, code = group_of_row[i], codes[i]
        low[group] = min(low[group], code)
        high[group] = max(high[group], code)


def interval(attribute: Attribute, low: NDArray[Any], high: NDArray[Any], index: IntArray) -> Interval:
    """Cells of the intervals between two codes, ends inside.

    `high`: largest code of each group; where NULL, NaN or an infinity meets values, the cell covers everything.
    """
    mixed = attribute.mixed(low, high)
    lower, upper = np.where(mixed, -1, low), np.where(mixed, -1, high)
    return Interval(attribute.name, lower.astype(np.int32), upper.astype(np.int32), index)


def range_width(attribute: Attribute, low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
    """Return the share of the range covered by codes (leaves where there is a tree) low .. high."""
    if attribute.hierarchy is not None:
        return attribute.hierarchy.share(low, high)
    wide = attribute.positions[high] - attribute.positions[low]
    share = wide / attribute.span if attribute.span > 0 else np.zeros(len(low))
    mixed = attribute.mixed(low, high)
    result: FloatArray = np.where(mixed, 1.0, share)
    return result


def set_width(attribute: Attribute, values: NDArray[Any]) -> FloatArray:
    """Return the share of the domain covered by sets of that many nominal values, 0 for one value.

    >>> import types
    >>> set_width(types.SimpleNamespace(domain=4), np.array([1, 2, 4])).tolist()
    [0.0, 0.5, 1.0]
    """
    share: FloatArray = np.where(values > 1, values / max(1, attribute.domain), 0.0)
    return share
