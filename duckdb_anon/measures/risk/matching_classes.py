"""What a release tells about persons whose quasi-identifiers are known: matching classes, values they hold.

A class is what an attacker cannot look inside: rows with equal boxes, or a bucket of a sliced release (with
the part of the sensitive column that holds quasi-identifiers, if there is one). A person matches a class when
her values are covered; in a sliced release, when every column of the bucket has a cell that covers her part.
Rows with a noisy count that rounds below 1 are taken as absent.

p(t, s), how surely a person t is linked to a sensitive value s: in a sliced release as slicing defines it (Li, Li,
Zhang and Molloy 2012, section 5; see `kernels.slicing.diversity`), elsewhere the share of s among the rows that cover
her, a row with a noisy count standing for that many. Cost: persons times classes, in blocks chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.cell_coverage import DistinctBoxes, distinct_boxes
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.release_table import BoolArray, ReadColumn, ReadTable


@dataclass
class _Slice:
    """One column of a sliced release: its distinct parts, and in which share of its cells each class shows them."""

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
        weight: how much each class speaks for each sensitive code, shape (classes, sensitive domain): rows, in a
            sliced release as a share of the bucket's.
        boxes: the classes' boxes; None for a sliced release.
        slices: columns of a sliced release; none for the others.
        release: the rows that are present.
    """

    qi: list[str]
    classes: int
    class_of_row: IntArray
    weight: FloatArray
    boxes: DistinctBoxes | None
    release: ReadTable
    slices: list[_Slice] = field(default_factory=list)

    @property
    def holds(self) -> BoolArray:
        """Whether each class holds each sensitive code, shape (classes, sensitive domain)."""
        return np.asarray(self.weight > 0, dtype=bool)

    def matches(self, persons: Sequence[IntArray]) -> BoolArray:
        """Whether each person matches each class.

        Args:
            persons: code of each quasi-identifier of each person, each of shape (persons,).

        Returns:
            Shape (persons, classes).
        """
        if self.boxes is not None:
            return _covered(self.boxes, range(len(self.qi)), persons)
        return np.asarray(self._shown(persons) > 0, dtype=bool)

    def linked(self, persons: Sequence[IntArray]) -> FloatArray:
        """p(t, s) of each person and sensitive code; all 0 for a person whom no class matches.

        Args:
            persons: as for `matches`.

        Returns:
            Shape (persons, sensitive domain), in [0, 1].
        """
        shown = self.matches(persons).astype(np.float64) if self.boxes is not None else self._shown(persons)
        mass = shown @ self.weight
        total = mass.sum(axis=1, keepdims=True)
        probability: FloatArray = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
        return probability

    def _shown(self, persons: Sequence[IntArray]) -> FloatArray:
        """Product of the shares of each class's cells that cover each person's parts, shape (persons, classes)."""
        product = np.ones((len(persons[0]), self.classes))
        for column in self.slices:
            known = [persons[a] for a in column.names]
            covered = sparse.csr_matrix(_covered(column.parts, range(len(known)), known), dtype=np.float64)
            product *= (covered @ column.shown).toarray()
        return product

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


def evidence(
    function: str, overlap: ReadTable, release: ReadTable, qi: list[str], sensitive: str, *, as_published: bool = False
) -> Evidence:
    """Read a release of any shape whose cells say what they stand for.

    Args:
        function: SQL function, for messages.
        overlap: the persons asked about.
        release: what was published.
        qi: names of the quasi-identifiers.
        sensitive: the sensitive column.
        as_published: take the rows of a sliced release as they are printed, as if its columns belonged together.

    Raises:
        ColumnError: the release lacks a column, or randomizes values so that every value is possible.
    """
    missing = [name for name in [*qi, sensitive] if name not in release.columns]
    if missing:
        raise ColumnError(f"{function}: a release has no column {', '.join(missing)}")
    if any(release.columns[name].channel is not None for name in [*qi, sensitive]):
        raise ColumnError(f"{function}: a randomized release leaves every value possible; it cannot be intersected")
    release = _present(release)
    if any(release.columns[name].slice for name in qi) and not as_published:
        return _sliced(overlap, release, qi, sensitive)
    boxes = distinct_boxes(overlap, release, qi)
    return Evidence(
        qi, boxes.number, boxes.of_row, _held(release, sensitive, boxes.of_row, boxes.number), boxes, release
    )


