"""MuCo's last step: no record is published with all of its quasi-identifiers as they were.

Released: the drawn values, where every record that drew fewer than `min_changed` new values gets some more.
As in Li et al. (2020), Algorithm 2, an attribute is picked with probability in proportion to its spread in
the group relative to its spread in the table, and a value uniformly among those of the table that lie between
the group's extremes (nominal: among those of the group). The paper redraws until the record differs; drawing
at once among attributes and values that differ has the same distribution.
Departures: records whose group is constant on too many attributes, for which the paper's loop never ends,
move to the nearest other value of the table on the attributes where that step is relatively smallest.
Guarantee: at least `min_changed` attributes of every record differ from its own, unless such records are
kept. The step may exceed delta slightly, since the values set here are not drawn from the tables. Cost:
linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from duckdb_anon.cover.classes import Classes
from duckdb_anon.cover.distance import leaf_order, pair_distance
from duckdb_anon.cover.tables import Cover
from duckdb_anon.errors import RequirementError
from duckdb_anon.table import Attribute, CodeArray, FloatArray, IntArray


def randomize_unchanged(
    covers: Sequence[Cover],
    published: Sequence[CodeArray],
    min_changed: int,
    rng: np.random.Generator,
    stuck: Literal["nearest", "keep"] = "nearest",
) -> tuple[list[CodeArray], int]:
    """Change records until each differs from its original on at least `min_changed` attributes.

    Args:
        covers: the tables the values were drawn from, one a quasi-identifier, all with the same groups.
        published: drawn codes of each of them, n rows each.
        min_changed: attributes that must differ, 0 .. number of quasi-identifiers.
        rng: source of randomness.
        stuck: what to do with records whose group varies on fewer attributes: 'nearest' moves them to
            another value of the table, 'keep' changes what can be changed inside the group.

    Returns:
        The new codes, and how many records were stuck.

    Raises:
        RequirementError: fewer than `min_changed` attributes have two values in the table (for 'nearest').
    """
    result = [codes.copy() for codes in published]
    if not covers or min_changed <= 0:
        return result, 0
    movable = sum(c.attribute.domain > 1 for c in covers)
    if min_changed > movable and stuck == "nearest":
        raise RequirementError(
            f"muco: min_changed is {min_changed}, but only {movable} quasi-identifiers have two different "
            f"values or more; set min_changed to at most {movable}"
        )
    differs = np.stack([r != c.attribute.codes for r, c in zip(result, covers, strict=True)], axis=1)
    order = covers[0].classes.rows
    rows = order[differs[order].sum(axis=1) < min_changed]
    odds = np.stack([_relative_spread(c, rows) for c in covers], axis=1)
    is_stuck = (odds > 0).sum(axis=1) < min_changed
    for _ in range(min_changed):
        open_odds = odds * ~differs[rows] * (differs[rows].sum(axis=1) < min_changed)[:, None]
        _change_one(covers, rows, open_odds, result, differs, rng)
    if stuck == "nearest" and is_stuck.any():
        attributes = [c.attribute for c in covers]
        _move_to_nearest(attributes, rows[is_stuck], result, differs, min_changed)
    return result, int(is_stuck.sum())


def _relative_spread(cover: Cover, rows: IntArray) -> FloatArray:
    """Return the weight of one attribute for each row; 0 where its group has one value.

    A redraw is lost when it hits the original value, which happens in 1 of n cases: hence (n - 1) / n.
    """
    attribute, classes = cover.attribute, cover.classes
    choices = _Choices(cover)
    low, high = classes.code[choices.lowest], classes.code[choices.highest]
    ends = np.argsort(leaf_order(attribute))[[0, -1]].astype(np.int32)
    whole = float(pair_distance(attribute, ends[:1], ends[1:])[0])
    weight = pair_distance(attribute, low, high) / (whole or 1.0) * (choices.size - 1) / choices.size
    return np.asarray(weight[classes.group[_class_of_row(classes)[rows]]])


class _Choices:
    """The values the paper's loop may give to a record of each group.

    Attributes:
        lowest, highest: first and last class of each group.
        size: number of values.
    """

    def __init__(self, cover: Cover) -> None:
        classes = cover.classes
        self.cover = cover
        # A group without rows borrows its neighbour's classes; no row asks for them.
        self.lowest = np.minimum(classes.first[:-1], len(classes.code) - 1)
        self.highest = np.maximum(classes.first[1:] - 1, self.lowest)
        self.place = leaf_order(cover.attribute)
        if cover.attribute.kind == "nominal":
            self.size = self.highest - self.lowest + 1
        else:
            low, high = classes.code[self.lowest], classes.code[self.highest]
            self.size = self.place[high] - self.place[low] + 1

    def other(self, own: IntArray, spot: FloatArray) -> CodeArray:
        """Return for records of classes `own` the code at `spot` in [0, 1) among the other values."""
        classes = self.cover.classes
        group = classes.group[own]
        step = np.minimum((spot * (self.size[group] - 1)).astype(np.int64), self.size[group] - 2)
        if self.cover.attribute.kind == "nominal":
            chosen = self.lowest[group] + step
            return np.asarray(classes.code[chosen + (chosen >= own)])
        chosen = self.place[classes.code[self.lowest[group]]] + step
        chosen += chosen >= self.place[classes.code[own]]
        return np.asarray(np.argsort(self.place)[chosen].astype(np.int32))


def _class_of_row(classes: Classes) -> IntArray:
    own = np.empty(len(classes.rows), dtype=np.int64)
    own[classes.rows] = classes.class_of_sorted
    return own


def _change_one(
    covers: Sequence[Cover],
    rows: IntArray,
    odds: FloatArray,
    result: list[CodeArray],
    differs: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Change one attribute of each row that has any odds, to a uniform other value of its group."""
    total = np.cumsum(odds, axis=1)
    some = total[:, -1] > 0
    rows, total = rows[some], total[some]
    pick = (total <= rng.random(len(rows))[:, None] * total[:, -1:]).sum(axis=1)
    spot = rng.random(len(rows))
    for place, cover in enumerate(covers):
        mine = pick == place
        own = _class_of_row(cover.classes)[rows[mine]]
        result[place][rows[mine]] = _Choices(cover).other(own, spot[mine])
        differs[rows[mine], place] = True


