"""What a release tells about persons whose quasi-identifiers are known: matching classes, values they hold.

A class is what an attacker cannot look inside: rows with equal boxes, or a bucket of a sliced release (with
the part of the sensitive column that holds quasi-identifiers, if there is one). A person matches a class when
her values are covered; in a sliced release, when every column of the bucket has a cell that covers her part.
Rows with a noisy count that rounds below 1 are taken as absent.
Cost: persons times classes, bit by bit, in blocks chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from duckdb_anon.errors import ColumnError
from duckdb_anon.measures.covering import DistinctBoxes, distinct_boxes, mixed_key
from duckdb_anon.reading import BoolArray, ReadColumn, ReadTable
from duckdb_anon.table import CodeArray, IntArray


@dataclass
class _Slice:
    """One column of a sliced release: its distinct parts and the classes that show them."""

    names: tuple[int, ...]
    parts: DistinctBoxes
    shown: sparse.csr_matrix


@dataclass
class Evidence:
    """A release as the attack sees it.

    Attributes:
        qi: names of the quasi-identifiers.
        classes: number of classes.
        class_of_row: class of each row that is present.
        holds: whether each class holds each sensitive code, shape (classes, sensitive domain).
        boxes: the classes' boxes; None for a sliced release.
        slices: columns of a sliced release; none for the others.
        release: the rows that are present.
    """

    qi: list[str]
    classes: int
    class_of_row: IntArray
    holds: BoolArray
    boxes: DistinctBoxes | None
    release: ReadTable
    slices: list[_Slice] = field(default_factory=list)

    def matches(self, persons: Sequence[IntArray]) -> BoolArray:
        """Whether each person matches each class.

        Args:
            persons: code of each quasi-identifier of each person, each of shape (persons,).

        Returns:
            Shape (persons, classes).
        """
        if self.boxes is not None:
            return _covered(self.boxes, range(len(self.qi)), persons)
        match = np.ones((len(persons[0]), self.classes), dtype=bool)
        for column in self.slices:
            known = [persons[a] for a in column.names]
            covered = sparse.csr_matrix(_covered(column.parts, range(len(known)), known))
            match &= (covered @ column.shown).toarray() > 0
        return match

    def covered_codes(self, a: int) -> BoolArray:
        """Whether some cell of each class covers each code of quasi-identifier a, shape (classes, domain)."""
        if self.boxes is not None:
            return self.boxes.covers(a).T
        for column in self.slices:
            if a in column.names:
                by_part = sparse.csr_matrix(column.parts.covers(column.names.index(a)).T)
                covered: BoolArray = (column.shown.T @ by_part).toarray() > 0
                return covered
        raise ColumnError(f"the release has no column '{self.qi[a]}'")


def _covered(boxes: DistinctBoxes, columns: Sequence[int], persons: Sequence[IntArray]) -> BoolArray:
    result = boxes.covers(columns[0])[persons[0]]
    for a, codes in zip(columns[1:], persons[1:], strict=True):
        result = result & boxes.covers(a)[codes]
    return result


def evidence(function: str, overlap: ReadTable, release: ReadTable, qi: list[str], sensitive: str) -> Evidence:
    """Read a release of any shape whose cells say what they stand for.

    Raises:
        ColumnError: the release lacks a column, or randomizes values so that every value is possible.
    """
    missing = [name for name in [*qi, sensitive] if name not in release.columns]
    if missing:
        raise ColumnError(f"{function}: a release has no column {', '.join(missing)}")
    if any(release.columns[name].channel is not None for name in [*qi, sensitive]):
        raise ColumnError(f"{function}: a randomized release leaves every value possible; it cannot be intersected")
    release = _present(release)
    if any(release.columns[name].slice for name in qi):
        return _sliced(overlap, release, qi, sensitive)
    boxes = distinct_boxes(overlap, release, qi)
    return Evidence(
        qi, boxes.number, boxes.of_row, _held(release.columns[sensitive], boxes.of_row, boxes.number), boxes, release
    )


def _present(release: ReadTable) -> ReadTable:
    """Only the rows whose noisy count, if there is one, rounds to 1 or more."""
    if "noisy_count" not in release.columns:
        return release
    count = release.columns["noisy_count"]
    rows = np.flatnonzero(count.domain.positions[count.value_codes()] >= 0.5)
    return ReadTable(len(rows), {name: _taken(column, rows) for name, column in release.columns.items()})


def _taken(column: ReadColumn, rows: IntArray) -> ReadColumn:
    def pick(values: CodeArray | None, places: IntArray) -> CodeArray | None:
        return None if values is None else values[places]

    if column.offsets is None:
        lower, upper = pick(column.lower, rows), pick(column.upper, rows)
        return replace(column, codes=pick(column.codes, rows), lower=lower, upper=upper, node=pick(column.node, rows))
    size = np.diff(column.offsets)[rows]
    member = np.repeat(column.offsets[rows] - np.cumsum(size) + size, size) + np.arange(size.sum())
    counts = None if column.counts is None else column.counts[member]
    offsets = np.concatenate([[0], np.cumsum(size)])
    return replace(
        column, offsets=offsets, codes=pick(column.codes, member), node=pick(column.node, member), counts=counts
    )


def _held(column: ReadColumn, class_of_row: IntArray, classes: int) -> BoolArray:
    """Sensitive codes of each class."""
    holds = np.zeros((classes, column.domain.size), dtype=bool)
    if column.shape == "value" and column.codes is not None:
        holds[class_of_row, column.codes] = True
    elif column.shape == "counts" and column.offsets is not None and column.codes is not None:
        row = np.repeat(np.arange(len(class_of_row)), np.diff(column.offsets))
        holds[class_of_row[row], column.codes] = True
    else:
        raise ColumnError(f"column '{column.domain.name}' is {column.shape}; sensitive values must be plain or counted")
    return holds


def _sliced(overlap: ReadTable, release: ReadTable, qi: list[str], sensitive: str) -> Evidence:
    """Classes are buckets, or (bucket, part) pairs where the sensitive column holds quasi-identifiers."""
    _, bucket = np.unique(release.columns["bucket"].value_codes(), return_inverse=True)
    own = release.columns[sensitive].slice
    groups: dict[str, list[int]] = {}
    for a, name in enumerate(qi):
        groups.setdefault(release.columns[name].slice or f" {name}", []).append(a)
    class_of_row = bucket.astype(np.int64)
    if own in groups:
        partners = distinct_boxes(overlap, release, [qi[a] for a in groups[own]])
        _, class_of_row = np.unique(mixed_key([class_of_row, partners.of_row], None)[0], return_inverse=True)
    classes = int(class_of_row.max()) + 1
    slices = []
    for name, members in groups.items():
        parts = distinct_boxes(overlap, release, [qi[a] for a in members])
        # a pair class shows its own part of the sensitive column, but all parts of its bucket elsewhere
        shows = (parts.of_row, class_of_row) if name == own else _of_buckets(parts.of_row, bucket, class_of_row)
        shown = sparse.csr_matrix((np.ones(len(shows[0])), shows), shape=(parts.number, classes))
        slices.append(_Slice(tuple(members), parts, shown))
    holds = _held(release.columns[sensitive], class_of_row, classes)
    return Evidence(qi, classes, class_of_row, holds, None, release, slices)


def _of_buckets(part: IntArray, bucket: IntArray, class_of_row: IntArray) -> tuple[IntArray, IntArray]:
    """Every (part, class) such that the class's bucket shows the part."""
    buckets, classes = int(bucket.max()) + 1, int(class_of_row.max()) + 1
    parts = int(part.max()) + 1
    in_bucket = sparse.csr_matrix((np.ones(len(part)), (part, bucket)), shape=(parts, buckets))
    of_bucket = sparse.csr_matrix((np.ones(len(part)), (bucket, class_of_row)), shape=(buckets, classes))
    both = (in_bucket @ of_bucket).tocoo()
    return both.row.astype(np.int64), both.col.astype(np.int64)
