"""From rows to persons: the transformation T -> T' of 1:M data.

One record per person with the set of distinct sensitive values, the fingerprint (Gong, Luo, Yang, Ni & Li 2017, section
3). Attacks through inconsistent generalization of one person's rows end here, because only the person is generalized.
Departures: NULL is an item, so no person is lost; several sensitive attributes give one fingerprint over tagged items.
The paper assumes constant quasi-identifiers. Where they vary between a person's rows (`changing`), the call is refused,
or takes the smallest or largest of the person's vectors, or a box around all of them. Cost: one sort of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.generalize import boxes
from duckdb_anon.kernels.partition.sort_count import owners, run_starts
from duckdb_anon.kernels.slicing.fake_records import of_records
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError, listed
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.released_columns import Interval, Node, ValueSet

BoolArray = NDArray[np.bool_]
Changing = Literal["error", "first", "last", "set"]


@dataclass(frozen=True)
class Lists:
    """Distinct items or nodes of each record: nodes[offsets[i]:offsets[i + 1]], ascending."""

    offsets: IntArray
    nodes: CodeArray

    @property
    def record(self) -> IntArray:
        """Record of each entry."""
        return owners(self.offsets)


def lists_of(node_of_entry: CodeArray, record_of_entry: IntArray, records: int) -> Lists:
    """Return the distinct nodes of each record; entries of a record are consecutive, nodes ascending."""
    fresh = changes(record_of_entry, node_of_entry)
    width = np.bincount(record_of_entry[fresh], minlength=records)
    return Lists(np.r_[0, np.cumsum(width)].astype(np.int64), node_of_entry[fresh])


def changes(*columns: NDArray[Any]) -> BoolArray:
    """Return true at the first entry and where any column differs from the entry before.

    >>> changes(np.array([4, 4, 7])).tolist()
    [True, False, True]
    """
    fresh = np.ones(len(columns[0]), dtype=bool)
    fresh[1:] = False
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


@dataclass(frozen=True)
class Persons:
    """Fingerprints of persons; person i has items[offsets[i]:offsets[i + 1]], ascending and distinct."""

    forest: Hierarchy  # the trees over the items, side by side, without nodes that have one child: items are its leaves
    offsets: IntArray  # shape (persons + 1,)
    items: CodeArray  # item numbers, shape (entries,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def person_of_entry(self) -> IntArray:
        """Person of each entry of `items`."""
        return owners(self.offsets)


def fingerprints_of(person: IntArray, sensitive: Sequence[Attribute]) -> Persons:
    """Collect each person's distinct items.

    Returns:
        The persons in ascending number.

    Raises:
        ColumnError: an attribute has no hierarchy.
    """
    trees = [attribute.tree() for attribute in sensitive]
    forest = Hierarchy.joined([hierarchy.squeezed for hierarchy, _ in trees])
    base, keys = 0, []
    for attribute, (hierarchy, leaf_of_code) in zip(sensitive, trees, strict=True):
        keys.append(person.astype(np.int64) * forest.leaves + leaf_of_code[attribute.codes] + base)
        base += hierarchy.leaves
    ordered = np.sort(np.concatenate(keys))
    owner, item = np.divmod(ordered[run_starts(ordered)], forest.leaves)
    offsets = np.r_[0, np.cumsum(np.bincount(owner))].astype(np.int64)
    return Persons(forest, offsets, item.astype(np.int32))


def person_of_row(function: str, table: CodedTable) -> tuple[Attribute, IntArray]:
    """Return the person attribute and the person of each row.

    Raises:
        ColumnError: the table has no person column.
        RequirementError: some rows have no person.
    """
    person = table.person
    if person is None:
        raise ColumnError(f"{function}: no person column; say person := '...'")
    if person.null_code >= 0:
        lost = int((person.codes == person.null_code).sum())
        raise RequirementError(
            f"{function}: '{person.name}' is NULL in {lost} rows, so their individuals are unknown; leave them out or "
            "give each its own number"
        )
    return person, person.codes.astype(np.int64)


def row_of_person(
    function: str, qi: tuple[Attribute, ...], person: IntArray, persons: int, changing: Changing
) -> IntArray:
    """Return the row that stands for each person, shape (persons,).

    Args:
        changing: 'error', or the row with the 'first' (smallest) or 'last' (largest) vector of a person,
            attributes compared in the order given; 'set' takes the first.

    Raises:
        RequirementError: with 'error', when quasi-identifiers of a person differ.
    """
    if changing == "error":
        differing = {a.name: count for a in qi if (count := _persons_with_changes(a, person, persons))}
        if differing:
            raise RequirementError(
                f"{function}: {max(differing.values())} or more of {persons} persons have rows that differ in "
                f"{listed(differing)}; say changing := 'set' (a box around all values), 'first' or 'last' (the "
                "smallest or largest vector), or clean the table"
            )
        order = np.arange(len(person))
    else:
        order = np.lexsort([a.codes for a in reversed(qi)])
        order = order[::-1] if changing == "last" else order
    row = np.empty(persons, dtype=np.int64)
    row[person[order[::-1]]] = order[::-1]  # the last assignment wins: the first row in `order`
    return row


def _persons_with_changes(attribute: Attribute, person: IntArray, persons: int) -> int:
    code_of_person = np.zeros(persons, dtype=attribute.codes.dtype)
    code_of_person[person] = attribute.codes
    return len(np.unique(person[attribute.codes != code_of_person[person]]))


def boxes_of_persons(
    attribute: Attribute, person: IntArray, group_of_person: IntArray, changing: Changing, row: IntArray
) -> Interval | ValueSet | Node:
    """Return the box of each group, indexed by person; with 'set' around all rows of its persons.

    `group_of_person`: group of each person; `row`: the row that stands for each person.
    """
    if changing == "set":
        return boxes([attribute], group_of_person[person], index=group_of_person)[attribute.name]
    return boxes([of_records(attribute, row)], group_of_person)[attribute.name]
