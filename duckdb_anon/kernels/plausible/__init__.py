"""Plausible tables: rows of the original drawn from what a release says, and from nothing else.

A joint model of the columns (a tree, Chow and Liu 1968) is learnt from the release alone by data augmentation (Tanner
and Wong 1987), and tables are drawn from it: exact cells as they are, generalized ones inside their cell, values of a
bucket as often as it has them, randomized ones from their posterior, samples repeated by their weight. What is learnt
of the columns is a model: the spread of the draws says nothing of its error.

    release = read_release("impute", table, ["income"], rng)
    for draw in plausible_tables(release, 10, rng):
        ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from duckdb_anon.kernels.plausible.augmentation import Augmentation
from duckdb_anon.kernels.plausible.linked import LinkedRelease, drawn_together
from duckdb_anon.kernels.plausible.reading import Release, Source, read_release
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.number_scale import Numbers

__all__ = [
    "LinkedRelease",
    "Release",
    "Source",
    "plausible_database",
    "plausible_tables",
    "read_release",
]

Draw = dict[str, tuple[CodeArray, Numbers | None]]
"""By column that is not exact: code of each row, of a hierarchy leaf, and where it is -1 the number on its scale."""


def plausible_tables(release: Release, draws: int, rng: np.random.Generator) -> Iterator[Draw]:
    """Draw tables that may have been the original.

    Yields:
        The columns that are not exact, each with as many rows as `release.rows`.
    """
    model = Augmentation(release.evidence, rng)
    for _ in range(draws):
        model.step()
        yield {
            source.name: _values(release, k, model.atoms(k), rng)
            for k, source in enumerate(release.sources)
            if not source.exact
        }


def plausible_database(releases: Sequence[LinkedRelease], draws: int, rng: np.random.Generator) -> Iterator[list[Draw]]:
    """Draw the tables of a database together, so that an individual has the same values wherever tables join.

    Args:
        releases: the tables, each after its parent.
        draws: number of draws.
        rng: the generator.

    Yields:
        For each table what `plausible_tables` yields.
    """
    for _ in range(draws):
        yield [
            {
                source.name: _values(linked.release, k, atoms[k], rng)
                for k, source in enumerate(linked.release.sources)
                if not source.exact
            }
            for linked, atoms in zip(releases, drawn_together(releases, rng), strict=True)
        ]


def _values(release: Release, k: int, atoms: IntArray, rng: np.random.Generator) -> tuple[CodeArray, Numbers | None]:
    line, first = release.sources[k].line, release.evidence.first
    if line.low is None:
        return line.codes[atoms], None
    random = rng.random(len(atoms))
    if first is not None and release.evidence.per_person[k]:
        random = random[first]
    return line.codes[atoms], line.numbers(atoms, random)
