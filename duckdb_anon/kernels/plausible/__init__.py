"""Plausible tables: rows of the original drawn from what a release says, and from nothing else.

A joint model of the columns (a tree, Chow and Liu 1968) is learnt from the release alone by data augmentation (Tanner
and Wong 1987), and tables are drawn from it: exact cells as they are, generalized ones inside their cell, values of a
bucket as often as it has them, randomized ones from their posterior, samples repeated by their weight. What is learnt
of the columns is a model: the spread of the draws says nothing of its error.

    release = read_release("impute", table, ["income"], rng)
    Drawing([LinkedRelease(release)], rng).draws(10)
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from duckdb_anon.kernels.plausible.augmentation import Augmentation
from duckdb_anon.kernels.plausible.linked import LinkedRelease, drawn_together
from duckdb_anon.kernels.plausible.reading import Release, Source, read_release
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.number_scale import Numbers

__all__ = [
    "Drawing",
    "LinkedRelease",
    "Release",
    "Source",
    "read_release",
]

Draw = dict[str, tuple[CodeArray, Numbers | None]]
"""By column that is not exact: code of each row, of a hierarchy leaf, and where it is -1 the number on its scale."""


class Drawing:
    """Tables that may have been the originals, drawn one after another; what is drawn stays when a draw is interrupted.

    The tables of a database are drawn together, so that an individual has the same values wherever they join.
    """

    def __init__(self, releases: Sequence[LinkedRelease], rng: np.random.Generator) -> None:
        """`releases`: the tables, each after its parent."""
        self._releases, self._rng = releases, rng
        self._model: Augmentation | None = None
        self._done: list[list[Draw]] = []

    def draws(self, number: int) -> list[list[Draw]]:
        """So many draws, those that were made before first; of each table the columns that are not exact."""
        if self._model is None and len(self._releases) == 1:
            rng = deepcopy(self._rng)
            self._model, self._rng = Augmentation(self._releases[0].release.evidence, rng), rng
        while len(self._done) < number:
            rng = deepcopy(self._rng)  # an interrupted draw begins again where it began
            model = None if self._model is None else self._model.copied(rng)
            if model is None:
                atoms = drawn_together(self._releases, rng)
                drawn = [
                    {name: _values(one.release, k, of_table[k], rng) for k, name in _drawn_columns(one.release)}
                    for one, of_table in zip(self._releases, atoms, strict=True)
                ]
            else:
                model.step()
                release = self._releases[0].release
                drawn = [{name: _values(release, k, model.atoms(k), rng) for k, name in _drawn_columns(release)}]
            self._model, self._rng = model, rng
            self._done.append(drawn)
        return self._done[:number]


def _drawn_columns(release: Release) -> list[tuple[int, str]]:
    return [(k, source.name) for k, source in enumerate(release.sources) if not source.exact]


def _values(release: Release, k: int, atoms: IntArray, rng: np.random.Generator) -> tuple[CodeArray, Numbers | None]:
    line, first = release.sources[k].line, release.evidence.first
    if line.low is None:
        return line.codes[atoms], None
    random = rng.random(len(atoms))
    if first is not None and release.evidence.per_person[k]:
        random = random[first]
    return line.codes[atoms], line.numbers(atoms, random)
