"""MuCo's last step: no record is released with all of its quasi-identifiers unchanged.

Every record that drew fewer than `min_changed` new values gets more. As in Li et al. (2020), Algorithm 2, an attribute
is picked with probability in proportion to its spread in the group relative to the table's, and its value redrawn; the
paper leaves the draw open, here it is the value of a random record of the group that has another one. Records of a
group that is constant on too many attributes, for which the paper's loop never ends, move to the nearest other value of
the table where that step is relatively smallest.

Guarantee, checked: at least `min_changed` attributes of every record differ from the original. Values of these steps
are not drawn from the tables, so delta may be exceeded slightly. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.random_output_tables.lp_grouping import Classes, pair_distance
from duckdb_anon.kernels.random_output_tables.output_tables import MutualCover
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick

Codes = NDArray[np.int32]


def randomize_unchanged(
    covers: Sequence[MutualCover],
    drawn: Sequence[CodeArray],
    min_changed: float,
    rng: np.random.Generator,
) -> tuple[list[CodeArray], int]:
    """Change records until each differs from its original on at least `min_changed` attributes.

    Args:
        covers: the tables the values were drawn from, one per quasi-identifier, all with the same groups.
        drawn: drawn codes of each of them, n rows each.
        min_changed: attributes that must differ, 0 .. number of quasi-identifiers; a fraction on top requires
            one more of that share of the records, drawn at random.

    Returns:
        The new codes, and how many records were stuck.

    Raises:
        RequirementError: fewer than `min_changed` attributes have two values in the table.
    """
    if not covers or min_changed <= 0:
        return [codes.copy() for codes in drawn], 0
    attributes = [c.attribute for c in covers]
    require_movable(attributes, min_changed)
    by_group = covers[0].classes
    required = np.full(len(drawn[0]), int(min_changed))
    required[by_group.rows] += rng.random(len(required)) < min_changed % 1
    codes = np.stack(drawn)
    original = np.stack([a.codes for a in attributes])
    spread = np.stack([_relative_spread(c) for c in covers])
    rows = by_group.rows[((codes != original).sum(axis=0) < required)[by_group.rows]]
    odds = spread[:, by_group.group_of_row[rows]]
    odds = odds * np.stack([_share_of_others(c.classes, rows) for c in covers])
    is_stuck = (odds > 0).sum(axis=0) < required[rows]
    for _ in range(ceil(min_changed)):
        _redraw(covers, rows, odds, codes, original, required, rng)
    _move_to_nearest(attributes, rows[is_stuck], codes, original, required)
    short = int(((codes != original).sum(axis=0) < required).sum())
    if short:
        raise RequirementError(f"muco: {short} records could not be changed enough; lower min_changed")
    return list(codes), int(is_stuck.sum())


def require_movable(qi: Sequence[Attribute], min_changed: float) -> None:
    """Raise a RequirementError where fewer than `min_changed` attributes have two different values."""
    movable = sum(attribute.domain > 1 for attribute in qi)
    if min_changed > movable:
        raise RequirementError(
            f"min_changed := {min_changed:.10g} is too many: only {movable} quasi-identifiers have two different "
            f"values or more; take at most {movable}"
        )


def _relative_spread(cover: MutualCover) -> FloatArray:
    """Return the spread of one attribute in each group as a share of the table's; 0 for a single value.

    The table's spread counts values, not steps, as information loss does: one more than the largest distance
    when neighbours are 1 apart.
    """
    attribute, classes = cover.attribute, cover.classes
    # A group without rows borrows its neighbour's classes; no row refers to it.
    low = np.minimum(classes.first[:-1], len(classes.code) - 1)
    high = np.maximum(classes.first[1:] - 1, low)
    ends = attribute.left_to_right[[0, -1]].astype(np.int32)
    span = float(pair_distance(attribute, ends[:1], ends[1:])[0])
    tick()
    share = pair_distance(attribute, classes.code[low], classes.code[high]) / (span or 1.0)
    return np.asarray(share * (attribute.domain - 1) / attribute.domain)


def _share_of_others(classes: Classes, rows: IntArray) -> FloatArray:
    """Return the share of each row's group that has another value: how often the paper's redraw changes it."""
    tick()
    of_row = classes.class_of_row[rows]
    group = classes.group[of_row]
    size = classes.starts[classes.first[group + 1]] - classes.starts[classes.first[group]]
    return np.asarray(1.0 - classes.count[of_row] / size)


def _pick_attribute(odds: FloatArray, rng: np.random.Generator) -> IntArray:
    """Pick an attribute for each row by its odds, shape (attributes, rows); any where all are 0."""
    tick()
    total = np.cumsum(odds, axis=0)
    chosen = (total <= rng.random(odds.shape[1]) * total[-1]).sum(axis=0)
    return np.asarray(np.minimum(chosen, len(odds) - 1))


def _redraw(
    covers: Sequence[MutualCover],
    rows: IntArray,
    odds: FloatArray,
    codes: Codes,
    original: Codes,
    required: IntArray,
    rng: np.random.Generator,
) -> None:
    """Redraw one unchanged attribute of each row that still needs it and has one that can change."""
    differs = codes[:, rows] != original[:, rows]
    open_odds = odds * ~differs * (differs.sum(axis=0) < required[rows])
    changeable = open_odds.any(axis=0)
    rows = rows[changeable]
    pick = _pick_attribute(open_odds[:, changeable], rng)
    uniform = rng.random(len(rows))
    for number, cover in enumerate(covers):
        picked = pick == number
        codes[number, rows[picked]] = _value_of_another(cover.classes, rows[picked], uniform[picked])


def _value_of_another(classes: Classes, rows: IntArray, uniform: FloatArray) -> CodeArray:
    """Return the value of a random record among those of the group with another value."""
    of_row = classes.class_of_row[rows]
    group = classes.group[of_row]
    # Records sorted by class: start of the group, and the number outside the row's class.
    start = classes.starts[classes.first[group]]
    others = classes.starts[classes.first[group + 1]] - start - classes.count[of_row]
    index = start + np.minimum((uniform * others).astype(np.int64), others - 1)
    index += np.where(index >= classes.starts[of_row], classes.count[of_row], 0)
    return np.asarray(classes.code[classes.class_of_sorted[index]])


def _move_to_nearest(
    attributes: Sequence[Attribute], rows: IntArray, codes: Codes, original: Codes, required: IntArray
) -> None:
    """Give stuck rows the nearest other value of the table, attributes with the smallest step first."""
    if not len(rows):
        return
    nearest, step = zip(*(_nearest_values(a) for a in attributes), strict=True)
    size = np.stack([s[a.codes[rows]] for s, a in zip(step, attributes, strict=True)])
    differs = codes[:, rows] != original[:, rows]
    size[differs] = np.inf
    tick()
    order = np.argsort(size, axis=0, kind="stable")
    missing = required[rows] - differs.sum(axis=0)
    for turn in range(int(missing.max(initial=0))):
        for number, attribute in enumerate(attributes):
            moved = rows[(order[turn] == number) & (turn < missing)]
            codes[number, moved] = nearest[number][attribute.codes[moved]]


def _nearest_values(attribute: Attribute) -> tuple[CodeArray, FloatArray]:
    """Return for each code the nearest other code and the step relative to the spread of the table."""
    if attribute.domain < 2:
        return np.zeros(attribute.domain, dtype=np.int32), np.full(attribute.domain, np.inf)
    in_order = attribute.left_to_right.astype(np.int32)
    gap = pair_distance(attribute, in_order[:-1], in_order[1:])
    below, above = np.append(np.inf, gap), np.append(gap, np.inf)
    index = np.arange(attribute.domain)
    neighbour = in_order[np.where(below < above, index - 1, index + 1)]
    span = float(pair_distance(attribute, in_order[:1], in_order[-1:])[0])
    position = np.argsort(in_order)
    return neighbour[position], (np.minimum(below, above) / (span or 1.0))[position]
