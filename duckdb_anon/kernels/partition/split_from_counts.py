"""The cuts of a group that is too large to be held, from counts alone: those of `loss_cut`, `median` and `sse`.

What those three read of a large group is how many rows have each value (`sse`: a sample of its rows), so whoever can
count can cut. A group of more than `by_counts` rows is cut here as it is there, to the same parts: by loss and at
medians exactly, by squared error up to the sample. Cuts come best first; whoever asks checks the parts.
Cost: linear in the values that occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.kernels.partition.flat_attributes import Lines
from duckdb_anon.kernels.partition.loss_cut import COMPARED_SIZE
from duckdb_anon.kernels.partition.median import Width
from duckdb_anon.kernels.partition.ncp import range_width
from duckdb_anon.kernels.partition.partition_state import CHILDREN, FREQUENT, ONLY, UP_TO, Space
from duckdb_anon.kernels.partition.split_candidates import Candidates, list_counted
from duckdb_anon.kernels.partition.sse_candidates import UP_TO_CODE, Room, list_candidates, mark
from duckdb_anon.kernels.partition.sse_split import left_to_right
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray


@dataclass(frozen=True)
class GroupCounts:
    """A group by the numbers of rows its values have.

    Attributes:
        code: codes that occur of each attribute, ascending.
        rows: rows that have each of them, 1 or more.
    """

    code: tuple[IntArray, ...]
    rows: tuple[IntArray, ...]

    @property
    def size(self) -> int:
        """Rows of the group."""
        return int(self.rows[0].sum())


@dataclass(frozen=True)
class Cut:
    """A cut of a group by one attribute.

    Attributes:
        attribute: which one.
        part: part of each of the attribute's codes, shape (domain,); 0, 1, ... Codes that do not occur have any.
        parts: how many there are.
    """

    attribute: int
    part: IntArray
    parts: int


def by_counts(min_size: int) -> int:
    """Rows above which cuts by loss need nothing but counts."""
    return COMPARED_SIZE * min_size


def cuts_by_loss(qi: Sequence[Attribute], counts: GroupCounts, min_size: int) -> Iterator[Cut]:
    """Cuts by the loss to expect, as `groups_by_loss` tries them in a group of more than `by_counts` rows.

    Args:
        qi: the attributes of the whole table.
        counts: the group.
        min_size: fewest rows of a part.

    >>> age = Attribute('age', 'ordered', np.array([0, 1, 2]), np.array([0.0, 1.0, 9.0]), 3, -1, np.arange(3))
    >>> group = GroupCounts((np.arange(3),), (np.array([4, 4, 4]),))
    >>> next(cuts_by_loss((age,), group, 2)).part.tolist()
    [0, 0, 1]
    """
    lines = Lines.of(tuple(qi))
    code, rows = zip(*(_on_line(a, c, r) for a, c, r in zip(qi, counts.code, counts.rows, strict=True)), strict=True)
    space, found = Space.of(lines, counts.size), Candidates.of(lines, counts.size)
    at = np.cumsum([0, *(len(c) for c in code)]).astype(np.int64)
    list_counted(lines, space, found, at, np.concatenate(code), np.concatenate(rows), counts.size, min_size)
    loss = found.loss[: int(found.found[0])]
    best = found.best[found.best >= 0]
    first = best[np.argsort(loss[best], kind="stable")]
    others = np.setdiff1d(np.arange(len(loss)), best)
    for chosen in (*first, *others[np.argsort(loss[others], kind="stable")]):
        j, kind, where = (int(part[chosen]) for part in (found.attribute, found.kind, found.at))
        places = np.arange(int(lines.offset[j + 1] - lines.offset[j]))
        rank = space.rank[lines.offset[j] : lines.offset[j + 1]]
        if kind == UP_TO:
            part, parts = (places > where).astype(np.int64), 2
        elif kind in (FREQUENT, ONLY):
            part, parts = (rank > where if kind == FREQUENT else rank != where).astype(np.int64), 2
        else:
            part, parts = _children(qi[j], code[j])
            if kind != CHILDREN:
                part, parts = (part != where).astype(np.int64), 2
        yield Cut(j, _by_code(qi[j], part), parts)


def cuts_at_median(qi: Sequence[Attribute], counts: GroupCounts, width: Width) -> Iterator[Cut]:
    """Cuts of each attribute at its median, widest first, as strict `groups_at_median` tries them.

    Args:
        qi: the attributes of the whole table.
        counts: the group.
        width: how attributes are ranked.
    """
    on_line = [_on_line(a, c, r) for a, c, r in zip(qi, counts.code, counts.rows, strict=True)]
    widths = [_width(a, c, r, width) if len(c) > 1 else -1.0 for a, (c, r) in zip(qi, on_line, strict=True)]
    for j in np.argsort(-np.array(widths), kind="stable").tolist():
        code, rows = on_line[j]
        if len(code) < 2:
            continue
        if qi[j].hierarchy is not None:
            yield Cut(j, _by_code(qi[j], (children := _children(qi[j], code))[0]), children[1])
            continue
        cell = int(np.searchsorted(np.cumsum(rows), (counts.size - 1) // 2, side="right"))
        places = np.arange(max(1, qi[j].domain))
        if cell + 1 < len(code):
            yield Cut(j, (places > code[cell]).astype(np.int64), 2)
        if qi[j].kind == "nominal" and cell > 0:
            yield Cut(j, (places > code[cell] - 1).astype(np.int64), 2)


def cuts_by_error(qi: Sequence[Attribute], size: int, sample: CodeArray, least: int) -> Iterator[Cut]:
    """Cuts where the squared error falls most, from a sample of the group's rows, as `sse_partition` tries them.

    Args:
        qi: the attributes of the whole table, with its counts.
        size: rows of the group.
        sample: codes of some of its rows, shape (rows, attributes).
        least: fewest rows of a part.
    """
    ordered = [left_to_right(a) for a in qi]
    scaled = features_of(ordered)
    codes = np.empty(sample.shape, dtype=np.int32)
    for j, attribute in enumerate(qi):
        codes[:, j] = _places(attribute)[sample[:, j]] + scaled.first_code[j]
    room = Room.of(len(codes), scaled.most, len(qi))
    room.chosen[:] = np.arange(len(codes))
    nominal = np.array([attribute.kind == "nominal" for attribute in qi])
    cuts = list_candidates(
        room, len(codes), size, codes, scaled.start, scaled.feature, scaled.value, nominal, least,
        np.zeros(scaled.count), np.zeros(scaled.count),
    )  # fmt: skip
    gain = room.gain[:cuts]
    for k in np.argsort(-gain, kind="stable"):
        if gain[k] <= 0:
            return
        j, way, argument = (int(number) for number in room.cut[k])
        first, last = int(scaled.first_code[j]), int(scaled.first_code[j + 1])
        left = np.zeros(int(scaled.first_code[-1]), dtype=np.int64)
        mark(room, len(codes), codes, 0, len(codes), j, way, argument, left)
        if way == UP_TO_CODE:  # of the values that the sample lacks too
            left[first : argument + 1] = 1
        part = 1 - left[first:last]
        yield Cut(j, part[_places(qi[j])], 2)


def _on_line(attribute: Attribute, code: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Values by the codes cuts use: leaves of a hierarchy, ascending, those of one leaf added up."""
    if attribute.leaf_of_code is None:
        return code.astype(np.int64), rows.astype(np.int64)
    leaf, place = np.unique(attribute.leaf_of_code[code], return_inverse=True)
    return leaf.astype(np.int64), np.bincount(place, weights=rows).astype(np.int64)


