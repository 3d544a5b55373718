"""Persons whose quasi-identifiers differ between their rows.

Gong, Luo, Yang, Ni & Li (2017) assume constant quasi-identifiers and name changing ones as future work.
Four ways: refuse; take the smallest or largest of the person's vectors; or publish a box around all of them,
so that whichever of a person's values an attacker knows, the whole group fits. Cost: one pass an attribute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from duckdb_anon.kernels.partition import boxes
from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.errors import RequirementError, listed
from duckdb_anon.model.released_columns import Interval, Node, ValueSet

Changing = Literal["error", "first", "last", "set"]


def row_of_person(
    function: str, qi: tuple[Attribute, ...], person: IntArray, persons: int, changing: Changing
) -> IntArray:
    """Return the row that stands for each person, shape (persons,).

    Args:
        function: name used in messages.
        qi: quasi-identifiers, one code a row.
        person: person of each row, 0 .. persons - 1 without gaps.
        persons: number of persons.
        changing: 'error', or the row with the 'first' (smallest) or 'last' (largest) vector of a person,
            attributes compared in the order given; 'set' takes the first.

    Raises:
        RequirementError: with 'error', when quasi-identifiers of a person differ.
    """
    if changing == "error":
        differing = {a.name: int(_differs(a, person, persons).sum()) for a in qi}
        differing = {name: count for name, count in differing.items() if count}
        if differing:
            raise RequirementError(
                f"{function}: {max(differing.values())} or more of {persons} persons have rows that differ in "
                f"{listed(differing)}; say changing := 'set' (a box around all values), 'first' or 'last' (the "
                "smallest or largest vector), or clean the table"
            )
        row = np.empty(persons, dtype=np.int64)
        row[person[::-1]] = np.arange(len(person) - 1, -1, -1)  # the last assignment wins: the first row
        return row
    order = np.lexsort([a.codes for a in reversed(qi)])
    if changing == "last":
        order = order[::-1]
    row = np.empty(persons, dtype=np.int64)
    row[person[order[::-1]]] = order[::-1]  # the last assignment wins: the first row in `order`
    return row


def of_persons(attribute: Attribute, row: IntArray) -> Attribute:
    """Return the attribute with one code a person, that of its row."""
    return replace(attribute, codes=attribute.codes[row])


def boxes_of_persons(
    attribute: Attribute, person: IntArray, group_of_person: IntArray, changing: Changing, row: IntArray
) -> Interval | ValueSet | Node:
    """Return the box of each group, indexed by person; with 'set' around all rows of its persons.

    Args:
        attribute: the attribute.
        person: person of each row.
        group_of_person: group of each person.
        changing: 'set': a person whose rows differ counts with all of them; else with one.
        row: a row of each person.
    """
    if changing == "set":
        return boxes([attribute], group_of_person[person], index=group_of_person)[attribute.name]
    return boxes([of_persons(attribute, row)], group_of_person)[attribute.name]


def _differs(attribute: Attribute, person: IntArray, persons: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    one = np.zeros(persons, dtype=attribute.codes.dtype)
    one[person] = attribute.codes
    differs = np.zeros(persons, dtype=bool)
    differs[person[attribute.codes != one[person]]] = True
    return differs
