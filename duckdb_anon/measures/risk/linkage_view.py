"""A release as an attacker holds it: cells of each column, which rows are alike, and who carries which secret.

Rows of an ordinary release that look alike are one unit. In a sliced release nobody can tell which rows of two
columns belong together, so a unit is a bucket, every column (part) scores it by its own rows, and the rows of the
sensitive value's column vote with their own part and what the other columns say of their bucket. A register has the
quasi-identifiers of every individual of the original; where the method moves values, its call is run on it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from duckdb_anon.kernels.attacks.linkage_scores import JoinedCells
from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import ReadTable
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import is_plain, require_columns, require_rows, source_rows, times_counted
from duckdb_anon.measures.risk.sensitive_attributes import Secret, read_secret
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, listed

PUBLISHED, SIMULATED, BOOTSTRAP = "published", "simulated", "bootstrap"
"""How an attacker knows P(published | value): cells or probabilities state it, the call is known and run again on the
release, or, where the method is unknown, near records of the release stand in for it, which finds less."""


@dataclass(frozen=True)
class PublishedPart:
    """Columns that are published together."""

    columns: tuple[int, ...]  # their places among the quasi-identifiers
    cells: CodeArray  # cell of each of them in each different row, shape (columns, rows)
    row_of_voter: IntArray  # which of them each voter is (a unit, or a row of a sliced release), shape (voters,)

    def cell_of_voter(self, a: int) -> CodeArray:
        """Cell of each voter in column `a`."""
        return np.asarray(self.cells[self.columns.index(a), self.row_of_voter])


@dataclass(frozen=True)
class Replay:
    """What the release's own call does to the release's own rows, or where it is unknown, how near records differ."""

    before: CodeArray  # before, after: codes of each quasi-identifier of each row, shape (columns, rows)
    after: CodeArray
    # group of each released row inside which the call moves its values; None where it forms none
    group: IntArray | None
    of_call: bool = True  # whether the call is known, and was run


@dataclass(frozen=True, eq=False)
class Register:
    """Quasi-identifiers of every individual of the original."""

    values: CodeArray  # code of each quasi-identifier of each individual, shape (columns, individuals)
    known: BoolArray  # which of the columns it has, shape (columns,)
    # group of each individual where the call is run on the register; None where it forms none
    group: IntArray | None = None
    # codes that the call gives the individuals, shape (columns, individuals); None without groups
    published: CodeArray | None = None


@dataclass(frozen=True, eq=False)
class PublishedRecords:
    """A release, ready to be attacked; equal to itself alone."""

    qi: list[str]  # names of the quasi-identifiers
    # their cells, and then for each value of a list that the attacker knows the cells of that list
    columns: list[Ranges]
    parts: list[PublishedPart]  # one for ordinary releases, one a column for sliced ones
    start: IntArray | None  # first voter of each bucket and the number of voters, for sliced releases; else None
    size: FloatArray  # released rows of each unit, shape (units,)
    unit_of_row: IntArray  # unit of each released row
    # a bucket or a class of equal boxes; None where rows show none
    group_of_unit: IntArray | None
    secrets: list[Secret]  # the sensitive columns
    persons: bool  # whether rows are persons, who can be found; noisy cells are not
    replay: Replay | None = None  # what the call that made it does; None where it is unknown or not needed
    # quasi-identifiers of all individuals, for the attacker who has them; None where individuals have several rows
    register: Register | None = None
    linked: bool = True  # whether the original record of each row is known, so that a find can be scored

    @cached_property
    def first_row(self) -> IntArray:
        """A released row of each unit."""
        return np.unique(self.unit_of_row, return_index=True)[1]

    @cached_property
    def joined(self) -> list[JoinedCells]:
        """The different rows of each part, columns of few cells joined."""
        return [JoinedCells.of(part.cells, [self.columns[a].number for a in part.columns]) for part in self.parts]

    @property
    def channel(self) -> str:
        """How P(published | value) is known, `PUBLISHED`, `SIMULATED` or `BOOTSTRAP`."""
        if self.replay is None:
            return PUBLISHED
        return SIMULATED if self.replay.of_call else BOOTSTRAP

    @property
    def randomized(self) -> bool:
        """Whether a column has a published channel."""
        return any(cells.channel is not None for cells in self.columns)

    @property
    def plain(self) -> bool:
        """Whether rows are plain values that may have been moved."""
        return all(c.plain for c in self.columns) and self.start is None and self.group_of_unit is None

    def values_of_cells(self, secret: Secret, a: int) -> scipy.sparse.csr_matrix:
        """Rows of each cell of column `a` that hold each sensitive value; in other slices by the bucket's shares."""
        k, part = next((k, part) for k, part in enumerate(self.parts) if a in part.columns)
        cell, values = part.cell_of_voter(a), secret.by_voter
        voters = np.arange(len(cell))
        of_cell = scipy.sparse.csr_matrix((np.ones(len(cell)), (cell, voters)), (self.columns[a].number, len(cell)))
        if self.start is not None and k != secret.part:
            size = np.diff(self.start)
            of_bucket = scipy.sparse.csr_matrix((np.ones(len(cell)), (np.repeat(np.arange(len(size)), size), voters)))
            mixed = scipy.sparse.diags_array(1.0 / size) @ (of_bucket @ values if secret.part >= 0 else values)
            return (of_cell @ of_bucket.T @ mixed).tocsr()
        return (of_cell @ values).tocsr()


