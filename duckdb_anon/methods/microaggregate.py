"""Microaggregation: every group of at least k similar records is published with its mean values.

Quasi-identifiers become the mean of the record's group, in the column's own type, or its most frequent value where
values have no order; other columns are unchanged. Guarantee: k-anonymity of the published quasi-identifiers. It does
not protect against attribute disclosure (see l of mondrian, muco).

Source: Domingo-Ferrer and Mateo-Sanz (2002); MDAV: Domingo-Ferrer and Torra (2005). Departures: `groups := 'sse'` cuts
top down where the squared error falls most, in a time nearly linear in the records where MDAV's is quadratic; both
measure distance on the same scaled features (`kernels.partition`). A mean is that of the finite values, and NULL where
a group has none. Cost: O(n log n) for 'sse', O(n^2 / k) for 'mdav', times the quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_with_arrays
from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.partition.sort_count import most_frequent
from duckdb_anon.methods.partition_params import plain_layout, unchanged
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import Cells, Coded, Value

Array = NDArray[Any]


# MDAV: groups of k rows around the rows farthest from the middle. While 3k rows or more are left: the row farthest from
# the mean of those left and its k - 1 nearest form a group, then the row farthest from that one and its k - 1 nearest.
# Of 2k rows or more that remain, one more group is formed around the row farthest from their mean; the others are the
# last group. So groups have k to 2k - 1 rows. Distances are Euclidean on scaled features (`features`); of equally far
# rows the first in the table counts. Source: Domingo-Ferrer and Torra (2005), Data Mining and Knowledge Discovery 11,
# algorithm MDAV-generic. Cost: O(n^2 / k) times the features of a row.
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


NAME = "microaggregate"


def groups_of(table: CodedTable, params: Params) -> IntArray:
    """Group of each row."""
    if params["groups"] == "mdav":
        return mdav_groups(NAME, table.qi, params["k"], tick)
    return partition(table.qi, None, KAnonymity(params["k"]), tick=tick, cut="sse", function=NAME)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Group the rows and publish each group's means and modes."""
    progress.say("groups")
    group = groups_of(table, params)
    if np.bincount(group).min() < params["k"]:
        raise RequirementError(
            f"{NAME}: a finished group is too small; nothing is released. This is an error of the package, not of "
            "the call"
        )
    published: dict[str, Cells] = {
        a.name: means(a, group) if a.kind == "ordered" else modes(a, group) for a in table.qi
    }
    return published | unchanged(table)


def means(attribute: Attribute, group: IntArray) -> Value:
    """Mean of the finite values of each group, NULL where there is none."""
    numbers = attribute.scale_for(NAME).numbers
    many = int(group.max(initial=-1)) + 1
    finite = attribute.codes < attribute.special_from
    inside, codes = group[finite], attribute.codes[finite]
    count = np.bincount(inside, minlength=many)
    # differences from the middle value are small, so that their sums lose nothing
    middle = numbers[len(numbers) // 2] if len(numbers) else np.int64(0)
    total = np.bincount(inside, weights=(numbers[codes] - middle).astype(np.float64), minlength=many)
    mean = total / np.maximum(count, 1)
    exact = mean + middle if attribute.scale_for(NAME).line == "real" else np.rint(mean).astype(np.int64) + middle
    return Value(attribute.name, exact, np.where(count[group] > 0, group, -1))


def modes(attribute: Attribute, group: IntArray) -> Coded:
    """Most frequent value of each group, of equally frequent ones the first."""
    return Coded(attribute.name, most_frequent(group, attribute.codes, max(1, attribute.domain))[group])


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type: quasi-identifiers, sensitive, insensitive."""
    qi = tuple(ColumnPlan(i.name, Value if i.kind == "ordered" else Coded) for i in roles.qi)
    return qi + plain_layout(replace(roles, qi=()), params)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Groups of at least k rows, cut by squared error; MDAV works on parts as small as its time allows."""
    return Cutting("cut", KAnonymity(params["k"]), most=20_000 if params["groups"] == "mdav" else None)


METHOD = Method(
    name=NAME,
    summary="groups of k similar rows published with their means and modes; release has the original's types",
    paper="Domingo-Ferrer, J., Mateo-Sanz, J. M. (2002), Practical data-oriented microaggregation; MDAV (2005)",
    example="CREATE TABLE means AS FROM microaggregate('people', 5, row_id := true)",
    smallest="k := 2",
    trials=("k := 1", "k := 3", "k := 5", "k := 3, groups := 'mdav'"),
    formats=("rows",),
    instead=("mondrian", "muco"),
    parameters=(
        Parameter("k", "minimum number of records per group; 1 or more", "integer", REQUIRED, low=1),
        Parameter(
            "groups", "'sse': groups cut top down by squared error; 'mdav': nearest records around the farthest "
"ones, quadratic time",
            "text", "sse", ("sse", "mdav"),
        ),
    ),
    layout=layout,
    release=release,
    moves_values=True,
    groups=groups_of,
    sweeps=(Sweep("k := {n}", (5, 10, 25)),),
    parts=parts,
    finished=("rows", "classes"),
)  # fmt: skip
