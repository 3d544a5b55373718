"""Tables of a database completed together: a row knows what was drawn of its parent, and how many children it has.

Tables come one after another, parents first. The columns of a row's parent and of what is above it, as they were drawn,
are exact evidence for the row (ancestral sampling: Pearl 1988); the number of rows below a row, and what the first of
them shows, are evidence for the row itself. So a person has one date of birth in all tables of a draw, and ages at a
visit are those of the model and not of two boxes that know nothing of each other.
Cost: that of `augmentation` for each table and draw; tables whose cells are all exact cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.line import Line
from duckdb_anon.kernels.plausible.augmentation import Augmentation
from duckdb_anon.kernels.plausible.columns import Column
from duckdb_anon.kernels.plausible.reading import Release
from duckdb_anon.model.coded_table import CodeArray, IntArray

_MOST_ROWS_BELOW = 30
"""Rows below a row are counted up to so many."""


@dataclass(frozen=True)
class LinkedRelease:
    """A release whose rows belong to rows of another one.

    Attributes:
        release: the release.
        parent: place of the parent among the releases, -1 for none.
        parent_row: row of the parent's drawn table that each row belongs to, -1 for none, shape (rows,);
            not read without a parent.
    """

    release: Release
    parent: int = -1
    parent_row: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def is_open(self) -> bool:
        """Whether some column is drawn."""
        return not all(source.exact for source in self.release.sources)


def drawn_together(releases: Sequence[LinkedRelease], rng: np.random.Generator) -> list[list[IntArray]]:
    """Draw the atoms of each column of each release once, shape (rows,) each."""
    drawn: list[list[IntArray]] = []
    inherited: list[list[Column]] = []
    for place, linked in enumerate(releases):
        own = [source.column for source in linked.release.sources]
        above = [
            _of_parent(column, linked.parent_row) for column in (inherited[linked.parent] if linked.parent >= 0 else ())
        ]
        atoms = [np.asarray(column.cell, dtype=np.int64) for column in own]
        if linked.is_open:
            atoms = _completed(linked.release, [*above, *_of_children(releases, place)], rng)
        drawn.append(atoms)
        known = [_exact(each, len(column.shares)) for each, column in zip(atoms, own, strict=True)]
        inherited.append([*above, *known])
    return drawn


def _completed(release: Release, evidence: Sequence[Column], rng: np.random.Generator) -> list[IntArray]:
    """Draw the atoms of a release's columns given further columns of its rows."""
    columns = (*release.evidence.columns, *evidence)
    more = len(evidence)
    given = replace(
        release.evidence,
        columns=columns,
        sensitive=(*release.evidence.sensitive, *[False] * more),
        block=(*release.evidence.block, *[0] * more),
        per_person=(*release.evidence.per_person, *[False] * more),
    )
    model = Augmentation(given, rng)
    model.step()
    return [model.atoms(k) for k, _ in enumerate(release.sources)]


def _exact(atoms: IntArray, size: int) -> Column:
    """A column whose rows have these atoms."""
    every = np.arange(size)
    cells = Ranges(Line.of_widths(np.ones(size)), every, every)
    return Column.of(cells, atoms, np.bincount(atoms, minlength=size).astype(np.float64))


def _of_parent(column: Column, row: IntArray) -> Column:
    """A column of the parent as its children have it; those without a parent have an atom of their own."""
    atoms = np.where(row >= 0, column.cell[row], len(column.shares))
    return _exact(atoms, len(column.shares) + 1)


def _of_children(releases: Sequence[LinkedRelease], place: int) -> list[Column]:
    """For each table below: the number of rows below each row, and what the first of them shows."""
    rows = len(releases[place].release.rows)
    found: list[Column] = []
    for child in releases:
        if child.parent != place:
            continue
        there = np.flatnonzero(child.parent_row >= 0)
        parents = child.parent_row[there]
        counts = np.minimum(np.bincount(parents, minlength=rows), _MOST_ROWS_BELOW)
        found.append(_exact(counts, _MOST_ROWS_BELOW + 1))
        first = np.full(rows, -1)
        first[parents[::-1]] = there[::-1]
        found += [_of_first(source.column, first) for source in child.release.sources]
    return found


def _of_first(column: Column, first: IntArray) -> Column:
    """A column of the first row below each row; rows without one have a cell and an atom of their own."""
    cells, atom = column.cells, len(column.shares)
    if cells.noisy:
        return _exact(np.where(first >= 0, cells.first[column.cell[first]], atom), atom + 1)
    shares = np.append(column.shares, max(float((first < 0).mean()), 1e-9))
    cell: CodeArray = np.where(first >= 0, column.cell[first], cells.number).astype(np.int32)
    return Column.of(cells.with_one_more(atom), cell, shares)