_Made = TypeVar("_Made")


def once_per_release(work: Callable[[PublishedRecords], _Made]) -> Callable[[PublishedRecords], _Made]:
    """Work that several attackers need, done once for each release."""
    made: WeakKeyDictionary[PublishedRecords, _Made] = WeakKeyDictionary()

    @wraps(work)
    def found(release: PublishedRecords) -> _Made:
        if release not in made:
            made[release] = work(release)
        return made[release]

    return found


def published(
    release: ReadTable,
    qi: Sequence[str],
    sensitive: Sequence[str],
    replay: ReadTable | None = None,
    known_values: int = 0,
) -> PublishedRecords:
    """Read a release of any format."""
    require_columns(release, [*qi, *sensitive])
    require_rows(release, "release")
    columns = [release.columns[name].comparable() for name in qi]
    lists = [name for name in sensitive if release.columns[name].lists_nodes]
    if known_values and len(lists) < max(len(sensitive), 1):
        raise ParameterError(
            f"known_values := {known_values} needs a release with a row per individual and a list of "
            f"values (one_to_m_generalize, rmr); rows of this one show {listed(sensitive) or 'no sensitive value'} one "
            "by one, so knowing some values finds no further row of the individual; leave known_values out"
        )
    for name in lists:
        columns += [release.columns[name].comparable()] * known_values
    units = _sliced if any(release.columns[name].slice for name in qi) else _ordinary
    known = None if replay is None else _replay(release, replay, qi)
    return replace(units(release, list(qi), sensitive, columns), replay=known)


def _bucket_of_row(release: ReadTable) -> IntArray | None:
    if not release.contents.bucket:
        return None
    return np.unique(release.buckets(), return_inverse=True)[1].astype(np.int64)


def _ordinary(release: ReadTable, qi: list[str], sensitive: Sequence[str], columns: list[Ranges]) -> PublishedRecords:
    """Units of equal rows."""
    weight, bucket = times_counted(release), _bucket_of_row(release)
    keys = [c.of_row for c in columns] + ([bucket] if bucket is not None else [])
    unit, first = keys_of(keys)
    cells = np.stack([c.of_row[first] for c in columns]).astype(np.int32)
    size = np.bincount(unit, weights=weight).astype(np.float64)
    cell_of_unit = [c.of_row[first] for c in columns[: len(qi)]]
    boxes = not all(c.plain for c in columns[: len(qi)]) or any(release.columns[n].lists_nodes for n in sensitive)
    # known values of a list distinguish rows of a class; knowledge of the class does not
    group = bucket[first] if bucket is not None else keys_of(cell_of_unit).of_row if boxes else None
    secrets = [read_secret(name, release.columns[name], 0, unit, weight, len(first)) for name in sensitive]
    part = PublishedPart(tuple(range(len(columns))), cells, np.arange(len(first)))
    return PublishedRecords(
        qi, columns, [part], None, size, unit.astype(np.int64), group, secrets, persons=not release.counted
    )


