"""Draw the attributes of a record together, so that hardly any record keeps all of its values.

Released: one value an attribute and record, each distributed as its row of the random output table, so delta-
probability and the expected histograms are those of the tables. What is chosen here is how the attributes hang
together: a record's changes are spread by systematic sampling (Madow 1949), which makes the number of
changed attributes floor(T) or ceil(T), T being the sum of its probabilities of change. With T >= `min_changed`
every record changes enough by itself, where independent draws would leave many unchanged.

Records with less are moved on: an attribute is picked with probability in proportion to the closeness of the
next value of the table inside its group's range, and takes that value (either side with equal chance, one side at
the range's ends). Where the group is constant on too many attributes, the neighbouring values of the table serve.
This step is not covered by delta-probability; it replaces Algorithm 2 of Li et al. (2020), whose
uniform values of the group pull histograms towards rare ones. Guarantee: at least `min_changed` attributes of every
record differ from its own. Cost: linear in rows times attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.cover.distance import leaf_order, pair_distance
from duckdb_anon.cover.tables import Cover
from duckdb_anon.errors import RequirementError
from duckdb_anon.reading import BoolArray
from duckdb_anon.table import CodeArray, FloatArray, IntArray


def draw_jointly(
    covers: Sequence[Cover], min_changed: float, rng: np.random.Generator
) -> tuple[list[CodeArray], int]:
    """Draw the published codes of every record.

    Args:
        covers: the tables, one a quasi-identifier, all with the same groups.
        min_changed: attributes that must differ in every record, 0 .. number of quasi-identifiers; a fraction
            on top asks for one more of that share of the records, drawn at random, if there is one more.
        rng: source of randomness.

    Returns:
        Codes of each quasi-identifier, n rows each, and how many records' groups were too uniform, so that they
        took values of the table.

    Raises:
        RequirementError: fewer than `min_changed` attributes have two values in the table.
    """
    movable = require_movable(covers, int(min_changed))
    own = [_class_of_row(c) for c in covers]
    change = np.stack([_change_probability(c)[o] for c, o in zip(covers, own, strict=True)], axis=1)
    # the order of the rows must not matter to a seed: draw in the order of the first attribute's classes
    order = covers[0].classes.rows
    differs = np.zeros(change.shape, dtype=bool)
    differs[order] = _systematic(change[order], rng)
    result = [c.attribute.codes.copy() for c in covers]
    for a, cover in enumerate(covers):
        rows = order[differs[order, a]]
        result[a][rows] = _draw_other(cover, own[a][rows], rng.random(len(rows)))
    wanted = np.full(len(order), int(min_changed))
    wanted[order] += (rng.random(len(order)) < min_changed % 1) & (int(min_changed) < movable)
    stuck = _move_on(covers, own, order, result, differs, wanted, rng)
    return result, stuck


def require_movable(covers: Sequence[Cover], min_changed: int) -> int:
    """Count the attributes that have two values in the table; raise a RequirementError below `min_changed`."""
    movable = sum(c.attribute.domain > 1 for c in covers)
    if min_changed > movable:
        raise RequirementError(
            f"muco: {min_changed} quasi-identifier(s) of every row must change, but only {movable} have two different "
            f"values or more; set min_changed to at most {movable}"
        )
    return movable


def _class_of_row(cover: Cover) -> IntArray:
    own = np.empty(len(cover.classes.rows), dtype=np.int64)
    own[cover.classes.rows] = cover.classes.class_of_sorted
    return own


def _own_entry(cover: Cover) -> tuple[IntArray, FloatArray]:
    """Per class: the entry that keeps the value (-1 for none), and its probability."""
    entry = np.full(len(cover.classes.code), -1, dtype=np.int64)
    keeps = np.flatnonzero(cover.column == cover.row)
    entry[cover.row[keeps]] = keeps
    return entry, np.where(entry >= 0, cover.probability[entry], 0.0)


def _change_probability(cover: Cover) -> FloatArray:
    _, keep = _own_entry(cover)
    return np.clip(1.0 - keep, 0.0, 1.0)


def _systematic(change: FloatArray, rng: np.random.Generator) -> BoolArray:
    """Systematic sampling of each row's attributes, in an order drawn for each row."""
    rows, attributes = change.shape
    place = np.argsort(rng.random((rows, attributes)), axis=1)
    ends = np.cumsum(np.take_along_axis(change, place, axis=1), axis=1)
    # rounding must not lose the last whole change
    ends[:, -1] = np.where(np.abs(ends[:, -1] - np.round(ends[:, -1])) < 1e-9, np.round(ends[:, -1]), ends[:, -1])
    steps = np.floor(ends - rng.random(rows)[:, None]) + 1
    chosen = np.diff(steps, axis=1, prepend=np.zeros((rows, 1))) > 0
    differs: BoolArray = np.zeros_like(chosen)
    np.put_along_axis(differs, place, chosen, axis=1)
    differs &= change > 0
    return differs


