"""MuCo's last step: no record is published with all of its quasi-identifiers as they were.

Released: the drawn values, where every record that drew fewer than `min_changed` new values gets some more.
As in Li et al. (2020), Algorithm 2, an attribute is picked with probability in proportion to its spread in
the group relative to its spread in the table, and its value redrawn. The paper leaves the draw open; here it
is the value of a random record of the group that has another one, which disturbs the histogram less than a
uniform draw from the domain. Departures: with `exchange`, records first swap drawn values (see `exchange`).
Records whose group is constant on too many attributes, for which the paper's loop never ends, move to the
nearest other value of the table on the attributes where that step is relatively smallest. Guarantee, checked:
at least `min_changed` attributes of every record differ from its own, unless stuck records are kept. The step
may exceed delta slightly, since its values are not drawn from the tables. Cost: linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.random_output_tables.distance import leaf_order, pair_distance
from duckdb_anon.kernels.random_output_tables.lp_grouping import Classes
from duckdb_anon.kernels.random_output_tables.min_changed import exchange_values, pick_attribute
from duckdb_anon.kernels.random_output_tables.output_tables import MutualCover
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError


def randomize_unchanged(
    covers: Sequence[MutualCover],
    published: Sequence[CodeArray],
    min_changed: float,
    rng: np.random.Generator,
    *,
    exchange: bool = False,
    stuck: Literal["nearest", "keep"] = "nearest",
    tick: Callable[[], None] | None = None,
) -> tuple[list[CodeArray], int]:
    """Change records until each differs from its original on at least `min_changed` attributes.

    Args:
        covers: the tables the values were drawn from, one a quasi-identifier, all with the same groups.
        published: drawn codes of each of them, n rows each.
        min_changed: attributes that must differ, 0 .. number of quasi-identifiers; a fraction on top asks for
            one more of that share of the records, drawn at random.
        rng: source of randomness.
        exchange: swap drawn values inside groups first, which keeps every histogram as it was drawn.
        stuck: what to do with records whose group varies on fewer attributes: 'nearest' moves them to
            another value of the table, 'keep' changes what can be changed inside the group.
        tick: called now and then; may raise to stop the work.

    Returns:
        The new codes, and how many records were stuck.

    Raises:
        RequirementError: fewer than `min_changed` attributes have two values in the table (for 'nearest').
    """
    if not covers or min_changed <= 0:
        return [codes.copy() for codes in published], 0
    if stuck == "nearest":
        require_movable([c.attribute for c in covers], min_changed)
    wanted = np.full(len(published[0]), int(min_changed))
    wanted[covers[0].classes.rows] += rng.random(len(wanted)) < min_changed % 1
    codes = np.stack(published)
    original = np.stack([c.attribute.codes for c in covers])
    spread = np.stack([_relative_spread(c) for c in covers])
    if exchange:
        exchange_values(covers, codes, original, spread, wanted, rng, tick)
    order = covers[0].classes.rows
    rows = order[((codes != original).sum(axis=0) < wanted)[order]]
    odds = spread[:, covers[0].classes.group_of_row[rows]]
    odds = odds * np.stack([_share_of_others(c.classes, rows) for c in covers])
    is_stuck = (odds > 0).sum(axis=0) < wanted[rows]
    for _ in range(ceil(min_changed)):
        _change_one(covers, rows, odds, codes, original, wanted, rng)
    if stuck == "nearest":
        _move_to_nearest([c.attribute for c in covers], rows[is_stuck], codes, original, wanted)
        _check(codes, original, wanted)
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
    # A group without rows borrows its neighbour's classes; no row asks for it.
    low = np.minimum(classes.first[:-1], len(classes.code) - 1)
    high = np.maximum(classes.first[1:] - 1, low)
    ends = np.argsort(leaf_order(attribute))[[0, -1]].astype(np.int32)
    whole = float(pair_distance(attribute, ends[:1], ends[1:])[0])
    progress.tick()
    share = pair_distance(attribute, classes.code[low], classes.code[high]) / (whole or 1.0)
    return np.asarray(share * (attribute.domain - 1) / attribute.domain)


def _share_of_others(classes: Classes, rows: IntArray) -> FloatArray:
    """Return the share of each row's group that has another value: how often the paper's redraw changes it."""
    progress.tick()
    own = classes.class_of_row[rows]
    group = classes.group[own]
    size = classes.starts[classes.first[group + 1]] - classes.starts[classes.first[group]]
    return np.asarray(1.0 - classes.count[own] / size)


def _change_one(
    covers: Sequence[MutualCover],
    rows: IntArray,
    odds: FloatArray,
    codes: NDArray[np.int32],
    original: NDArray[np.int32],
    wanted: IntArray,
    rng: np.random.Generator,
) -> None:
    """Redraw one unchanged attribute of each row that still needs it and has one that can change."""
    progress.tick()
    differs = codes[:, rows] != original[:, rows]
    open_odds = odds * ~differs * (differs.sum(axis=0) < wanted[rows])
    some = open_odds.any(axis=0)
    rows = rows[some]
    pick = pick_attribute(open_odds[:, some], rng)
    spot = rng.random(len(rows))
    for place, cover in enumerate(covers):
        mine = rows[pick == place]
        codes[place, mine] = _value_of_another(cover.classes, mine, spot[pick == place])


def _value_of_another(classes: Classes, rows: IntArray, spot: FloatArray) -> CodeArray:
    """Return the value of the record at `spot` in [0, 1) among those of the group with another value."""
    progress.tick()
    own = classes.class_of_row[rows]
    group = classes.group[own]
    # Records sorted by class: start of the group, of the own class, and the number outside the own class.
    starts = classes.starts
    start, end = starts[classes.first[group]], starts[classes.first[group + 1]]
    others = (end - start) - classes.count[own]
    place = start + np.minimum((spot * others).astype(np.int64), others - 1)
    place += np.where(place >= starts[own], classes.count[own], 0)
    return np.asarray(classes.code[classes.class_of_sorted[place]])


def _move_to_nearest(
    attributes: Sequence[Attribute],
    rows: IntArray,
    codes: NDArray[np.int32],
    original: NDArray[np.int32],
    wanted: IntArray,
) -> None:
    """Give stuck rows the nearest other value of the table, attributes with the smallest step first."""
    if not len(rows):
        return
    nearest, step = zip(*(_nearest_values(a) for a in attributes), strict=True)
    size = np.stack([s[a.codes[rows]] for s, a in zip(step, attributes, strict=True)])
    differs = codes[:, rows] != original[:, rows]
    size[differs] = np.inf
    progress.tick()
    order = np.argsort(size, axis=0, kind="stable")
    progress.tick()
    missing = wanted[rows] - differs.sum(axis=0)
    for turn in range(int(missing.max(initial=0))):
        for number, attribute in enumerate(attributes):
            mine = rows[(order[turn] == number) & (turn < missing)]
            codes[number, mine] = nearest[number][attribute.codes[mine]]


def _nearest_values(attribute: Attribute) -> tuple[CodeArray, FloatArray]:
    """Return for each code the nearest other code and the step relative to the spread of the table."""
    if attribute.domain < 2:
        return np.zeros(attribute.domain, dtype=np.int32), np.full(attribute.domain, np.inf)
    place = leaf_order(attribute)
    in_order = np.argsort(place).astype(np.int32)
    gap = pair_distance(attribute, in_order[:-1], in_order[1:])
    below, above = np.append(np.inf, gap), np.append(gap, np.inf)
    at = np.arange(attribute.domain)
    neighbour = in_order[np.where(below < above, at - 1, at + 1)]
    whole = float(pair_distance(attribute, in_order[:1], in_order[-1:])[0])
    return neighbour[place], (np.minimum(below, above) / (whole or 1.0))[place]


def _check(codes: NDArray[np.int32], original: NDArray[np.int32], wanted: IntArray) -> None:
    """Raise unless every record differs from its original on enough attributes."""
    short = int(((codes != original).sum(axis=0) < wanted).sum())
    if short:
        raise RequirementError(f"muco: {short} records could not be changed enough; lower min_changed")