def _sliced(release: ReadTable, qi: list[str], sensitive: Sequence[str], columns: list[Ranges]) -> PublishedRecords:
    """Units that are buckets."""
    bucket = _bucket_of_row(release)
    if bucket is None:
        raise ColumnError("the release has STRUCT columns but no column bucket; a sliced release has both")
    order = np.argsort(bucket, kind="stable")
    voter = np.empty(release.rows, dtype=np.int64)
    voter[order] = np.arange(release.rows)
    members = release.slices(qi)
    parts = []
    for which in members.values():
        cells = np.stack([columns[a].of_row[order] for a in which]).astype(np.int32)
        rows = keys_of(list(cells))
        parts.append(PublishedPart(tuple(which), cells[:, rows.first], rows.of_row))
    part_number = {name: k for k, name in enumerate(members)}
    size = np.bincount(bucket).astype(np.float64)
    start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    secrets = []
    for name in sensitive:
        part = part_number.get(release.columns[name].slice, -1)
        voters, number = (voter, release.rows) if part >= 0 else (bucket, len(size))
        secrets.append(read_secret(name, release.columns[name], part, voters, np.ones(release.rows), number))
    each = np.arange(len(size))
    return PublishedRecords(qi, columns, parts, start, size, bucket, each, secrets, persons=not release.counted)


def _replay(release: ReadTable, again: ReadTable, qi: Sequence[str]) -> Replay | None:
    """Pairs of values before and after, row by row; None where the call's answer is no table of plain values."""
    if again.sources() is None or any(name not in again.columns for name in qi) or not is_plain(again, qi):
        return None
    source = source_rows(release, again)
    real = source >= 0
    before = np.stack([release.columns[name].value_codes()[source[real]] for name in qi])
    after = np.stack([again.columns[name].value_codes()[real] for name in qi])
    found = moved_within(again)
    group = None if found is None or not real.all() else np.empty(release.rows, dtype=np.int64)
    if found is not None and group is not None:
        group[source] = found
    return Replay(before, after, group)


def register_of(original: ReadTable, again: ReadTable | None, qi: Sequence[str], known: BoolArray) -> Register:
    """The register of a table; `again`: what the release's call makes of its quasi-identifiers."""
    values = np.stack([original.columns[name].value_codes() for name in qi]).astype(np.int32)
    if again is None or again.sources() is None or not is_plain(again, qi) or (group := moved_within(again)) is None:
        return Register(values, known)
    source = source_rows(original, again)
    if (np.bincount(source[source >= 0], minlength=original.rows) != 1).any():
        return Register(values, known)
    order = np.argsort(source, kind="stable")[-original.rows :]
    published = np.stack([again.columns[name].value_codes()[order] for name in qi]).astype(np.int32)
    return Register(values, known, group[order], published)


def moved_within(again: ReadTable) -> IntArray | None:
    """Group of each row inside which a method moved values; None where it formed no groups."""
    numbers = again.numbers.get(again.contents.group)
    if numbers is None:
        return None
    group = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return group if group.max(initial=0) > 0 else None


def refined(release: PublishedRecords, label_of_row: Sequence[IntArray]) -> PublishedRecords:
    """The same plain or generalized records, with units of rows that also have equal labels."""
    unit, first = keys_of([release.unit_of_row, *label_of_row])
    before = release.unit_of_row[first]
    rows, units = len(unit), len(first)
    size = np.bincount(unit).astype(np.float64)
    to_unit = scipy.sparse.csr_matrix((np.ones(rows), (unit, np.arange(rows))), (units, rows))
    secrets = [
        replace(secret, by_voter=(to_unit @ secret.of_rows(np.arange(rows))).tocsr()) for secret in release.secrets
    ]
    group = None if release.group_of_unit is None else release.group_of_unit[before]
    parts = [
        replace(part, cells=part.cells[:, part.row_of_voter[before]], row_of_voter=np.arange(units))
        for part in release.parts
    ]
    return replace(
        release, parts=parts, size=size, unit_of_row=unit.astype(np.int64), group_of_unit=group, secrets=secrets
    )
