"""The cuts of a group that is too large to be held, from counts alone: those of `partition`.

What those three read of a large group is how many rows have each value (`sse`: a sample of its rows), so whoever can
count can cut. A group of more than `by_counts` rows is cut here as it is there, to the same parts: by loss and at
medians exactly, by squared error up to the sample. Cuts come best first; whoever asks checks the parts.
Cost: linear in the values that occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.ncp import range_width
from duckdb_anon.kernels.partition.partition import Width
from duckdb_anon.kernels.partition.partition_state import CHILDREN, FREQUENT, ONLY, UP_TO, Columns, Workspace, starts_of
from duckdb_anon.kernels.partition.split_candidates import COMPARED_SIZE, Candidates, counted_cuts
from duckdb_anon.kernels.partition.sse_split import UNRANKED, ErrorScore, left_to_right, sample_cuts, without_tree
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray


@dataclass(frozen=True)
class GroupCounts:
    """A group by the numbers of rows its values have."""

    code: tuple[IntArray, ...]  # codes that occur of each attribute, ascending
    rows: tuple[IntArray, ...]  # rows that have each of them, 1 or more

    @property
    def size(self) -> int:
        """Rows of the group."""
        return int(self.rows[0].sum())


@dataclass(frozen=True)
class Cut:
    """A cut of a group by one attribute."""

    attribute: int  # which one
    part: IntArray  # part of each of the attribute's codes, shape (domain,); 0, 1, ... Codes that do not occur have any
    parts: int  # how many there are


def by_counts(min_size: int) -> int:
    """Rows above which cuts by loss need nothing but counts."""
    return COMPARED_SIZE * min_size


def cuts_by_loss(qi: Sequence[Attribute], counts: GroupCounts, min_size: int) -> Iterator[Cut]:
    """Cuts by the loss to expect, as `partition` tries them in a group of more than `by_counts` rows.

    >>> age = Attribute('age', 'ordered', np.array([0, 1, 2]), np.array([0.0, 1.0, 9.0]), 3, -1, np.arange(3))
    >>> group = GroupCounts((np.arange(3),), (np.array([4, 4, 4]),))
    >>> next(cuts_by_loss((age,), group, 2)).part.tolist()
    [0, 0, 1]
    """
    columns = Columns.of(tuple(qi))
    code, rows = zip(*(_on_line(a, c, r) for a, c, r in zip(qi, counts.code, counts.rows, strict=True)), strict=True)
    space, found = Workspace.of(columns, counts.size), Candidates.of(columns, counts.size)
    at = starts_of([len(c) for c in code])
    counted_cuts(columns, space, found, at, np.concatenate(code), np.concatenate(rows), counts.size, min_size)
    loss = found.loss[: int(found.found[0])]
    best = found.best[found.best >= 0]
    first = best[np.argsort(loss[best], kind="stable")]
    others = np.setdiff1d(np.flatnonzero(loss < np.inf), best)
    for chosen in (*first, *others[np.argsort(loss[others], kind="stable")]):
        j, kind, where = (int(part[chosen]) for part in (found.attribute, found.kind, found.at))
        if kind in (UP_TO, FREQUENT, ONLY):
            part, parts = _binary(columns, space, j, kind, where), 2
        else:
            part, parts = _children(qi[j], code[j])
            if kind != CHILDREN:
                part, parts = (part != where).astype(np.int64), 2
        yield Cut(j, _by_code(qi[j], part), parts)


def _binary(columns: Columns, space: Workspace, j: int, kind: int, at: int) -> IntArray:
    """Part of each code (leaf) of an attribute under a cut in two."""
    low, high = int(columns.offset[j]), int(columns.offset[j + 1])
    if kind == UP_TO:
        return (np.arange(high - low) > at).astype(np.int64)
    rank = space.rank[low:high]
    return (rank > at if kind == FREQUENT else rank != at).astype(np.int64)


def cuts_at_median(qi: Sequence[Attribute], counts: GroupCounts, width: Width) -> Iterator[Cut]:
    """Cuts of each attribute at its median, widest first, as a strict partition tries them.

    Args:
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
    """Cuts where the squared error falls most, from a sample of the group's rows, as `partition` tries them.

    Args:
        sample: codes of some of its rows, shape (rows, attributes).
    """
    ordered = [left_to_right(attribute) for attribute in qi]
    columns = Columns.of(tuple(without_tree(attribute) for attribute in ordered))
    codes = np.stack([_places(attribute)[sample[:, j]] for j, attribute in enumerate(qi)], axis=1).astype(np.int32)
    score, found = ErrorScore.of(ordered, len(codes)), Candidates.of(columns, len(codes))
    space = Workspace.of(columns, len(codes))
    space.rank[:] = UNRANKED  # of the values that the sample lacks
    score.chosen[:] = np.arange(len(codes))
    sample_cuts(columns, codes, space, found, score, least, size, len(codes))
    for chosen in np.argsort(found.loss[: int(found.found[0])], kind="stable"):
        j, kind, at = (int(part[chosen]) for part in (found.attribute, found.kind, found.at))
        yield Cut(j, _binary(columns, space, j, kind, at)[_places(qi[j])], 2)


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
