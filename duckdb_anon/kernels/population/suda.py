"""Minimal sample uniques: the smallest sets of columns on which a record is unique.

SUDA (Elliot, Manning and Ford 2002), as SUDA2 (Manning, Haglin and Keane 2008) defines its answer: a set of columns is
a minimal sample unique of a record if the record is unique on it and on no subset of it. Found level by level: a
record unique on a set is unique on every larger one, so the sets one column smaller suffice. Cost: one sort of the
rows for each set of up to `largest` columns; memory of one bit a row and set of two levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import BoolArray, CodeArray, IntArray
from duckdb_anon.model.progress import tick


def minimal_uniques(columns: Sequence[CodeArray], largest: int) -> Iterator[tuple[tuple[int, ...], IntArray]]:
    """Yield sets of columns, small ones first, with the rows of which they are minimal sample uniques.

    `columns`: code of each row on each quasi-identifier; `largest`: columns of the largest set.

    >>> a, b = np.array([0, 0, 0, 1], np.int32), np.array([0, 0, 1, 1], np.int32)
    >>> [(names, rows.tolist()) for names, rows in minimal_uniques([a, b], 2)]
    [((0,), [3]), ((0, 1), [2])]
    """
    rows = len(columns[0])
    below: dict[tuple[int, ...], NDArray[np.uint8]] = {}
    for size in range(1, largest + 1):
        here: dict[tuple[int, ...], NDArray[np.uint8]] = {}
        for names in combinations(range(len(columns)), size):
            tick()
            unique = _is_unique([columns[name] for name in names])
            covered = np.zeros(rows, dtype=bool)
            for part in combinations(names, size - 1):
                if part:
                    covered |= np.unpackbits(below[part], count=rows).astype(bool)
            minimal = np.flatnonzero(unique & ~covered)
            here[names] = np.packbits(unique)
            if len(minimal):
                yield names, minimal
        below = here


def _is_unique(columns: Sequence[CodeArray]) -> BoolArray:
    key = keys_of(columns).of_row
    unique: BoolArray = np.bincount(key)[key] == 1
    return unique