def _places(attribute: Attribute) -> IntArray:
    """Place of each code in the order of `left_to_right`."""
    if attribute.kind != "hierarchy" or attribute.leaf_of_code is None:
        return np.arange(max(1, attribute.domain), dtype=np.int64)
    return np.argsort(np.argsort(attribute.leaf_of_code, kind="stable"), kind="stable").astype(np.int64)


def _by_code(attribute: Attribute, part: IntArray) -> IntArray:
    return part if attribute.leaf_of_code is None else part[attribute.leaf_of_code]


def _children(attribute: Attribute, leaves: IntArray) -> tuple[IntArray, int]:
    """Child of the lowest common ancestor that each leaf is below, and how many children there are."""
    if attribute.hierarchy is None:
        raise ValueError(f"attribute '{attribute.name}' has no hierarchy")
    tree = attribute.hierarchy
    depth = 0
    while depth + 1 < len(tree.ancestors) and len(np.unique(tree.ancestors[depth + 1][leaves])) == 1:
        depth += 1
    below = tree.ordinal[tree.ancestors[min(depth + 1, len(tree.ancestors) - 1)]].astype(np.int64)
    return below, int(below.max()) + 1


def _width(attribute: Attribute, code: IntArray, rows: IntArray, width: Width) -> float:
    if width == "distinct":
        return float(len(code))
    if width == "range":
        return float(range_width(attribute, code[:1], code[-1:])[0])
    value = attribute.positions[code] if attribute.hierarchy is None else code.astype(np.float64)
    return float((rows * value * value).sum() * rows.sum() - (rows * value).sum() ** 2)