def _rounded_counts(release: ReadTable) -> FloatArray:
    """How many rows each row stands for: its noisy count, rounded, and 1 where there is none."""
    if not release.counted:
        return np.ones(release.rows)
    return np.asarray(np.floor(release.row_weights() + 0.5))


def _present(release: ReadTable) -> ReadTable:
    """Only the rows that stand for 1 or more."""
    if not release.counted:
        return release
    rows = np.flatnonzero(_rounded_counts(release) >= 1)
    columns = {name: _taken(column, rows) for name, column in release.columns.items()}
    numbers = {name: values[rows] for name, values in release.numbers.items()}
    return ReadTable(len(rows), columns, release.contents, numbers)


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


def _held(release: ReadTable, sensitive: str, class_of_row: IntArray, classes: int) -> FloatArray:
    """Rows of each class that hold each sensitive code; a row with counts of many values is shared among them."""
    column = release.columns[sensitive]
    if column.codes is not None and column.shape == "value":
        row, share = np.arange(release.rows), _rounded_counts(release)
    elif column.codes is not None and column.offsets is not None and column.counts is not None:
        row = np.repeat(np.arange(release.rows), np.diff(column.offsets))
        share = column.counts / np.bincount(row, weights=column.counts)[row]
    else:
        raise ColumnError(f"column '{column.domain.name}' is {column.shape}; sensitive values must be plain or counted")
    size = column.domain.size
    held = np.bincount(class_of_row[row] * size + column.codes, weights=share, minlength=classes * size)
    return held.astype(np.float64).reshape(classes, size)


def _sliced(overlap: ReadTable, release: ReadTable, qi: list[str], sensitive: str) -> Evidence:
    """Classes are buckets, or (bucket, part) pairs where the sensitive column holds quasi-identifiers."""
    _, bucket = np.unique(release.buckets(), return_inverse=True)
    own = release.columns[sensitive].slice
    groups: dict[str, list[int]] = {}
    for a, name in enumerate(qi):
        groups.setdefault(release.columns[name].slice or f" {name}", []).append(a)
    class_of_row = bucket.astype(np.int64)
    if own in groups:
        partners = distinct_boxes(overlap, release, [qi[a] for a in groups[own]])
        class_of_row = keys_of([class_of_row, partners.of_row]).of_row
    classes = int(class_of_row.max()) + 1
    one_row = np.unique(class_of_row, return_index=True)[1]
    bucket_size = np.bincount(bucket)
    of_bucket = _table(np.ones(classes), bucket[one_row], np.arange(classes), (len(bucket_size), classes))
    slices = []
    for name, members in groups.items():
        parts = distinct_boxes(overlap, release, [qi[a] for a in members])
        if name == own:  # a class shows its own part of the sensitive column, but all parts of its bucket elsewhere
            shown = _table(np.ones(classes), parts.of_row[one_row], np.arange(classes), (parts.number, classes))
        else:
            share = 1 / bucket_size[bucket]
            shown = _table(share, parts.of_row, bucket, (parts.number, len(bucket_size))) @ of_bucket
        slices.append(_Slice(tuple(members), parts, shown))
    weight = _held(release, sensitive, class_of_row, classes) / bucket_size[bucket[one_row]][:, None]
    return Evidence(qi, classes, class_of_row, weight, None, release, slices)


def _table(values: FloatArray, row: IntArray, column: IntArray, shape: tuple[int, int]) -> sparse.csr_matrix:
    """Sparse sums of values by (row, column)."""
    return sparse.csr_matrix((values, (row, column)), shape=shape)