def _draw_other(cover: Cover, own: IntArray, spot: FloatArray) -> CodeArray:
    """Draw from each class's row of the table, its own value left out."""
    entry, keep = _own_entry(cover)
    total = np.concatenate([[0.0], np.cumsum(cover.probability)])
    start, stop = cover.offsets[own], cover.offsets[own + 1]
    mass = total[stop] - total[start] - keep[own]
    at = total[start] + spot * mass
    kept = entry[own]
    at += np.where((kept >= 0) & (at >= total[kept]), keep[own], 0.0)
    found = np.clip(np.searchsorted(total, at, side="right") - 1, start, stop - 1)
    # at the rounding edge the own entry could come up: take its neighbour
    found = np.where(found == kept, np.where(kept + 1 < stop, kept + 1, kept - 1), found)
    return np.asarray(cover.classes.code[cover.column[found]])


def _move_on(
    covers: Sequence[Cover],
    own: Sequence[IntArray],
    order: IntArray,
    result: list[CodeArray],
    differs: BoolArray,
    wanted: IntArray,
    rng: np.random.Generator,
) -> int:
    """Give records that changed too little a neighbouring value: inside their group's range, else of the table."""
    stuck = 0
    for whole_table in (False, True):
        rows = order[differs[order].sum(axis=1) < wanted[order]]
        stuck = len(rows)
        if not stuck:
            break
        sides = [_next_values(c, o[rows], whole_table) for c, o in zip(covers, own, strict=True)]
        closeness = np.stack([_closeness(step) for _, step in sides], axis=1)
        for _ in range(int(wanted.max())):
            open_odds = closeness * ~differs[rows] * (differs[rows].sum(axis=1) < wanted[rows])[:, None]
            total = np.cumsum(open_odds, axis=1)
            pick = (total <= rng.random(len(rows))[:, None] * total[:, -1:]).sum(axis=1)
            pick[total[:, -1] <= 0] = -1
            upward = rng.random(len(rows))
            for a, (values, step) in enumerate(sides):
                mine = np.flatnonzero(pick == a)
                both = np.isfinite(step[mine]).all(axis=1)
                side = np.where(both, upward[mine] < 0.5, np.isfinite(step[mine, 1])).astype(np.int64)
                result[a][rows[mine]] = values[mine, side]
                differs[rows[mine], a] = True
    return stuck


def _closeness(step: FloatArray) -> FloatArray:
    """Weight of an attribute: one over the mean step to the values on either side; 0 where there is none."""
    finite = np.isfinite(step)
    mean = np.where(finite, step, 0.0).sum(axis=1) / np.maximum(finite.sum(axis=1), 1)
    return np.where(finite.any(axis=1), 1.0 / np.maximum(mean, 1e-9), 0.0)


def _next_values(cover: Cover, own: IntArray, whole_table: bool) -> tuple[CodeArray, FloatArray]:
    """Values below and above each record's own, and their steps relative to the table's range.

    They lie inside the range of the record's group unless `whole_table`. Nominal attributes have no order: both
    sides are values next in code, of the group or of the table, at distance 1.
    """
    attribute, classes = cover.attribute, cover.classes
    group = classes.group[own]
    place = leaf_order(attribute)
    in_order = np.argsort(place).astype(np.int32)
    at = place[classes.code[own]]
    if attribute.kind == "nominal" and not whole_table:
        low, high = classes.first[group], classes.first[group + 1] - 1
        lower, upper = np.maximum(own - 1, low), np.minimum(own + 1, high)
        codes = np.stack([classes.code[lower], classes.code[upper]], axis=1)
    else:
        first, last = place[classes.code[classes.first[group]]], place[classes.code[classes.first[group + 1] - 1]]
        if whole_table:
            first, last = np.zeros_like(at), np.full_like(at, attribute.domain - 1)
        codes = np.stack([in_order[np.maximum(at - 1, first)], in_order[np.minimum(at + 1, last)]], axis=1)
    whole = float(pair_distance(attribute, in_order[:1], in_order[-1:])[0]) or 1.0
    step = np.stack([pair_distance(attribute, classes.code[own], codes[:, k]) / whole for k in (0, 1)], axis=1)
    step[codes == classes.code[own][:, None]] = np.inf
    return codes.astype(np.int32), step
