"""How many of a population each class of a release stands for: shared by k_map and delta_presence.

The classes are the distinct combinations of printed quasi-identifiers; a person belongs to one where each of her
values equals or lies in what is printed. NULL equals NULL and what covers everything.
Cost: distinct persons times distinct classes, in blocks; one sort where all columns are plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.cell_coverage import distinct_boxes, is_plain, require_columns
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import ReadTable

_BLOCK = 4_000_000


@dataclass(frozen=True)
class Matched:
    """Classes of a release and the persons of a population.

    Attributes:
        rows: released rows of each class.
        persons: persons of the population in each class.
        classes_of_person: number of classes each person of the population belongs to.
        class_of_person: the last of them, -1 for none.
    """

    rows: IntArray
    persons: IntArray
    classes_of_person: IntArray
    class_of_person: IntArray


def matched(function: str, release: ReadTable, population: ReadTable, names: Sequence[str]) -> Matched:
    """Match a population to the classes of a release.

    Args:
        function: SQL function, for messages.
        release: a release of rows or boxes.
        population: a row a person, plain values.
        names: the quasi-identifiers.

    Raises:
        ColumnError: the release lacks a column.
        RequirementError: one of the tables is empty.
    """
    for table in (release, population):
        require_columns(function, table, names)
    if not release.rows or not population.rows:
        raise RequirementError(f"{function}: the release or the population is empty; there is nothing to match")
    theirs = [population.columns[name].value_codes().astype(np.int64) for name in names]
    if is_plain(release, names):
        ours = [release.columns[name].value_codes().astype(np.int64) for name in names]
        both = keys_of([np.concatenate(pair) for pair in zip(ours, theirs, strict=True)]).of_row
        key, number = np.unique(both[: release.rows], return_inverse=True)
        asked = both[release.rows :]
        place = np.minimum(np.searchsorted(key, asked), len(key) - 1)
        mine = np.where(key[place] == asked, place, -1).astype(np.int64)
        persons = np.bincount(mine[mine >= 0], minlength=len(key))
        return Matched(np.bincount(number), persons, (mine >= 0).astype(np.int64), mine)
    boxes = distinct_boxes(population, release, names)
    of_person, first = keys_of(theirs)
    many = np.bincount(of_person).astype(np.float64)
    persons_of = np.zeros(boxes.number)
    classes, last = np.zeros(len(first), dtype=np.int64), np.full(len(first), -1, dtype=np.int64)
    step = max(1, _BLOCK // boxes.number)
    for at in range(0, len(first), step):
        tick()
        block = first[at : at + step]
        covered = boxes.covers(0)[theirs[0][block]]
        for a in range(1, len(names)):
            covered = covered & boxes.covers(a)[theirs[a][block]]
        persons_of += _counted(many[at : at + step], covered.astype(np.float32))
        classes[at : at + step] = covered.sum(axis=1)
        last[at : at + step] = np.where(covered.any(axis=1), covered.argmax(axis=1), -1)
    rows = np.bincount(boxes.of_row, minlength=boxes.number)
    return Matched(rows, persons_of.astype(np.int64), classes[of_person], last[of_person])


def _counted(many: FloatArray, covered: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> FloatArray:
    counts: FloatArray = many @ covered
    return counts
