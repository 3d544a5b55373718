"""MDAV: groups of k rows around the rows farthest from the middle.

While 3k rows or more are left: the row farthest from the mean of those left and its k - 1 nearest form a group, then
the row farthest from that one and its k - 1 nearest. Of 2k rows or more that remain, one more group is formed
around the row farthest from their mean; the others are the last group. So groups have k to 2k - 1 rows. Distances are
Euclidean on scaled features (`features`); of equally far rows the first in the table counts.

Source: Domingo-Ferrer and Torra (2005), Data Mining and Knowledge Discovery 11, algorithm MDAV-generic.
Cost: O(n^2 / k) times the features of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_with_arrays
from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.errors import RequirementError

Array = NDArray[Any]


def mdav_groups(
    function: str, attributes: Sequence[Attribute], k: int, tick: Callable[[], None] | None = None
) -> IntArray:
    """Group rows.

    Args:
        attributes: at least one, n codes each.
        k: fewest rows of a group, 1 or more.

    Returns:
        Group of each row, numbered from 0, shape (n,).

    Raises:
        RequirementError: there are fewer than k rows.

    >>> age = Attribute("age", "ordered", np.array([0, 3, 1, 2], np.int32), np.arange(4.0), 4, -1, np.arange(4))
    >>> mdav_groups("mdav", [age], 2).tolist()
    [0, 1, 0, 1]
    """
    rows = len(attributes[0].codes)
    if rows < k:
        raise RequirementError(f"{function}: k = {k} was requested; the largest k this table can meet is {rows}")
    scaled = features_of(attributes)
    feature = np.zeros((rows, scaled.most), dtype=np.int64)
    value = np.zeros((rows, scaled.most))
    width = np.zeros(rows, dtype=np.int64)
    for a, attribute in enumerate(attributes):
        code = attribute.codes + scaled.first_code[a]
        for e in range(int(np.diff(scaled.start)[code].max(initial=0))):
            has = np.flatnonzero(scaled.start[code] + e < scaled.start[code + 1])
            entry = scaled.start[code[has]] + e
            feature[has, width[has]] = scaled.feature[entry]
            value[has, width[has]] = scaled.value[entry]
            width[has] += 1
    left = np.arange(rows)
    group = np.full(rows, -1, dtype=np.int64)
    groups = 0
    while len(left):
        if tick is not None:
            tick()
        progress.say("groups", 1 - len(left) / rows)
        if len(left) < 2 * k:
            group[left] = groups
            break
        mean = np.bincount(feature[left].ravel(), value[left].ravel(), scaled.count) / len(left)
        taken = _farthest_group(feature, value, left, mean, k)
        first = left[taken[0]]
        group[left[taken]] = groups
        left, groups = np.delete(left, taken), groups + 1
        if len(left) >= 2 * k:
            around = np.bincount(feature[first], value[first], scaled.count)
            taken = _farthest_group(feature, value, left, around, k)
            group[left[taken]] = groups
            left, groups = np.delete(left, taken), groups + 1
    return group


@compiled_with_arrays
def _farthest_group(feature: Array, value: Array, left: Array, point: Array, k: int) -> Array:
    """Places in `left` of the row farthest from a point and, after it, of its k - 1 nearest rows."""
    taken = np.empty(k, dtype=np.int64)
    most = feature.shape[1]
    far, best = -1.0, 0
    norm = 0.0
    for f in range(len(point)):
        norm += point[f] * point[f]
    for i in range(len(left)):
        # |z - c|^2 = |c|^2 + sum over the entries of z of v (v - 2 c)
        distance = norm
        for e in range(most):
            v = value[left[i], e]
            distance += v * (v - 2 * point[feature[left[i], e]])
        if distance > far + 1e-12:
            far, best = distance, i
    taken[0] = best
    centre = np.zeros(len(point))
    norm = 0.0
    for e in range(most):
        centre[feature[left[best], e]] += value[left[best], e]
        norm += value[left[best], e] ** 2
    near = np.empty(k)
    found = 1
    for i in range(len(left)):
        if i == best:
            continue
        distance = norm
        for e in range(most):
            v = value[left[i], e]
            distance += v * (v - 2 * centre[feature[left[i], e]])
        if found < k or (k > 1 and distance < near[k - 1] - 1e-12):
            index = found if found < k else k - 1
            while index > 1 and near[index - 1] > distance + 1e-12:
                near[index] = near[index - 1]
                taken[index] = taken[index - 1]
                index -= 1
            near[index] = distance
            taken[index] = i
            found = min(k, found + 1)
    return taken
