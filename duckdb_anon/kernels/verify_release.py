"""Checking a finished release: its classes are formed again, from the published cells and nothing else.

Two groups of a partition may be published as the same box and are then one class. Cost: a sort of the groups'
cells, and one pass over the rows for the requirement.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.array_ops import gathered
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_models import PrivacyModel
from duckdb_anon.kernels.row_keys import compact, keys_of, keys_of_lists
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.released_columns import Cells, Coded, Interval, Node, ValueSet


def recheck(
    function: str,
    published: Sequence[Cells],
    sensitive: CodeArray | None,
    rows: IntArray,
    requirement: PrivacyModel,
    person: CodeArray | None = None,
) -> None:
    """Make sure that every class of published cells satisfies the requirement.

    `rows`: source row of each published row; t-closeness still refers to the whole table.

    Raises:
        RequirementError: some class does not.
    """
    if len(rows) == 0:
        return
    codes = None if sensitive is None else sensitive[rows]
    source = np.zeros(1 if sensitive is None else len(sensitive), dtype=np.int64)
    counts = Groups(source, sensitive, person=None if sensitive is None else person).table_counts
    person_of_row = None if person is None else person[rows]
    satisfied = requirement.holds(Groups(classes_of(published), codes, counts, person_of_row))
    if not satisfied.all():
        raise RequirementError(
            f"{function}: {int((~satisfied).sum())} finished classes fail the requirement; nothing is released. This "
            "is an error of the package, not of the call"
        )


def classes_of(published: Sequence[Cells]) -> IntArray:
    """Return the class of each published row: rows with equal cells everywhere have the same number.

    >>> classes_of([Coded('sex', np.array([1, 0, 1])), Coded('age', np.array([7, 7, 7]))]).tolist()
    [1, 0, 1]
    """
    if not published:
        raise ValueError("classes need a published quasi-identifier")
    index = [_index(cells) for cells in published]
    shared = index[0] is not None and all(each is index[0] for each in index)

    def column(position: int) -> IntArray:
        numbers, of_row = _identity(published[position]), index[position]
        return numbers if of_row is None or shared else numbers[of_row]

    key = keys_of(parallel_map(column, range(len(published)))).of_row
    if not shared or index[0] is None:
        return key
    occupied = np.zeros(len(key), dtype=np.bool_)
    occupied[index[0]] = True
    key[occupied] = compact(key[occupied])  # groups without rows make no class
    return gathered(key, index[0])


def _index(cells: Cells) -> IntArray | None:
    """The group of each row, None for cells without groups."""
    return cells.index if isinstance(cells, (Interval, Node, ValueSet)) else None


def _identity(cells: Cells) -> IntArray:
    """A number for each group (row, where there are no groups), equal where the published cells are equal."""
    if isinstance(cells, Coded):
        return cells.codes.astype(np.int64) + 1
    if isinstance(cells, Interval):
        lower, upper = cells.lower.astype(np.int64) + 1, cells.upper.astype(np.int64) + 1
        return lower * (int(upper.max(initial=0)) + 1) + upper
    if isinstance(cells, Node):
        # Nodes are published by label: two nodes of one label look the same.
        _, label = np.unique(np.asarray(cells.labels, dtype=object).astype(str), return_inverse=True)
        return label[cells.node].astype(np.int64)
    if isinstance(cells, ValueSet):
        return keys_of_lists(cells.offsets, cells.codes).of_row
    raise TypeError(f"{type(cells).__name__} cells are no quasi-identifier")