def _move_to_nearest(
    attributes: Sequence[Attribute],
    rows: IntArray,
    result: list[CodeArray],
    differs: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    min_changed: int,
) -> None:
    """Give stuck rows the nearest other value of the table, attributes with the smallest step first."""
    nearest, step = zip(*(_nearest_values(a) for a in attributes), strict=True)
    size = np.stack([s[a.codes[rows]] for s, a in zip(step, attributes, strict=True)], axis=1)
    size[differs[rows]] = np.inf
    order = np.argsort(size, axis=1, kind="stable")
    missing = min_changed - differs[rows].sum(axis=1)
    for turn in range(min_changed):
        place = order[:, turn]
        for number, attribute in enumerate(attributes):
            mine = rows[(place == number) & (turn < missing)]
            result[number][mine] = nearest[number][attribute.codes[mine]]
            differs[mine, number] = True


def _nearest_values(attribute: Attribute) -> tuple[CodeArray, FloatArray]:
    """Return for each code the nearest other code and the step relative to the spread of the table."""
    place = leaf_order(attribute)
    if attribute.domain < 2:
        return np.zeros(attribute.domain, dtype=np.int32), np.full(attribute.domain, np.inf)
    in_order = np.argsort(place).astype(np.int32)
    gap = pair_distance(attribute, in_order[:-1], in_order[1:])
    below, above = np.append(np.inf, gap), np.append(gap, np.inf)
    at = np.arange(attribute.domain)
    neighbour = in_order[np.where(below < above, at - 1, at + 1)]
    whole = float(pair_distance(attribute, in_order[:1], in_order[-1:])[0])
    return neighbour[place], (np.minimum(below, above) / (whole or 1.0))[place]
